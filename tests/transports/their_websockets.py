"""WebSocket peers without Weirpool: the library websockets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as their_connect
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as their_serve
from websockets.frames import Frame
from websockets.typing import Subprotocol

from tests.transports.recording import Place

WS = "rsocket+ws://127.0.0.1:0"


def prefixed(*messages: bytes) -> bytes:
    """Return messages in RSocket's framing, each with a length prefix."""
    return b"".join(len(message).to_bytes(3, "big") + message for message in messages)


@asynccontextmanager
async def their_client(place: Place, path: str = "/", **options: Any) -> AsyncIterator[ClientConnection]:
    """Connect to `place` with a client of the library."""
    options.setdefault("subprotocols", [Subprotocol("rsocket")])
    options.setdefault("compression", None)
    async with their_connect(f"ws://127.0.0.1:{place.port}{path}", proxy=None, **options) as client:
        yield client


@asynccontextmanager
async def their_server(handler: Callable[[ServerConnection], Any], **options: Any) -> AsyncIterator[str]:
    """Serve with the library, and yield the URL."""
    options.setdefault("subprotocols", [Subprotocol("rsocket")])
    async with their_serve(handler, "127.0.0.1", 0, **options) as server:
        yield f"rsocket+ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def close_code(peer: ClientConnection | ServerConnection) -> int | None:
    """Wait until `peer` is closed, and return the close code."""
    await peer.wait_closed()
    return None if peer.protocol.close_rcvd is None else peer.protocol.close_rcvd.code


async def send_raw(peer: ClientConnection | ServerConnection, *frames: Frame) -> None:
    """Send frames that the library itself would not send."""
    masked = isinstance(peer, ClientConnection)
    peer.transport.write(b"".join(frame.serialize(mask=masked) for frame in frames))
