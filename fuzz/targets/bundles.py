"""Bundles of a group, with valid checksums. An input is the length of the header, the header, and the content."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Final

import msgspec
import xxhash
from tests.builds import Build

from fuzz.outcomes import attempt

LINES: Final = True
LENGTHS: Final = struct.Struct("<8sIQ")
MAGIC: Final = b"penstck2"
WORDS: Final = (b"\xcf\x40" + bytes(7), b"\xcf" + b"\xff" * 8, b"\xc0", b"\x90", b"\xdd\xff\xff\xff\xff", b"../", MAGIC)


def seeds() -> Iterator[bytes]:
    """Yield bundles with and without rows, and one that is damaged."""
    parts = [
        ["a", "log a", 5, 8, "head", 6, b"state", b"identity", None, "", "", {"lake": [7, "query", None]}],
        ["b", "log b", 9, 9, "head", 0, None, None, b"", "", "", {}],
        ["c", "log c", 0, 1, "head", 4],
    ]
    for chosen, content in (([], b""), (parts, b"rows a" + b"rowc"), (parts[1:], b"rowc"), (parts, b"")):
        header = {
            "number": 7, "owner": "o", "epoch": 2, "time": 3, "previous": "p", "snapshot": 7, "floor": 1,
            "checksum": b"", "parts": chosen,
        }  # fmt: skip
        text = msgspec.msgpack.encode(header)
        yield b"\0" + len(text).to_bytes(2, "big") + text + content
    yield b"\1" + b"\0\0" + MAGIC


def _framed(data: bytes, *, sound: bool) -> bytes:
    """Return a bundle of an input; with `sound`, its header has the checksum of the content."""
    end = 2 + int.from_bytes(data[:2], "big")
    text, content = data[2:end], data[end:]
    if sound:
        try:
            fields = msgspec.msgpack.decode(text)
            fields["checksum"] = xxhash.xxh3_128_digest(content)
            text = msgspec.msgpack.encode(fields)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, OverflowError):
            pass
    return LENGTHS.pack(MAGIC, len(text), xxhash.xxh3_64_intdigest(text)) + text + content


def outcome(build: Build, data: bytes) -> object:
    """Return the parts of a bundle and their rows, which must be disjoint and all of its content."""
    module = build.module("weirpool.replica.bundle")
    bundle = _framed(data[1:], sound=True) if not data[:1] or data[0] % 2 == 0 else data[1:]
    found = attempt(build, module.decode, bundle, "bundle")
    if isinstance(found, tuple):
        return found
    parts = found.header.parts
    rows = [bytes(found.batches(part.source)) for part in parts]
    assert b"".join(rows) == bytes(found.content), "the parts are not the content"
    again, digest = module.encode(found.header, rows)
    assert module.decode(again, "again").header == found.header and len(digest) == len(hashlib.sha256().hexdigest())
    for cut in (0, 7, 19, 20, 40, len(bundle) - 1):
        # Of a part of a bundle no more than the header can be known.
        attempt(build, module.decode_header, bundle[:cut], "bundle")
    return repr(found.header), rows
