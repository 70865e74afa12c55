"""A process that is flooded: a server whose handlers wait, or a client whose consumer does.

Run as a program, it imports all that floods need, and waits for requests at its standard input, a socket. Each one has
two descriptors and an object of JSON: `role`, `url` and `settings`. A fork of this process, which saves the imports, is
the flooded one. It answers in lines of JSON: first its URL, and after each line of input how much memory it uses, and
has used at most, beyond what it used before the flood.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import weirpool
from weirpool import Items, Payload, Service, Settings, _build
from weirpool.ledger import LEDGER
from weirpool.urls import fitting

IMPORTS = [
    *[f"weirpool.transports.{name}" for name in ("tcp", "websocket", "http2", "quic")],
    *[f"weirpool.{family}.accept" for family in ("rsocket", "river", "reactivestreams")],
    "weirpool.aio.server",
    "weirpool.aio.client",
]
PROCESS = Path("/proc/self")
ITEM_BYTES = 256 << 10


def make_service() -> Service:
    service = Service()

    @service.call("flood.echo")
    def echo(request: Payload) -> Payload:
        return request

    @service.call("flood.waits")
    async def waits(request: Payload) -> bytes:
        await asyncio.get_running_loop().create_future()
        return request.data

    @service.stream("flood.items")
    async def items(request: Payload) -> AsyncIterator[bytes]:
        while True:
            # Zeros would take no memory.
            yield b"x" * ITEM_BYTES

    @service.stream("flood.sleeps")
    async def sleeps(request: Payload) -> AsyncIterator[bytes]:
        await asyncio.get_running_loop().create_future()
        yield request.data

    @service.call("flood.typed")
    async def typed(request: list[str]) -> int:
        await asyncio.get_running_loop().create_future()
        return len(request)

    @service.call("flood.lists")
    async def lists(request: list[list[int]]) -> int:
        await asyncio.get_running_loop().create_future()
        return len(request)

    @service.upload("flood.unread")
    async def unread(request: Payload, items: Items) -> bytes:
        await asyncio.get_running_loop().create_future()
        return b"0"

    @service.channel("flood.channel")
    async def unread_channel(request: Payload, items: Items) -> Any:
        yield b"0"
        await asyncio.get_running_loop().create_future()

    return service


def to_client(url: str) -> str:
    """Return the URL with which a client reaches the server at `url`; its CA is beside its certificate."""
    place, _, options = url.partition("?")
    certificate = dict(parse_qsl(options)).get("cert")
    return place if certificate is None else f"{place}?ca={Path(certificate).parent / 'ca.pem'}"


def resident(name: str) -> int:
    """Return a value of /proc/self/status in bytes: VmRSS is the current memory, VmHWM the maximum."""
    lines = (PROCESS / "status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


def say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


async def report_on_request() -> None:
    """Answer each line of input, until the end of the input."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    # From here on, the maximum is that of the flood.
    (PROCESS / "clear_refs").write_text("5")
    base = resident("VmRSS")
    say(accelerated=_build.ACCELERATED)
    while await reader.readline():
        process = LEDGER.process
        say(
            grown=resident("VmHWM") - base,
            resident=resident("VmRSS") - base,
            held=process.held,
            booked=process.peak,
            payments=LEDGER.payments,
            incomplete=process.incomplete,
        )


async def serve(url: str, settings: Settings) -> None:
    async with weirpool.serve(make_service(), url, settings=settings) as server:
        say(url=server.urls[0])
        async with weirpool.connect(to_client(server.urls[0])) as peer:
            await peer.call("flood.echo", b"1")
        await report_on_request()


async def consume(url: str, settings: Settings) -> None:
    """Open a stream and take one item of it."""
    async with weirpool.connect(url, settings=settings) as peer:
        say(url=url)
        stream = peer.stream("flood.items")
        async with stream:
            async for _ in stream:
                break
            await report_on_request()


async def main(role: str, url: str, settings: dict[str, Any]) -> None:
    fit = fitting(Settings(close_grace=0.0, **settings), url, serving=role == "server")
    await {"server": serve, "client": consume}[role](url, fit)


def fork(requests: socket.socket) -> None:
    """Fork a flooded process for each request, until there are no more; answer its id."""
    for name in IMPORTS:
        import_module(name)
    # Nobody waits for the forks.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, 65_536, 2)
        if not data:
            return
        child = os.fork()
        if child == 0:
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
            requests.close()
            try:
                asyncio.run(main(**json.loads(data)))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        requests.sendall(b"%d\n" % child)


if __name__ == "__main__":
    fork(socket.socket(fileno=os.dup(0)))
