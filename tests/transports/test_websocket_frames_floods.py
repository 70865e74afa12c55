from __future__ import annotations

import pytest
from websockets.frames import CloseCode, Opcode

from tests.transports.test_websocket_frames import frame, prefixed
from weirpool.transports.websocket_frames import SLICE, FrameReader


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
def test_control_frames_are_decoded_a_slice_at_a_time(opcode: Opcode) -> None:
    # THREATS 8: any number of them is allowed, and costs time.
    frames = reader()
    flood = b"".join(frame(opcode, b"%d" % number) for number in range(SLICE + 2)) + frame(Opcode.BINARY, b"x")
    assert frames.feed(flood) == b"" and frames.more
    assert frames.undecoded == len(frame(opcode, b"256")) * 2 + len(frame(Opcode.BINARY, b"x"))
    assert frames.feed(b"") == prefixed(b"x") and not frames.more
    assert frames.undecoded == 0 and frames.violation is None
    assert frames.ping == (b"%d" % (SLICE + 1) if opcode is Opcode.PING else None)


def test_data_that_arrives_between_slices_comes_after_the_rest() -> None:
    frames = reader()
    pings = frame(Opcode.PING) * SLICE
    first, second = frame(Opcode.BINARY, b"first"), frame(Opcode.BINARY, b"second")
    assert frames.feed(pings + first[:3]) == b"" and frames.more
    assert frames.feed(first[3:] + pings) == prefixed(b"first") and frames.more
    assert frames.feed(second) == prefixed(b"second") and not frames.more


def test_rest_is_forgotten_when_nothing_more_is_read() -> None:
    frames = reader()
    frames.feed(frame(Opcode.PING) * (SLICE + 1))
    frames.forget()
    assert not frames.more and frames.undecoded == 0
