"""Consecutive items of RSocket streams. The first two bytes of an input are the dialect and the size of pieces."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.builds import Build, load
from tests.hostile.mutations import DIALECTS, recorded

from fuzz.outcomes import attempt, pieces
from fuzz.targets import Difference

MAX_FRAME_BYTES: Final = 2_000


def seeds() -> Iterator[bytes]:
    """Yield the bytes of whole sessions."""
    build = load("plain")
    for number, dialect in enumerate(DIALECTS):
        for said in recorded(build, dialect):
            yield bytes((number, 0)) + said[:3_000]
            yield bytes((number, 40)) + said[:3_000]


def _read(build: Build, data: bytes, runs: bool) -> list[object]:
    codec = build.module("weirpool.wire.rsocket.dump").codec_of(DIALECTS[data[0] % 3] if data else DIALECTS[0])
    framing = build.module("weirpool.wire.framing")
    deframer = framing.Deframer(codec.prefix_bytes, MAX_FRAME_BYTES, codec.header_bytes)
    found: list[object] = []
    for piece in pieces(data[2:], data[1] if len(data) > 1 else 0):
        deframer.feed(piece)
        more = attempt(build, deframer.next)
        while more is True:
            stream_id = codec.stream_id(deframer.buffer, deframer.start)
            run = codec.scan_run(deframer, 7) if runs else None
            if run is None:
                frame = attempt(build, codec.decode, deframer.buffer, deframer.start, deframer.end)
                found.append(frame if isinstance(frame, tuple) else _shown(frame))
            else:
                found += [(10, stream_id, 0x20, item.metadata, item.data) for item in run.payloads()]
            more = attempt(build, deframer.next)
        if more is not False:
            return [*found, more]
    return found


def _shown(frame: Any) -> tuple[object, ...]:
    """Return the fields that items have; runs do not keep their flags."""
    flags = 0x20 if frame.type == 10 and frame.flags & ~0x31F == 0x20 else frame.flags
    return frame.type, frame.stream_id, flags, frame.metadata, frame.data


def outcome(build: Build, data: bytes) -> list[object]:
    """Return all frames, with runs as single items."""
    return _read(build, data, True)


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare the items of runs with single frames."""
    frames = _read(build, data, False)
    if frames != found:
        raise Difference(f"frame by frame: {frames}\nin runs: {found}")
