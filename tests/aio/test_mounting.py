from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx2
import hypercorn.asyncio
import hypercorn.config
import pytest
import uvicorn
from fastapi import Depends, FastAPI, Header, WebSocket, WebSocketException
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Mount, WebSocketRoute
from starlette.testclient import TestClient

import weirpool
from tests.aio.serving import make_service
from tests.waiting import until
from weirpool import Admitted, ConnectError, LocalError, Payload, Service, Settings, Setup, SetupRejected, UrlError

WEBSOCKETS = ["websockets-sansio", "wsproto"]
"""The implementations of WebSocket that uvicorn has."""


@asynccontextmanager
async def running(app: Any, websockets: str = "websockets-sansio") -> AsyncIterator[tuple[str, uvicorn.Server]]:
    """Serve an application; yield its place, and its server."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, ws=websockets, log_config=None, timeout_graceful_shutdown=5))
    task = asyncio.create_task(server._serve())
    try:
        await until(lambda: server.started or task.done())
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"127.0.0.1:{port}", server
    finally:
        server.should_exit = True
        await task


def counting() -> tuple[Service, list[int]]:
    """A service with an endless stream, and the items that were taken from it."""
    service, taken = Service(), []

    @service.stream("count")
    def count(request: Payload) -> Iterator[bytes]:
        number = 0
        while True:
            taken.append(number)
            yield b"%d" % number
            number += 1

    return service, taken


@pytest.mark.parametrize("websockets", WEBSOCKETS)
async def test_one_port_has_rest_and_rsocket_and_river(websockets: str) -> None:
    service = make_service([], asyncio.Event())

    @service.call("greet.hello")
    def hello(name: str) -> str:
        return f"hello {name}"

    rsocket, river = weirpool.asgi(service), weirpool.asgi(service, "river", codec="msgpack")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with rsocket, river:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/rest")
    def rest() -> str:
        return "rest"

    @app.websocket("/rsocket")
    async def endpoint(websocket: WebSocket) -> None:
        await rsocket(websocket.scope, websocket.receive, websocket.send)

    app.mount("/river", river)
    async with running(app, websockets) as (place, _):
        async with httpx2.AsyncClient() as browser:
            assert (await browser.get(f"http://{place}/rest")).json() == "rest"
        async with weirpool.connect(f"rsocket+ws://{place}/rsocket") as peer:
            large = bytes(3_000_000)
            assert (await peer.call("echo", large)).data == large
            assert rsocket.connections == 1 and len(rsocket.peers) == 1
            async with peer.stream("count", "1000", credit=8) as items:
                assert [int(item.data) async for item in items] == list(range(1_000))
        async with weirpool.connect(f"river+ws://{place}/river/?codec=msgpack") as peer:
            assert await weirpool.typed(peer).call("greet.hello", "you") == "hello you"
            assert river.connections == 1


@pytest.mark.parametrize("websockets", WEBSOCKETS)
async def test_client_that_does_not_read_stops_the_handler(websockets: str) -> None:
    service, taken = counting()
    mounted = weirpool.asgi(service)
    async with running(Starlette(routes=[WebSocketRoute("/", mounted)]), websockets) as (place, _):
        async with weirpool.connect(f"rsocket+ws://{place}/") as peer, peer.stream("count", credit=16) as items:
            first = [int(item.data) async for item in _first(items, 5)]
            # A call afterwards shows that the server has handled all demand.
            with pytest.raises(weirpool.ApplicationError):
                await peer.call("nothing")
            assert first == [0, 1, 2, 3, 4] and len(taken) <= 5 + 2 * 16
    await mounted.close()


async def _first(items: Any, count: int) -> AsyncIterator[Any]:
    async for item in items:
        yield item
        count -= 1
        if not count:
            return


def current_user(authorization: Annotated[str, Header()] = "") -> str:
    if authorization != "Bearer open sesame":
        raise WebSocketException(1008)
    return "ali"


async def test_dependencies_decide_and_the_acceptor_sees_the_user() -> None:
    service = Service()

    @service.call("who")
    def who(request: Payload) -> str:
        return str(weirpool.current_connection().identity)

    def admit(setup: Setup) -> Admitted:
        return Admitted(setup.scope["state"]["user"], principal=setup.scope["state"]["user"])

    mounted = weirpool.asgi(service, acceptor=admit)
    app = FastAPI()

    @app.websocket("/rsocket")
    async def endpoint(websocket: WebSocket, name: Annotated[str, Depends(current_user)]) -> None:
        websocket.state.user = name
        await mounted(websocket.scope, websocket.receive, websocket.send)

    async with running(app) as (place, _):
        headers = (("Authorization", "Bearer open sesame"),)
        async with weirpool.connect(f"rsocket+ws://{place}/rsocket", settings=Settings(headers=headers)) as peer:
            assert (await peer.call("who")).data == b"ali"
        with pytest.raises(ConnectError, match="403"):
            await weirpool.connect(f"rsocket+ws://{place}/rsocket")


async def test_middleware_holds() -> None:
    tenant = contextvars.ContextVar("tenant", default="")
    service = Service()

    @service.call("tenant")
    async def get_tenant(request: Payload) -> str:
        return tenant.get()

    class Backend(AuthenticationBackend):
        async def authenticate(self, conn: Any) -> Any:
            return AuthCredentials(), SimpleUser("eve" if "evil" in conn.headers.get("x-who", "") else "bob")

    class Tenants:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            tenant.set("acme")
            await self.app(scope, receive, send)

    def admit(setup: Setup) -> None:
        if setup.scope["user"].display_name == "eve":
            raise SetupRejected("not you")

    mounted = weirpool.asgi(service, acceptor=admit)
    middleware = [Middleware(Tenants), Middleware(AuthenticationMiddleware, backend=Backend())]
    app = Starlette(routes=[Mount("/streams", mounted)], middleware=middleware)
    async with running(app) as (place, _):
        async with weirpool.connect(f"rsocket+ws://{place}/streams/") as peer:
            assert (await peer.call("tenant")).data == b"acme"
        with pytest.raises(SetupRejected, match="not you"):
            async with weirpool.connect(
                f"rsocket+ws://{place}/streams/", settings=Settings(headers=(("X-Who", "evil"),))
            ) as peer:
                await peer.call("tenant")


async def test_lifespan_closes_connections_in_order() -> None:
    service, _ = counting()
    mounted = weirpool.asgi(service)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with mounted:
            yield

    app = Starlette(routes=[WebSocketRoute("/", mounted)], lifespan=lifespan)
    async with running(app) as (place, server):
        async with weirpool.connect(f"rsocket+ws://{place}/") as peer, peer.stream("count", credit=4) as items:
            await anext(aiter(items))
            server.should_exit = True
            with pytest.raises(weirpool.WeirpoolError):
                async for _item in items:
                    pass
    assert mounted.connections == 0


async def test_application_can_start_again() -> None:
    mounted = weirpool.asgi(make_service([], asyncio.Event()))

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with mounted:
            yield

    app = Starlette(routes=[WebSocketRoute("/", mounted)], lifespan=lifespan)
    for _ in range(2):
        async with running(app) as (place, _server), weirpool.connect(f"rsocket+ws://{place}/") as peer:
            assert (await peer.call("echo", "again")).data == b"again"


def test_each_event_loop_has_its_own_server() -> None:
    mounted = weirpool.asgi(make_service([], asyncio.Event()))
    app = Starlette(routes=[WebSocketRoute("/", mounted)])
    for _ in range(2):
        with TestClient(app) as client, client.websocket_connect("/", subprotocols=["rsocket"]) as websocket:
            assert websocket.accepted_subprotocol == "rsocket"


async def test_application_of_its_own_follows_the_lifespan() -> None:
    mounted = weirpool.asgi(make_service([], asyncio.Event()))
    async with running(mounted) as (place, _):
        async with weirpool.connect(f"rsocket+ws://{place}/") as peer:
            assert (await peer.call("echo", "root")).data == b"root"
        async with httpx2.AsyncClient() as browser:
            response = await browser.get(f"http://{place}/")
        assert (response.status_code, response.text) == (426, "This is a WebSocket endpoint for rsocket.\n")
    assert mounted.connections == 0


async def test_hypercorn_serves_it_too() -> None:
    mounted = weirpool.asgi(make_service([], asyncio.Event()))
    config = hypercorn.config.Config()
    config.bind = ["127.0.0.1:0"]
    config.errorlog = config.accesslog = None
    sockets = config.create_sockets()
    [listening] = sockets.insecure_sockets
    # Clients wait until it accepts them.
    listening.listen()
    port = listening.getsockname()[1]
    config.bind = [f"fd://{listening.detach()}"]
    done = asyncio.Event()
    app = Starlette(routes=[WebSocketRoute("/", mounted)])
    task = asyncio.create_task(hypercorn.asyncio.serve(app, config, shutdown_trigger=done.wait))  # type: ignore[arg-type]
    try:
        async with weirpool.connect(f"rsocket+ws://127.0.0.1:{port}/") as peer:
            assert (await peer.call("echo", "hypercorn")).data == b"hypercorn"
            async with peer.stream("count", "1000", credit=8) as items:
                assert [int(item.data) async for item in items] == list(range(1_000))
    finally:
        done.set()
        await task
        await mounted.close()


async def test_limits_hold() -> None:
    mounted = weirpool.asgi(make_service([], asyncio.Event()), settings=Settings(max_connections=1))
    async with running(Starlette(routes=[WebSocketRoute("/", mounted)])) as (place, _):
        async with weirpool.connect(f"rsocket+ws://{place}/") as peer:
            await peer.call("echo", "first")
            with pytest.raises(SetupRejected, match="max_connections"):
                async with weirpool.connect(f"rsocket+ws://{place}/") as other:
                    await other.call("echo", "second")
    await mounted.close()


def test_what_is_unknown_is_refused() -> None:
    with pytest.raises(UrlError, match="unknown protocol 'http'"):
        weirpool.asgi(Service(), "http")
    with pytest.raises(LocalError, match="asgi\\(\\) has no option 'codec' for rsocket; known are: none"):
        weirpool.asgi(Service(), codec="json")
    with pytest.raises(LocalError, match="proxy_protocol"):
        weirpool.asgi(Service(), settings=Settings(proxy_protocol=True))
