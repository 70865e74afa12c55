"""Links within one event loop, for tests and for a client and a server in one process.

Output arrives in a later turn of the loop, in order, and only while the other end reads.
"""

from __future__ import annotations

import asyncio
import ssl as tls
from collections import deque

from ..errors import ConnectError, LinkLost, LocalError
from ..settings import Settings
from ..urls import Url
from .base import Accept, Receiver, Refused, check_options

__all__ = ["MemoryLink", "MemoryListener", "connect", "listen", "pair"]

_listeners: dict[tuple[asyncio.AbstractEventLoop, str], MemoryListener] = {}


class MemoryLink:
    """One end of a link; :func:`pair` creates both."""

    unfinished = unread = 0

    def __init__(self, receiver: Receiver, loop: asyncio.AbstractEventLoop, high_bytes: int) -> None:
        self.receiver = receiver
        self._loop = loop
        self._high_bytes = high_bytes
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._taken = 0
        self._writing_paused = False
        self._reading_paused = False
        self._scheduled = False
        self._closing = False
        self._aborted = False
        self._lost = False
        self._other = self

    def write(self, data: bytes) -> None:
        """Send `data`, or discard it if the link is closing."""
        if self._closing or not data:
            return
        self._waiting.append(data)
        self._size += len(data)
        if not self._writing_paused and self._size > self._high_bytes:
            self._writing_paused = True
            self.receiver.writing_paused()
        self._schedule()

    def is_closing(self) -> bool:
        """Return whether it is closed, or will be."""
        return self._closing

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the other end has not read."""
        return self._size

    def progress(self) -> tuple[int, int]:
        """Return the numbers of bytes that the other end has not read, and has read."""
        return self._size, self._taken

    def pause_reading(self) -> None:
        """Stop calling `received`."""
        self._reading_paused = True

    def resume_reading(self) -> None:
        """Call `received` again."""
        self._reading_paused = False
        self._other._schedule()

    def close(self) -> None:
        """Close after the other end has read everything."""
        if not self._closing:
            self._closing = True
            self._schedule()

    def abort(self) -> None:
        """Close now; for the other end, the link broke."""
        self._closing = self._aborted = True
        self._waiting.clear()
        self._size = 0
        self._loop.call_soon(self._lose, None)
        self._loop.call_soon(self._other._lose, LinkLost("the connection broke: the other end aborted it"))

    def get_extra_info(self, name: str) -> None:
        """Return None: a link within a process has no such information."""

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        """Pass the waiting output to the other end."""
        self._scheduled = False
        other = self._other
        while self._waiting and not other._reading_paused and not other._lost:
            data = self._waiting.popleft()
            self._size -= len(data)
            self._taken += len(data)
            other.receiver.received(data)
        if self._writing_paused and self._size <= self._high_bytes // 4:
            self._writing_paused = False
            self.receiver.writing_resumed()
        # abort() has already scheduled the end of an aborted link, with an error for the other end.
        read = not self._waiting and not other._reading_paused
        if self._closing and not self._aborted and (other._lost or read):
            self._lose(None)
            other._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if not self._lost:
            self._lost = self._closing = True
            self.receiver.link_lost(error)


def pair(left: Receiver, right: Receiver, settings: Settings) -> None:
    """Connect two receivers by a link, and call `link_made` of both."""
    loop = asyncio.get_running_loop()
    ends = [MemoryLink(receiver, loop, settings.output_high_bytes) for receiver in (left, right)]
    ends[0]._other, ends[1]._other = ends[1], ends[0]
    right.link_made(ends[1])
    left.link_made(ends[0])


class MemoryListener:
    """Accepts links to one name of this event loop."""

    def __init__(self, url: Url, accept: Accept) -> None:
        self.url = url
        self.accept = accept
        self._key = (asyncio.get_running_loop(), url.path)
        if self._key in _listeners:
            raise ConnectError(f"cannot listen on {url.place}: the name is in use; choose another one")
        _listeners[self._key] = self

    async def close(self) -> None:
        """Accept no more links."""
        # A successor may have the same name by now.
        if _listeners.get(self._key) is self:
            del _listeners[self._key]

    async def ended(self, seconds: float) -> None:
        """Return at once: a link within a process needs no end."""

    def hand_over(self) -> list[int]:
        """Return nothing: there is no socket."""
        return []


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
    """Open a link to a listener of this event loop. See :func:`weirpool.transports.connect`."""
    _check(url, ssl)
    listener = _listeners.get((asyncio.get_running_loop(), url.path))
    if listener is None:
        raise ConnectError(f"cannot connect to {url.place}: nothing in this event loop listens on this name")
    # It is made at once, so there is nothing to hang up.
    other = listener.accept("", lambda _: None)
    if isinstance(other, Refused):
        raise ConnectError(f"cannot connect to {url.place}: {other.reason}")
    pair(receiver, other, settings)


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> MemoryListener:
    """Accept links within this event loop. See :func:`weirpool.transports.listen`."""
    _check(url, ssl)
    return MemoryListener(url, accept)


def _check(url: Url, ssl: tls.SSLContext | None) -> None:
    check_options(url, frozenset())
    if ssl is not None:
        raise LocalError(f"ssl cannot be used with {url.place}, which stays within this process; omit it")
