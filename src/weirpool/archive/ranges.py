"""An object of a store as a file of which only ranges are read."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final

from ..errors import JournalCorrupt
from ..objects import Store

__all__ = ["RangeFile"]

_HOLE_BYTES: Final = 64 * 1024
"""Ranges that are closer than this are read by one request: another one would take longer."""


class RangeFile(io.RawIOBase):
    """A file that holds some ranges of an object; the others cannot be read.

    Args:
        store: The store.
        name: The object.
        size: Its size in bytes.
        tail: The last bytes of it.

    """

    def __init__(self, store: Store, name: str, size: int, tail: bytes) -> None:
        self._store = store
        self._name = name
        self._size = size
        self._tail = (size - len(tail), tail)
        self._held = [self._tail]
        self._at = 0

    def load(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Hold these ranges, each an offset and a size, instead of the ones before; `JournalCorrupt` if they are gone.

        Neighbours are read by one request.
        """
        held = []
        for start, end in _joined(ranges):
            data = self._store.get(self._name, start, end - start)
            if data is None or len(data) != end - start:
                raise JournalCorrupt(
                    f"{self._store.uri.partition('?')[0]}/{self._name}: the file is missing or cut off; restore it "
                    "from a copy of this log"
                )
            held.append((start, data))
        self._held = [*held, self._tail]

    def part(self, start: int, size: int) -> memoryview:
        """Return a range that is held; `OSError` if it is not."""
        at = bisect_right(self._held, start, key=lambda each: each[0]) - 1
        offset, data = self._held[max(at, 0)]
        if not offset <= start <= start + size <= offset + len(data):
            raise OSError(f"bytes {start} to {start + size} were not read before")
        return memoryview(data)[start - offset : start - offset + size]

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the current offset."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to another offset, and return it."""
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, which must be held."""
        left = max(0, self._size - self._at)
        length = left if size < 0 else min(size, left)
        data = bytes(self.part(self._at, length)) if length else b""
        self._at += length
        return data

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges in order as start and end, neighbours as one."""
    found: list[tuple[int, int]] = []
    for start, size in sorted(ranges):
        if found and start - found[-1][1] <= _HOLE_BYTES:
            found[-1] = found[-1][0], max(found[-1][1], start + size)
        else:
            found.append((start, start + size))
    return found
