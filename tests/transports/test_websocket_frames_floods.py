from __future__ import annotations

import pytest
from websockets.frames import CloseCode, Opcode

from penstock.transports.websocket_frames import FrameReader
from tests.transports.test_websocket_frames import frame, prefixed


def reader(**options: int) -> FrameReader:
    return FrameReader(masked=False, max_bytes=1_000, width=3, max_empty=3, **options)


@pytest.mark.parametrize("size", [10, 2_000], ids=["kept", "skipped"])
def test_consecutive_empty_fragments_are_limited(size: int) -> None:
    # THREATS 48
    start, empty = frame(Opcode.BINARY, bytes(size), fin=False), frame(Opcode.CONT, fin=False)
    frames = reader(skip_long=True)
    frames.feed(start + 3 * empty + frame(Opcode.CONT, b"x", fin=False) + 3 * empty)
    assert frames.violation is None
    frames.feed(empty)
    assert frames.violation is not None and frames.violation.code == CloseCode.POLICY_VIOLATION
    assert "max_empty_fragments (3)" in frames.violation.reason


def test_empty_messages_and_ends_are_not_counted() -> None:
    frames = reader()
    ended = frame(Opcode.BINARY, b"x", fin=False) + frame(Opcode.CONT)
    assert frames.feed(frame(Opcode.BINARY) * 50 + ended * 50) == prefixed(*[b""] * 50, *[b"x"] * 50)
    assert frames.violation is None
