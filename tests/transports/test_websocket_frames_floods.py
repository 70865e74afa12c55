from __future__ import annotations

import pytest
from websockets.frames import CloseCode, Opcode

from penstock.core.rates import Rate
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


@pytest.mark.parametrize("opcode", [Opcode.PING, Opcode.PONG])
def test_control_frames_are_limited(opcode: Opcode) -> None:
    # THREATS 8
    frames, rate = reader(), Rate(5, 30.0)
    frames.feed(frame(opcode) * 3)
    frames.limit_controls(rate, 100.0)
    frames.feed(frame(opcode, b"x") * 2)
    frames.limit_controls(rate, 129.0)
    assert (frames.violation, frames.controls) == (None, 0)
    frames.feed(frame(opcode) * 5)
    frames.limit_controls(rate, 130.0)
    assert frames.violation is None
    frames.feed(frame(opcode))
    frames.limit_controls(rate, 131.0)
    assert frames.violation is not None and frames.violation.code == CloseCode.POLICY_VIOLATION
    assert "max_control_frames" in frames.violation.reason


def test_earlier_violation_is_not_replaced() -> None:
    frames = reader()
    frames.feed(frame(Opcode.PING) * 9 + frame(Opcode.PING, masked=True))
    frames.limit_controls(Rate(5, 30.0), 0.0)
    assert frames.violation is not None and frames.violation.code == CloseCode.PROTOCOL_ERROR
