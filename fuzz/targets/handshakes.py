"""Opening handshakes of WebSocket. The first byte of an input is the side, the second one the size of pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.builds import Build

from fuzz.outcomes import attempt, pieces

LINES: Final = True
WORDS: Final = (b"\r\n", b"\r\n\r\n", b"HTTP/1.1", b"Origin: ", b"Host: ", b"%00", b"Sec-WebSocket-Protocol: ", b"\x80")
REQUEST: Final = (
    b"GET /a HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)


def seeds() -> Iterator[bytes]:
    """Yield requests, and responses that refuse."""
    for size in (0, 7):
        yield bytes((0, size)) + REQUEST + b"\r\nfirst"
        yield bytes((0, size)) + REQUEST + b"Origin: http://localhost\r\nSec-WebSocket-Protocol: rsocket\r\n\r\n"
        yield bytes((1, size)) + b"HTTP/1.1 503 Full\r\nRetry-After: 1\r\n\r\nbecause"
        yield bytes((1, size)) + b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"


def outcome(build: Build, data: bytes) -> object:
    """Return whether the handshake is complete, the status of the answer, and what follows the head."""
    is_client, size = (data[0] & 1, data[1]) if len(data) > 1 else (0, 0)
    module = build.module("weirpool.transports.websocket_handshake")
    settings = build.module("weirpool.settings").Settings()
    url = build.module("weirpool.urls").parse_url("rsocket+ws://localhost:1/a")
    shake: Any = (
        module.ClientHandshake(url, "localhost", settings) if is_client else module.ServerHandshake(url, settings)
    )
    found: list[object] = []
    for piece in pieces(data[2:], size):
        done = attempt(build, shake.feed, piece)
        found.append(done)
        if done is not False:
            break
    # The answer has the time of day.
    return found, shake.take_rest(), b"" if is_client else shake.answer[:12]
