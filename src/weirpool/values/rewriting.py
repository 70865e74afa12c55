"""Replaces values that msgspec or cbor2 do not read as their writers mean them, without decoding.

`rewriting.pyx` does the same in the compiled build, because data may have millions of values.
"""

from __future__ import annotations

from typing import Final

from ..depth import after_cbor, after_msgpack

__all__ = ["usual_cbor", "usual_msgpack"]

# How msgpackr writes `undefined`: extension type 0 with one byte.
_UNDEFINED: Final = b"\xd4\x00\x00"
_NIL: Final = b"\xc0"
_EXTENSIONS: Final = b"\xd4\xd7\xc7"
# MessagePack, Timestamp extension type: nanoseconds are the first 30 bits of 64, or the first 32 of 96.
_TIMESTAMP_64: Final = b"\xd7\xff"
_TIMESTAMP_96: Final = b"\xc7\x0c\xff"
# RFC 8949, Simple Values.
_CBOR_NULL: Final = b"\xf6"
_CBOR_UNDEFINED: Final = 0xF7


def usual_msgpack(data: bytes, undefined: bool) -> bytes:
    """Return MessagePack whose timestamps have whole microseconds.

    Args:
        data: One or more values. Those after a malformed one stay as they are.
        undefined: Replace msgpackr's `undefined` by nil.

    """
    parts: list[bytes] = []
    kept = at = 0
    size = len(data)
    while at < size:
        start = at
        at, _ = after_msgpack(data, at)
        if at > size:
            break
        if data[start] in _EXTENSIONS:
            found = data[start:at]
            parts += data[kept:start], _NIL if undefined and found == _UNDEFINED else _floored(found)
            kept = at
    return b"".join((*parts, data[kept:])) if parts else data


def _floored(extension: bytes) -> bytes:
    """Return an extension; if it is a timestamp with nanoseconds, without those beyond the microsecond."""
    if extension.startswith(_TIMESTAMP_64):
        number = int.from_bytes(extension[2:], "big")
        return _TIMESTAMP_64 + (number - (number >> 34) % 1_000 * (1 << 34)).to_bytes(8, "big")
    if extension.startswith(_TIMESTAMP_96):
        number = int.from_bytes(extension[3:7], "big")
        return _TIMESTAMP_96 + (number - number % 1_000).to_bytes(4, "big") + extension[7:]
    return extension


def usual_cbor(data: bytes) -> bytes:
    """Return CBOR with null for `undefined`."""
    parts: list[bytes] = []
    kept = at = 0
    size = len(data)
    while at < size:
        if data[at] == _CBOR_UNDEFINED:
            parts += data[kept:at], _CBOR_NULL
            kept = at + 1
        at, _ = after_cbor(data, at)
    return b"".join((*parts, data[kept:])) if parts else data
