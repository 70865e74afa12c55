"""Frames of a run of items, and of one item. An input is numbers: options, then offsets, then the bytes of the run."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from typing import Any, Final

from tests.builds import Build

from fuzz.outcomes import attempt
from fuzz.targets import Difference

HEAD: Final = struct.Struct(">iHhbBBB")
MAX_ITEMS: Final = 16
OWN: Final = (0, 3)
METADATA: Final = 0x100


def seeds() -> Iterator[bytes]:
    """Yield runs with and without metadata, of one width, and with offsets that are wrong."""
    for offsets in ((-1, 0, 3, 3, 5, 9, -1, 9, 9), (0, 0, 4, -1, 2, 1), (5, 4, 3), (-2, 0, 1), (0, 1, 99)):
        packed = struct.pack(f">{len(offsets)}h", *offsets)
        for limit in (0, 1, 20, 1_000):
            yield HEAD.pack(7, 0x2820, limit, 0, len(offsets) // 3, len(offsets) // 3, 0) + packed + b"0123456789"
    yield HEAD.pack(1, 0x2820, 100, 0, 4, 3, 1) + b"0123456789"
    yield HEAD.pack(-1, 0xFFFF, -1, -1, 1, 1, 0) + struct.pack(">3h", 0, 1, 2) + b"abc"


def _run(build: Build, data: bytes) -> tuple[Any, ...]:
    """Return the numbers at the start, and the run."""
    numbers = HEAD.unpack(data[: HEAD.size].ljust(HEAD.size, b"\0"))
    count = numbers[4] % (MAX_ITEMS + 1)
    rest = data[HEAD.size :]
    made = build.module("weirpool.payload").PayloadRun
    if numbers[6] & 1:
        return *numbers, attempt(build, made.fixed, rest, max(count, 1), 0, len(rest) // max(count, 1))
    size = 6 * count
    offsets = array("i", struct.unpack(f">{3 * count}h", rest[:size].ljust(size, b"\0")))
    return *numbers, made(rest[size:], offsets, 0)


def outcome(build: Build, data: bytes) -> object:
    """Return the frames, or errors, and the items of the run."""
    stream_id, kind, limit, start, _, stop, options, run = _run(build, data)
    if isinstance(run, tuple):
        return run
    packing = build.module("weirpool.wire.rsocket.packing")
    own = OWN[options >> 1 & 1]
    whole = attempt(build, run.payloads, start, stop)
    items = whole if isinstance(whole, tuple) else [(item.metadata, item.data) for item in whole]
    part = attempt(build, run.part, start, stop)
    parted = part if isinstance(part, tuple) else [(item.metadata, item.data) for item in part.payloads()]
    found: list[object] = [
        items,
        parted,
        attempt(build, packing.pack_run, stream_id, kind, run, start, stop, limit, own),
    ]
    buffers = build.module("weirpool.wire.buffers").ColumnBuffers()
    found.append(attempt(build, buffers.append, run, start, stop))
    taken = buffers.take()
    found.append([taken.rows, taken.nulls, *(bytes(column) for column in taken[1:6])])
    metadata, item = items[0] if isinstance(items, list) and items else (None, b"one")
    found.append(attempt(build, packing.pack, stream_id, kind, limit, metadata, item, own))
    found.append(attempt(build, packing.pack_head, stream_id, kind, metadata, limit, own))
    return found


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare the items with those that simple slices find in the frames."""
    if isinstance(found, tuple) or isinstance(found[2], tuple):
        return
    rest, items = b"".join(found[2]), []
    own = OWN[data[11] >> 1 & 1] if len(data) > 11 else 0
    while rest:
        end = 3 + int.from_bytes(rest[:3], "big") - own
        kind = int.from_bytes(rest[7:9], "big")
        body, rest = rest[9:end], rest[end:]
        size = 3 + int.from_bytes(body[:3], "big") if kind & METADATA else 0
        items.append((body[3:size] if size else None, body[size:]))
    if items != found[0]:
        raise Difference(f"slices are {items}, but items {found[0]}")
