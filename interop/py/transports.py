"""rsocket-py over TCP and over WebSocket: ``dialed`` for its clients, ``listening`` for its servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import websockets
from rsocket.transports.tcp import TransportTCP
from rsocket.transports.transport import Transport
from rsocket.transports.websockets_transport import WebsocketsTransport

__all__ = ["dialed", "listening"]

READ_BYTES = 64 * 1024


@asynccontextmanager
async def dialed(transport: str, host: str, port: int) -> AsyncIterator[Transport]:
    """Connect while the block lasts."""
    if transport == "tcp":
        reader, writer = await asyncio.open_connection(host, port)
        yield TransportTCP(reader, writer, read_buffer_size=READ_BYTES)
        return
    async with websockets.connect(f"ws://{host}:{port}/", max_size=None) as socket:
        messages = WebsocketsTransport()
        moving = asyncio.create_task(messages.handler(socket))
        try:
            yield messages
        finally:
            moving.cancel()


@asynccontextmanager
async def listening(transport: str, serve: Callable[[Transport], object]) -> AsyncIterator[int]:
    """Listen on 127.0.0.1 while the block lasts, hand each connection to `serve`; yields the port."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serve(TransportTCP(reader, writer, read_buffer_size=READ_BYTES))

    async def accept_messages(socket: websockets.ServerConnection) -> None:
        messages = WebsocketsTransport()
        serve(messages)
        await messages.handler(socket)

    if transport == "tcp":
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
    else:
        server = await websockets.serve(accept_messages, "127.0.0.1", 0, max_size=None)
    async with server:
        yield next(iter(server.sockets)).getsockname()[1]
