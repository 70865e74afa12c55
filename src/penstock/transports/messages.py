"""Messages out of a stream of bytes: what sessions write, for transports that keep the bounds of messages.

RSocket 1.0, Framing Protocol Usage: TCP, TLS, Unix and HTTP/2 need the length field; WebSocket must not have it.
Sessions speak with it on every transport: a transport of messages takes it off what is sent, and puts it before
what comes in.
"""

from __future__ import annotations

from typing import Final

__all__ = ["PASS_OVER", "PREFIX_BYTES"]

PREFIX_BYTES: Final = {
    "rsocket": 3,
    "reactivesocket-0.2": 3,
    "reactivesocket-0.0": 3,
    "reactive-streams": 0,
    "river": 4,
}
"""The width of the length before each frame, by protocol; 0: messages are but pieces of a stream of bytes."""

PASS_OVER: Final = frozenset({"river"})
"""Protocols whose sessions refuse a message that is too long by its ends: the link goes on, and none of it is held."""
