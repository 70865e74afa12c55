"""The hot half of a protocol of asyncio's: reads into a buffer, and hands on what came.

`reading.pyx` does the same in the compiled build, and there a read that fills the buffer is not copied.
"""

from __future__ import annotations

from typing import Final

from ..errors import LocalError
from .base import Receiver

__all__ = ["READ_BYTES", "ReadBuffer", "Reading"]

READ_BYTES: Final = 131_072
"""Read at a time. asyncio polls before each read, and 64 KiB a poll cost a fifth of its speed; what is larger falls
out of the processor's cache before it is used."""


class ReadBuffer:
    """Where reads go. All links of an event loop may share one, because each read is taken before the next begins."""

    __slots__ = ("_octets", "_view")

    def __init__(self) -> None:
        self._octets = bytearray(READ_BYTES)
        self._view = memoryview(self._octets)

    def view(self) -> memoryview:
        """Return `READ_BYTES` bytes to read into. It is good until `take`."""
        return self._view

    def take(self, count: int) -> bytes:
        """Return the first `count` bytes, which were read. Raises LocalError if there are not so many."""
        if not 0 <= count <= READ_BYTES:
            raise LocalError(f"{count} bytes were taken of a read buffer of {READ_BYTES}")
        return bytes(self._view[:count])


class Reading:
    """What asyncio calls for each read of a :class:`asyncio.BufferedProtocol`."""

    __slots__ = ("_buffer", "receiver")

    def __init__(self, receiver: Receiver, buffer: ReadBuffer) -> None:
        self.receiver = receiver
        self._buffer = buffer

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return where to read to."""
        return self._buffer.view()

    def buffer_updated(self, nbytes: int) -> None:
        """Hand on what was read."""
        self.receiver.received(self._buffer.take(nbytes))
