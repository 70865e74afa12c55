"""Length prefixes. The first two bytes of an input select the options and the size of pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.builds import Build

from fuzz.outcomes import attempt, pieces
from fuzz.targets import Difference

MAX_FRAME_BYTES: Final = 1_000
MIN_FRAME_BYTES: Final = (0, 6)
COUNTS: Final = (None, False, True)


def seeds() -> Iterator[bytes]:
    """Yield two frames in each way of framing."""
    for prefix in (3, 4):
        for options in range(24):
            first = (8).to_bytes(prefix, "big") + b"12345678"
            yield bytes((options | (prefix == 4), 5)) + first + (2_000).to_bytes(prefix, "big") + bytes(2_000)


def _options(data: bytes) -> dict[str, Any]:
    bits = data[0] if data else 0
    return {
        "prefix": 4 if bits & 1 else 3,
        "max_frame_bytes": MAX_FRAME_BYTES,
        "min_frame_bytes": MIN_FRAME_BYTES[bits >> 1 & 1],
        "pass_over": bool(bits >> 2 & 1),
        "counts_itself": COUNTS[(bits >> 3) % 3],
    }


def outcome(build: Build, data: bytes) -> object:
    """Return the frames, the error if there is one, and the number of bytes that are left."""
    deframer = build.module("weirpool.wire.framing").Deframer(**_options(data))
    found: list[object] = []
    for piece in pieces(data[2:], data[1] if len(data) > 1 else 0):
        deframer.feed(piece)
        more = attempt(build, deframer.next)
        while more is True:
            long = deframer.oversized
            found.append(
                deframer.buffer[deframer.start : deframer.end] if long is None else (long.size, long.head, long.tail)
            )
            more = attempt(build, deframer.next)
        if more is not False:
            return found, more
    return found, deframer.pending


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare the frames with slices of the input."""
    options = _options(data)
    prefix, counts = options["prefix"], options["counts_itself"]
    own = prefix if (prefix == 4 if counts is None else counts) else 0
    rest, frames = data[2:], []
    while len(rest) >= prefix:
        size = int.from_bytes(rest[:prefix], "big")
        if own == prefix == 4:
            # ReactiveSocket 0.0: the top bit is reserved.
            size &= 0x7FFFFFFF
        size -= own
        skipped = size > MAX_FRAME_BYTES
        if size < options["min_frame_bytes"] or (skipped and not options["pass_over"]):
            break
        body = rest[prefix : prefix + size]
        if len(body) < size:
            break
        frames.append((size, body[:8_192], body[-8_192:]) if skipped else body)
        rest = rest[prefix + size :]
    if frames != found[0]:
        raise Difference(f"slices are {frames}, but frames {found[0]}")
