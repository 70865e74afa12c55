"""The reading half of an asyncio protocol: reads into a buffer, and passes the bytes to the receiver.

`reading.pyx` does the same in the compiled build, where a read that fills the buffer is not copied.
"""

from __future__ import annotations

from typing import Final

from ..errors import LocalError
from .base import Receiver

__all__ = ["READ_BYTES", "ReadBuffer", "Reading"]

READ_BYTES: Final = 131_072
"""Bytes of one read. asyncio polls before each read, so 64 KiB are a fifth slower; larger reads leave the processor's
cache before they are used."""


class ReadBuffer:
    """The buffer of reads. All links of an event loop can share it, because each read is taken before the next one."""

    __slots__ = ("_data", "_view")

    def __init__(self) -> None:
        self._data = bytearray(READ_BYTES)
        self._view = memoryview(self._data)

    def view(self) -> memoryview:
        """Return a buffer of `READ_BYTES` to read into. It is valid until `take`."""
        return self._view

    def take(self, count: int) -> bytes:
        """Return the first `count` bytes. Raises LocalError if the buffer is smaller."""
        if not 0 <= count <= READ_BYTES:
            raise LocalError(f"{count} bytes were taken of a read buffer of {READ_BYTES}")
        return bytes(self._view[:count])


class Reading:
    """The methods of :class:`asyncio.BufferedProtocol` that asyncio calls for each read."""

    __slots__ = ("_buffer", "receiver")

    def __init__(self, receiver: Receiver, buffer: ReadBuffer) -> None:
        self.receiver = receiver
        self._buffer = buffer

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to read into."""
        return self._buffer.view()

    def buffer_updated(self, nbytes: int) -> None:
        """Pass the bytes to the receiver."""
        self.receiver.received(self._buffer.take(nbytes))
