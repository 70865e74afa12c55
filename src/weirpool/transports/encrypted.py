"""The transport of a link over TLS: passes on output in small parts, and counts what waits."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from .base import Link

__all__ = ["PART_BYTES", "EncryptedTransport"]

PART_BYTES: Final = 65_536
"""The size of a part, and what may wait in the transport before it gets no more."""


class EncryptedTransport:
    """Has those methods of an asyncio transport of TLS that a link needs.

    TLS encrypts at once whatever is written. Its buffer keeps the largest size that it has had until the connection
    ends, and what it has passed to the socket's transport is not reported. So output waits here instead.

    Args:
        transport: The transport of asyncio or uvloop. Its protocol calls `pause_writing` and `resume_writing`.
        link: Its receiver is told when more output waits than is allowed, and when no more than a quarter of that does.

    """

    __slots__ = (
        "_closing", "_full", "_high_bytes", "_link", "_parts", "_size", "_told", "_transport", "get_extra_info",
        "pause_reading", "resume_reading"
    )  # fmt: skip

    def __init__(self, transport: asyncio.Transport, link: Link) -> None:
        self._transport = transport
        self._link = link
        self._parts: deque[memoryview] = deque()
        self._size = 0
        self._high_bytes = PART_BYTES
        # The transport accepts no more; the receiver was told to pause; output is discarded.
        self._full = self._told = self._closing = False
        self.get_extra_info: Callable[[str], Any] = transport.get_extra_info
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        transport.set_write_buffer_limits(high=PART_BYTES)

    def set_write_buffer_limits(self, high: int) -> None:
        """Set how much output may wait before the receiver is told to pause."""
        self._high_bytes = high

    def write(self, data: bytes) -> None:
        """Send `data`, or discard it after `close`."""
        if self._closing:
            return
        if not self._full and len(data) <= PART_BYTES:
            self._transport.write(data)
            return
        self._parts.append(memoryview(data))
        self._size += len(data)
        self._feed()
        if self._size > self._high_bytes and not self._told:
            self._told = True
            self._link.receiver.writing_paused()

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that wait."""
        return self._size + self._transport.get_write_buffer_size()

    def is_closing(self) -> bool:
        """Return whether output is discarded."""
        return self._closing or self._transport.is_closing()

    @property
    def ended_here(self) -> bool:
        """Whether `close` or `abort` was called."""
        return self._closing

    def can_write_eof(self) -> bool:
        """Return False: TLS ends both directions together."""
        return False

    def write_eof(self) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Close after all output is written."""
        self._closing = True
        if not self._parts:
            self._transport.close()

    def abort(self) -> None:
        """Close now, and discard the output."""
        self._closing = True
        self._parts.clear()
        self._size = 0
        self._transport.abort()

    def pause_writing(self) -> None:
        """Pass on no more output."""
        self._full = True

    def resume_writing(self) -> None:
        """Pass on more output."""
        self._full = False
        self._feed()
        if self._closing:
            if not self._parts:
                self._transport.close()
        elif self._told and self._size <= self._high_bytes // 4:
            self._told = False
            self._link.receiver.writing_resumed()

    def _feed(self) -> None:
        """Pass on the parts that the transport accepts."""
        parts = self._parts
        while parts and not self._full:
            part = parts.popleft()
            self._size -= min(len(part), PART_BYTES)
            if len(part) > PART_BYTES:
                parts.appendleft(part[PART_BYTES:])
            self._transport.write(part[:PART_BYTES])
