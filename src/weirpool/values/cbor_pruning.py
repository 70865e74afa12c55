"""Leaves fields that nobody asked for out of CBOR, so that what is in them costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..depth import skip_cbor
from .conversion import Fields

__all__ = ["pruned"]

MAX_VALUES: Final = 65_536
"""Keys and elements to look at, which takes a tenth of a second. Real records have fewer."""

# RFC 8949, Specification of the CBOR Encoding: the first three bits of a value.
_TEXT, _ARRAY, _MAP, _TAG = 3, 4, 5, 6
_ENDLESS_ARRAY, _ENDLESS_MAP, _BREAK = b"\x9f", b"\xbf", 0xFF


def pruned(data: bytes, fields: Fields) -> bytes:
    """Return a value without the fields that are not among `fields`, and what follows it.

    Data that is not well-formed, or too large for this, stays as it is.
    """
    pruning = _Pruning(data)
    try:
        end = pruning.keep(0, fields)
    except _Kept:
        return data
    return bytes(pruning.kept) + data[end:]


class _Kept(Exception):
    """The data is to stay as it is."""


class _Pruning:
    """The way through some data, which ends with `_Kept` if there is nothing to gain."""

    def __init__(self, data: bytes) -> None:
        self.kept = bytearray()
        self._data = data
        self._left = MAX_VALUES

    def keep(self, at: int, fields: Fields) -> int:
        """Keep the fields of the value at an offset, and return its end."""
        if fields is None:
            return self._whole(at)
        end = self._end(at)
        major, start, count = self._head(at)
        if major == _TAG:
            self.kept += self._data[at:start]
            return self.keep(start, fields)
        if major == _MAP:
            self._pairs(start, count, fields)
        elif major == _ARRAY and isinstance(fields, list):
            self._elements(start, count, fields[0])
        else:
            return self._whole(at)
        return end

    def _pairs(self, at: int, count: int, fields: Mapping[str, Fields] | list[Fields]) -> None:
        self.kept += _ENDLESS_MAP
        while self._has_more(at, count):
            count -= 1
            value = self._end(at)
            inner: Fields = fields[0] if isinstance(fields, list) else None
            if isinstance(fields, Mapping) and (name := self._text(at, value)) is not None:
                if name not in fields:
                    at = self._end(value)
                    continue
                inner = fields[name]
            self._whole(at)
            at = self.keep(value, inner)
        self.kept.append(_BREAK)

    def _elements(self, at: int, count: int, fields: Fields) -> None:
        self.kept += _ENDLESS_ARRAY
        while self._has_more(at, count):
            count -= 1
            at = self.keep(at, fields)
        self.kept.append(_BREAK)

    def _has_more(self, at: int, count: int) -> bool:
        """Return True if there is another value, or pair; `count` are left, or a negative number if a break follows."""
        self._left -= 1
        if not self._left:
            raise _Kept
        return self._data[at] != _BREAK if count < 0 else count > 0

    def _whole(self, at: int) -> int:
        end = self._end(at)
        self.kept += self._data[at:end]
        return end

    def _end(self, at: int) -> int:
        end = skip_cbor(self._data, at)
        if end < 0:
            raise _Kept
        return end

    def _text(self, at: int, end: int) -> str | None:
        """Return the text of a key; None if it is another key, or in parts."""
        major, start, size = self._head(at)
        if major != _TEXT or size < 0:
            return None
        return self._data[start:end].decode(errors="replace")

    def _head(self, at: int) -> tuple[int, int, int]:
        """Return the kind of a value, the offset of its content, and its number: -1 for a value without a length."""
        major, info = self._data[at] >> 5, self._data[at] & 31
        if info == 31:
            return major, at + 1, -1
        width = 1 << (info - 24) if info >= 24 else 0
        number = int.from_bytes(self._data[at + 1 : at + 1 + width], "big") if width else info
        return major, at + 1 + width, number
