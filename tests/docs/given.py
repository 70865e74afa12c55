"""What pages take as given: publishers, journals, certificates."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import trustme

import weirpool
from weirpool import ApplicationError, ConnectError, Items, Payload, Peer, Service, Settings

__all__ = [
    "FLIGHTS",
    "asked",
    "beside",
    "certificates",
    "environment",
    "free_ports",
    "journal_of",
    "publisher",
    "ruled",
    "running",
    "seen_serving",
    "serving",
    "wait_until",
]

SECONDS = 60
PURE = "WEIRPOOL_PURE"
FLIGHTS = [
    {"carrier": carrier, "flight": 100 + number, "dep_delay": 7.5 * number, "time_hour": "2026-01-31T06:00:00Z"}
    for number, carrier in enumerate(["AA", "B6", "AA", "DL"] * 5)
]


def environment() -> dict[str, str]:
    """Return the environment of a program, without what another test or the user has set for Weirpool."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WEIRPOOL_") or name == PURE}


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def publisher() -> Service:
    """Return a service with the routes that pages collect from and send to."""
    service = Service()

    @service.stream("flights")
    def flights(request: Payload) -> Iterator[bytes]:
        return (json.dumps(flight).encode() for flight in FLIGHTS)

    @service.stream("quotes")
    def quotes(request: Payload) -> Iterator[bytes]:
        return (b'{"symbol": "ACME", "price": %d}' % number for number in range(20))

    @service.call("echo")
    def echo(request: Payload) -> bytes:
        return request.data

    @service.stream("count")
    def count(request: Payload) -> Iterator[bytes]:
        return (b"%d" % number for number in range(int(request.data)))

    @service.upload("sum")
    async def total(request: Payload, items: Items) -> bytes:
        return b"%d" % (int(request.data or 0) + sum([int(item.data) async for item in items]))

    @service.channel("double")
    async def double(request: Payload, items: Items) -> AsyncIterator[bytes]:
        async for item in items:
            yield b"%d" % (2 * int(item.data))

    service.fire("log")(lambda request: None)
    service.push(lambda metadata: None)

    @service.channel("delays")
    async def delays(request: Payload, items: Items) -> AsyncIterator[bytes]:
        async for _ in items:
            pass
        return
        yield

    return service


@contextmanager
def serving(url: str, service: Service | None = None, settings: Settings | None = None) -> Iterator[str]:
    """Serve in a thread with an event loop of its own, so that the page may run its own."""
    ready = threading.Event()
    state: dict[str, Any] = {}

    async def serve() -> None:
        async with weirpool.serve(service or publisher(), url, settings=settings) as server:
            state["url"], state["loop"], state["stop"] = server.urls[0], asyncio.get_running_loop(), asyncio.Event()
            ready.set()
            await state["stop"].wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(SECONDS)
    try:
        yield state["url"]
    finally:
        state["loop"].call_soon_threadsafe(state["stop"].set)
        thread.join(SECONDS)


def journal_of(folder: str | Path, source: str, items: list[bytes], segment_bytes: int | None = None) -> None:
    """Write a log of items."""
    import pyarrow as pa

    from weirpool.journal import ITEMS, Journal

    options = {} if segment_bytes is None else {"segment_bytes": segment_bytes}
    with Journal(folder).writer(source, **options) as writer:
        for item in items:
            writer.append(pa.record_batch([[item], [None]], schema=ITEMS), source)


def certificates() -> None:
    """Write the certificate files of a server and a client to this folder, by the names that pages use."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path("ca.pem")
    server, client = authority.issue_cert("localhost", "127.0.0.1"), authority.issue_cert("client.example")
    server.private_key_pem.write_to_path("server.key")
    for pem in server.cert_chain_pems:
        pem.write_to_path("server.pem", append=True)
    client.private_key_and_cert_chain_pem.write_to_path("client.pem")


def ruled() -> Service:
    """Return a service with the routes that the page of the rules names."""
    service = Service()

    @service.stream("count")
    def count(request: Payload) -> Iterator[bytes]:
        return (b"%d" % number for number in range(int(request.data)))

    @service.stream("fail")
    def fail(request: Payload) -> Iterator[bytes]:
        raise ApplicationError(0x301, "as it should")

    @service.stream("ticks")
    def ticks(request: Payload) -> Iterator[bytes]:
        while True:
            yield b"tick"

    return service


@contextmanager
def running(program: str, place: str) -> Iterator[None]:
    """Run a program that serves, and wait until it listens at a place."""
    path = {**environment(), "PYTHONPATH": f"{Path(weirpool.__file__).parents[1]}"}
    process = subprocess.Popen([sys.executable, program], env=path)
    host, _, port = place.rpartition(":")
    try:
        wait_until(lambda: process.poll() is not None or _listens(host, int(port)))
        assert process.poll() is None
        yield
    finally:
        process.terminate()
        process.wait(SECONDS)


def _listens(host: str, port: int) -> bool:
    with suppress(ConnectionRefusedError), socket.create_connection((host, port)):
        return True
    return False


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


async def asked(service: Service, question: Callable[[Peer], Awaitable[Any]]) -> Any:
    """Return what a coroutine function returns that is given a peer of a service."""
    async with weirpool.serve(service, "rsocket+memory://asked"), weirpool.connect("rsocket+memory://asked") as peer:
        return await question(peer)


def beside(
    serve: Callable[[], Coroutine[Any, Any, None]], ask: Callable[[], Awaitable[Any]], url: str, **options: Any
) -> None:
    """Run a coroutine while another one serves, which is then canceled. `options` are those of the first client."""

    async def both() -> None:
        task = asyncio.ensure_future(serve())
        await asyncio.wait_for(_reached(task, url, options), SECONDS)
        await ask()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(both())


def seen_serving(serve: Callable[[], Coroutine[Any, Any, None]], url: str, **options: Any) -> None:
    """Run a coroutine that serves for ever until a client has connected to it, and cancel it."""

    async def nothing() -> None: ...

    beside(serve, nothing, url, **options)


async def _reached(task: asyncio.Future[None], url: str, options: dict[str, Any]) -> None:
    """Connect as soon as the server listens, and close."""
    while True:
        try:
            peer = await weirpool.connect(url, confirm=True, **options)
            return await peer.close()
        except ConnectError:
            if task.done():
                task.result()
            await asyncio.sleep(0.01)
