"""The depth of JSON and MessagePack, and the ends of their values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.builds import Build

from fuzz.outcomes import attempt

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


def seeds() -> Iterator[bytes]:
    """Yield nested values of both formats."""
    yield b'{"a":[1,{"b":"\\"]"}],"c":null}'
    yield b"[" * 200
    yield b"\x82\xa1a\x93\x01\x81\xa1b\xc4\x02ab\xc0\xa1c\xcb" + bytes(8)
    yield b"\x91" * 200
    yield b"\xdd\xff\xff\xff\xff\xc9\0\0\0\1\0a"


def outcome(build: Build, data: bytes) -> object:
    """Return what all functions find."""
    depth = build.module("penstock.depth")
    found: list[object] = [
        attempt(build, scan, data, limit) for scan in (depth.json_too_deep, depth.msgpack_too_deep) for limit in LIMITS
    ]
    for at in (0, 1, len(data) // 2):
        found.append(attempt(build, depth.skip_json, data, at))
        found += [attempt(build, depth.skip_msgpack, data, at, count) for count in (1, 3)]
    return found
