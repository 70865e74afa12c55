from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trustme

import weirpool
from tests.aio.serving import make_service
from tests.transports.recording import listening
from tests.waiting import turns, until
from weirpool import (
    Connection,
    Kind,
    Next,
    Payload,
    PeerClosed,
    Rejected,
    Request,
    Service,
    SessionError,
    Settings,
    SetupRejected,
    current_connection,
)
from weirpool.aio.admission import Admission
from weirpool.events import ItemReceived
from weirpool.protocols import client_session, detectors

URL = "rsocket+memory://watched"


class Hook:
    """A connection hook that records its steps, and can be blocked or made to raise."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.connections: list[Connection] = []
        self.may_enter = asyncio.Event()
        self.may_enter.set()
        self.error: BaseException | None = None

    def __call__(self, connection: Connection) -> AbstractAsyncContextManager[None]:
        return self._entered(connection)

    @asynccontextmanager
    async def _entered(self, connection: Connection) -> AsyncIterator[None]:
        self.connections.append(connection)
        assert current_connection() is connection
        self.told.append("entering")
        try:
            await self.may_enter.wait()
        except asyncio.CancelledError:
            self.told.append("canceled")
            raise
        if self.error is not None:
            raise self.error
        self.told.append("entered")
        yield
        self.told.append("left")


def service() -> Service:
    return make_service([], asyncio.Event())


async def test_hook_is_entered_and_exited_with_the_connection() -> None:
    ours, theirs = Hook(), Hook()
    settings = Settings(data_mime="text/plain")
    async with weirpool.serve(service(), URL, on_connection=theirs) as server:
        async with weirpool.connect(URL, setup="me", settings=settings, on_connection=ours) as peer:
            assert ours.told == ["entering", "entered"]
            assert (await peer.call("echo", b"x")).data == b"x"
            assert theirs.told == ["entering", "entered"]
        assert ours.told == ["entering", "entered", "left"]
        await until(lambda: theirs.told[-1] == "left")
        assert server.connections == 0
    (client,), (accepted,) = ours.connections, theirs.connections
    assert (client.is_client, client.setup, client.data_mime) == (True, Payload(b"me"), "text/plain")
    assert (accepted.is_client, accepted.setup, accepted.data_mime) == (False, Payload(b"me"), "text/plain")
    assert client.error is None
    assert isinstance(accepted.error, PeerClosed)


async def test_requests_wait_until_the_hook_is_entered() -> None:
    hook = Hook()
    hook.may_enter.clear()
    async with weirpool.serve(service(), URL, on_connection=hook), weirpool.connect(URL) as peer:
        calls = [asyncio.create_task(peer.call("echo", b"%d" % number)) for number in range(3)]
        await until(lambda: hook.told == ["entering"])
        await turns(20)
        assert not any(call.done() for call in calls)
        hook.may_enter.set()
        assert [(await call).data for call in calls] == [b"0", b"1", b"2"]
        assert (await peer.call("echo", b"later")).data == b"later"


async def test_requests_sent_with_the_set_up_are_held() -> None:
    hook, seen, reached = Hook(), [], asyncio.Event()
    hook.may_enter.clear()
    session = client_session("rsocket", Settings())
    session.link_up(0.0)
    session.open(Kind.FIRE, "log", Payload(b"fired"))
    session.open(Kind.CALL, "echo", Payload(b"x"))
    place = "rsocket+tcp://127.0.0.1:0"
    async with weirpool.serve(make_service(seen, reached), place, on_connection=hook) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.urls[0].rpartition(":")[2]))
        writer.write(b"".join(session.take_output()))
        await until(lambda: hook.told == ["entering"])
        await turns(20)
        assert seen == []
        hook.may_enter.set()
        await reached.wait()
        assert seen == [b"fired"]
        session.receive(await reader.read(1000), 0.0)
        _, answer = session.take_events()
        assert isinstance(answer, ItemReceived)
        assert answer.payload.data == b"x"
        writer.close()


async def test_reading_stops_until_the_hook_is_entered() -> None:
    hook = Hook()
    hook.may_enter.clear()
    async with weirpool.serve(service(), URL, on_connection=hook) as server, weirpool.connect(URL) as peer:
        await until(lambda: hook.told == ["entering"])
        for _ in range(10):
            await peer.fire("log", b"x")
        await turns(20)
        (driver,) = server._drivers.values()
        assert isinstance(driver.admission, Admission)
        assert driver.admission._waiting == []
        hook.may_enter.set()
        assert (await peer.call("echo", b"x")).data == b"x"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Rejected(message="who are you?"), "who are you"),
        (SetupRejected("not you"), "not you"),
        (KeyError("a secret"), "this side refused the connection"),
    ],
)
async def test_a_hook_that_raises_refuses_the_connection(
    error: Exception, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    hook, seen = Hook(), []
    hook.error = error
    offered = make_service(seen, asyncio.Event())
    async with weirpool.serve(offered, URL, on_connection=hook) as server, weirpool.connect(URL) as peer:
        await peer.fire("log", b"fired")
        with pytest.raises(PeerClosed, match=told):
            await peer.call("echo", b"x")
        await until(lambda: server.connections == 0)
    assert (seen, hook.told) == ([], ["entering"])
    logged = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(logged) == isinstance(error, KeyError)


async def test_connect_raises_the_error_of_its_hook(caplog: pytest.LogCaptureFixture) -> None:
    hook = Hook()
    hook.error = KeyError("mine")
    async with weirpool.serve(service(), URL) as server:
        with pytest.raises(KeyError, match="mine"):
            await weirpool.connect(URL, on_connection=hook)
        await until(lambda: server.connections == 0)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_client_holds_limited_events_before_its_hook_is_entered() -> None:
    hook, received = Hook(), []
    hook.may_enter.clear()
    offered = Service()
    offered.fire("log")(lambda request: received.append(request.data))
    accepting = detectors("rsocket", Settings())()
    settings = Settings(max_streams=10)
    async with listening("rsocket+memory://fires") as place:
        connecting = asyncio.create_task(
            open_with("rsocket+memory://fires", service=offered, settings=settings, on_connection=hook)
        )
        server = await place.next()
        await until(lambda: hook.told == ["entering"] and bool(server.data))
        accepted = accepting.receive(server.data, 0.0)
        assert accepted is not None
        for number in range(100):
            accepted.open(Kind.FIRE, "log", Payload(b"%d" % number))
            server.link.write(b"".join(accepted.take_output()))
        await turns(20)
        assert received == []
        # The rest has not been read.
        assert server.link.get_write_buffer_size() > 0
        hook.may_enter.set()
        peer = await connecting
        await until(lambda: len(received) == 100)
        await peer.close(0)


async def open_with(url: str, **options: Any) -> weirpool.Peer:
    return await weirpool.connect(url, **options)


async def test_client_gets_the_reason_when_its_hook_refuses_it() -> None:
    ours, theirs = Hook(), Hook()
    ours.may_enter.clear()
    theirs.error = Rejected(message="not you")
    async with weirpool.serve(service(), URL, on_connection=theirs):
        with pytest.raises(PeerClosed, match="not you"):
            await weirpool.connect(URL, on_connection=ours)
    assert ours.told == ["entering", "canceled"]


async def test_call_of_a_refusing_hook_fails() -> None:
    # THREATS 96
    calls: list[asyncio.Task[Payload]] = []

    @asynccontextmanager
    async def hook(connection: weirpool.Connection) -> AsyncIterator[None]:
        calls.append(asyncio.create_task(connection.peer.call("nobody")))
        await turns(5)
        raise KeyError("mine")
        yield

    async with weirpool.serve(service(), URL):
        with pytest.raises(KeyError, match="mine"):
            await weirpool.connect(URL, on_connection=hook)
        with pytest.raises(weirpool.WeirpoolError):
            await calls[0]


async def test_connect_can_be_canceled_while_hook_is_entered() -> None:
    hook = Hook()
    hook.may_enter.clear()

    async def connect() -> None:
        await weirpool.connect(URL, on_connection=hook)

    async with weirpool.serve(service(), URL) as server:
        connecting = asyncio.create_task(connect())
        await until(lambda: hook.told == ["entering"])
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        assert hook.told == ["entering", "canceled"]
        await until(lambda: server.connections == 0)


async def test_disconnecting_peer_cancels_its_hook() -> None:
    hook = Hook()
    hook.may_enter.clear()
    async with weirpool.serve(service(), URL, on_connection=hook) as server:
        peer = await weirpool.connect(URL)
        call = asyncio.create_task(peer.call("echo", b"x"))
        await until(lambda: hook.told == ["entering"])
        await peer.close(0)
        with pytest.raises(SessionError):
            await call
        await until(lambda: server.connections == 0)
        await until(lambda: hook.told == ["entering", "canceled"])


async def test_close_waits_until_hooks_have_exited() -> None:
    told: list[str] = []

    @asynccontextmanager
    async def hook(connection: Connection) -> AsyncIterator[None]:
        yield
        await turns(5)
        told.append("left")

    async with weirpool.serve(service(), URL, on_connection=hook), weirpool.connect(URL) as peer:
        await peer.call("echo")
    assert told == ["left"]
    async with weirpool.serve(service(), URL):
        peer = await weirpool.connect(URL, on_connection=hook)
        await peer.close()
        assert told == ["left", "left"]


async def test_hook_error_on_exit_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    @asynccontextmanager
    async def hook(connection: Connection) -> AsyncIterator[None]:
        yield
        raise KeyError("broken")

    async with weirpool.serve(service(), URL), weirpool.connect(URL, on_connection=hook) as peer:
        await peer.call("echo")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == [
        "<Connection to memory://watched by rsocket>: on_connection failed when it exited"
    ]


async def test_client_certificate_is_visible_to_the_server() -> None:
    authority = trustme.CA()
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    client_context = ssl.create_default_context()
    authority.issue_cert("localhost").configure_cert(server_context)
    authority.issue_cert("alice@example.org").configure_cert(client_context)
    authority.configure_trust(client_context)
    authority.configure_trust(server_context)
    server_context.verify_mode = ssl.CERT_OPTIONAL

    async def only_alice(request: Request, after: Next) -> Any:
        names = (request.connection.certificate or {}).get("subjectAltName", ())
        if ("email", "alice@example.org") not in names:
            raise Rejected(message="you are not alice")
        return await after(request)

    offered = Service(interceptors=[only_alice])
    offered.call("echo")(lambda request: request)
    hook = Hook()
    async with weirpool.serve(offered, "rsocket+tls://localhost:0", ssl=server_context, on_connection=hook) as server:
        (url,) = server.urls
        ours = Hook()
        async with weirpool.connect(url, ssl=client_context, on_connection=ours) as peer:
            assert (await peer.call("echo", b"x")).data == b"x"
        assert ours.connections[0].certificate is not None
        stranger = ssl.create_default_context()
        authority.configure_trust(stranger)
        async with weirpool.connect(url, ssl=stranger) as peer:
            with pytest.raises(Rejected, match="not alice"):
                await peer.call("echo", b"x")
    assert [connection.certificate is None for connection in hook.connections] == [False, True]
    assert hook.connections[0].address in ("127.0.0.1", "::1")
