"""A message that is longer than its receiver accepts, while it passes by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

__all__ = ["WINDOW", "LongMessage"]

WINDOW: Final = 8_192
"""Bytes that are kept of either end. The fields of River's messages but the payload have some 300."""
FILLER: Final = bytes(1 << 20)


class LongMessage:
    """The beginning and the end of a message; what lies between them is dropped as it comes.

    Attributes:
        size: How many bytes have come.
        head: The first of them, at most `WINDOW`.

    """

    __slots__ = ("_tail", "head", "size")

    def __init__(self) -> None:
        self.size = 0
        self.head = b""
        self._tail = b""

    def add(self, data: bytes, start: int, end: int) -> None:
        """Take ``data[start:end]``, which comes next."""
        self.size += end - start
        if len(self.head) < WINDOW:
            taken = min(end - start, WINDOW - len(self.head))
            self.head += data[start : start + taken]
            start += taken
        if end - start >= WINDOW:
            self._tail = data[end - WINDOW : end]
        elif end > start:
            self._tail = (self._tail + data[start:end])[-WINDOW:]

    @property
    def tail(self) -> bytes:
        """The last bytes, at most `WINDOW`; of a short message they are some of `head` as well."""
        return self._tail if len(self._tail) == WINDOW else (self.head + self._tail)[-WINDOW:]

    def pieces(self) -> Iterator[bytes]:
        """Yield as many bytes as there were, with zeros in the place of what was dropped."""
        yield self.head
        left = self.size - len(self.head) - len(self._tail)
        while left > 0:
            piece = FILLER[:left]
            left -= len(piece)
            yield piece
        yield self._tail
