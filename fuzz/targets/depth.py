"""The depth of JSON and MessagePack, and the ends of their values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from tests.builds import Build

from fuzz.outcomes import attempt
from fuzz.targets import Difference

LIMITS: Final = (0, 1, 5, 128)
WORDS: Final = (
    b"[",
    b"]",
    b"{",
    b"}",
    b'"',
    b"\\",
    b",",
    b":",
    b"\x91",
    b"\xdc\0\1",
    b"\xdf\0\0\0\1",
    b"\xc7\1\0",
    b"\xd9\2",
)

JSON: Final = json.JSONDecoder(
    strict=False, parse_int=str, parse_float=str, object_pairs_hook=lambda pairs: [value for _, value in pairs]
)
"""Reads all values as strings and lists."""
# MessagePack, Formats: first bytes, bytes of the length, and bytes in addition.
SCALARS: Final = {
    **dict.fromkeys((*range(0x80), *range(0xE0, 0x100), *range(0xC0, 0xC4)), (0, 0)),
    **{0xA0 + size: (0, size) for size in range(32)},
    **{0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)},
    **{0xCA: (0, 4), 0xCB: (0, 8), 0xCC: (0, 1), 0xCD: (0, 2), 0xCE: (0, 4), 0xCF: (0, 8)},
    **{0xD0: (0, 1), 0xD1: (0, 2), 0xD2: (0, 4), 0xD3: (0, 8)},
    **{0xD4: (0, 2), 0xD5: (0, 3), 0xD6: (0, 5), 0xD7: (0, 9), 0xD8: (0, 17)},
    **{0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)},
}
# First bytes, bytes of the count, and values for each.
CONTAINERS: Final = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}


def seeds() -> Iterator[bytes]:
    """Yield nested values of both formats."""
    yield b'{"a":[1,{"b":"\\"]"}],"c":null}'
    yield b"[" * 200
    yield b"\x82\xa1a\x93\x01\x81\xa1b\xc4\x02ab\xc0\xa1c\xcb" + bytes(8)
    yield b"\x91" * 200
    yield b"\xdd\xff\xff\xff\xff\xc9\0\0\0\1\0a"


def outcome(build: Build, data: bytes) -> object:
    """Return what all functions find."""
    depth = build.module("weirpool.depth")
    found: list[object] = [
        attempt(build, scan, data, limit) for scan in (depth.json_too_deep, depth.msgpack_too_deep) for limit in LIMITS
    ]
    for at in (0, 1, len(data) // 2):
        found.append(attempt(build, depth.skip_json, data, at))
        found += [attempt(build, depth.skip_msgpack, data, at, count) for count in (1, 3)]
    return found


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare the depth and the ends of valid values with a recursive count."""
    try:
        value, end = JSON.raw_decode(data.decode("latin-1"))
        if end == len(data):
            _compare("JSON", _depth(value), (*found[:4], found[8]), end)
    except (ValueError, RecursionError):
        pass
    try:
        depth, ends = 0, [0]
        while ends[-1] < len(data):
            end, inner = _msgpack(data, ends[-1])
            depth = max(depth, inner)
            ends.append(end)
    except (IndexError, RecursionError):
        return
    if data and ends[-1] == len(data):
        _compare("MessagePack", depth, (*found[4:8], found[9]), ends[1])


def _compare(what: str, depth: int, found: tuple[Any, ...], end: int) -> None:
    *too_deep, skipped = found
    if [offset < 0 for offset in too_deep] != [depth <= limit for limit in LIMITS] or skipped != end:
        raise Difference(f"{what} has {depth} levels and ends at {end}, but found was {found}")


def _depth(value: Any) -> int:
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _msgpack(data: bytes, at: int) -> tuple[int, int]:
    """Return the end and the depth of the value at an offset. Raises IndexError if the data ends earlier."""
    first, at = data[at], at + 1
    if first in SCALARS:
        width, more = SCALARS[first]
        end = at + width + more + int.from_bytes(data[at : at + width])
        if end > len(data):
            raise IndexError
        return end, 0
    width, each = CONTAINERS.get(first, (0, 2 if first < 0x90 else 1))
    count = int.from_bytes(data[at : at + width]) if width else first & 0x0F
    at, depth = at + width, 0
    for _ in range(each * count):
        at, inner = _msgpack(data, at)
        depth = max(depth, inner)
    return at, depth + 1
