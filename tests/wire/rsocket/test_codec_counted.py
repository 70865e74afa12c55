from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.builds import Build

FRAMES: dict[str, Callable[[Any, Any], bytes]] = {
    "frame": lambda codec, frames: codec.frame(frames.KeepaliveFrame(0x80, 7, b"data")),
    "payload": lambda codec, frames: codec.payload_frame(1, 0x20, b"metadata", b"data"),
    "head": lambda codec, frames: codec.payload_head(1, 0x20, None, 4) + b"data",
    "request": lambda codec, frames: codec.request_frame(6, 1, 0, 5, None, b"data"),
    "request-n": lambda codec, frames: codec.request_n_frame(1, 5),
    "cancel": lambda codec, frames: codec.cancel_frame(1),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_length_that_counts_itself_leaves_frames_unchanged(build: Build, make: Callable[[Any, Any], bytes]) -> None:
    # THREATS 6
    frames = build.module("weirpool.wire.rsocket.frames")
    counted = make(build.module("weirpool.wire.rsocket.codec").Codec(counts_itself=True), frames)
    strict = make(build.module("weirpool.wire.rsocket.codec").Codec(), frames)
    assert counted[3:] == strict[3:]
    assert int.from_bytes(counted[:3], "big") == len(counted) == int.from_bytes(strict[:3], "big") + 3
    deframer = build.module("weirpool.wire.framing").Deframer(counts_itself=True)
    deframer.feed(counted * 2)
    for _ in range(2):
        assert deframer.next()
        assert deframer.buffer[deframer.start : deframer.end] == strict[3:]
    assert not deframer.next()


def test_runs_with_such_lengths_are_read_one_by_one(build: Build) -> None:
    payload = build.module("weirpool.payload")
    run = payload.PayloadRun.of([payload.Payload(b"%d" % number) for number in range(100)])
    codec = build.module("weirpool.wire.rsocket.codec").Codec(counts_itself=True)
    deframer = build.module("weirpool.wire.framing").Deframer(counts_itself=True)
    items = []
    for piece in codec.run_frames(1, run, 10, 100):
        deframer.feed(piece)
        while deframer.next():
            assert codec.scan_run(deframer, 100) is None
            items.append(codec.decode(deframer.buffer, deframer.start, deframer.end).data)
    assert items == [b"%d" % number for number in range(10, 100)]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 8])
def test_length_shorter_than_a_header_is_refused(build: Build, length: int) -> None:
    # THREATS 2, 6
    deframer = build.module("weirpool.wire.framing").Deframer(counts_itself=True)
    deframer.feed(length.to_bytes(3, "big") + bytes(20))
    with pytest.raises(build.module("weirpool.errors").FrameError):
        deframer.next()
