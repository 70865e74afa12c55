from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import FrameError
from penstock.wire.river_framing import MessageDeframer, framed


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(1, 50))
def test_messages_come_whole_however_they_are_cut(messages: list[bytes], size: int) -> None:
    stream = b"".join(map(framed, messages))
    deframer = MessageDeframer(300)
    found = []
    for at in range(0, len(stream), size):
        deframer.feed(stream[at : at + size])
        while (message := deframer.next()) is not None:
            found.append(message)
    assert found == messages and deframer.pending == 0


def test_a_length_above_the_limit_is_refused_before_it_is_read() -> None:
    deframer = MessageDeframer(1_000)
    deframer.feed(b"\xff\xff\xff\xff")
    with pytest.raises(FrameError, match="4294967295 bytes is announced, and at most 1000"):
        deframer.next()


def test_what_was_delivered_is_let_go() -> None:
    deframer = MessageDeframer(1_000)
    for _ in range(1_000):
        deframer.feed(framed(b"x" * 500) + b"\0")
        assert deframer.next() == b"x" * 500
        deframer.feed(framed(b"y")[1:])
        assert deframer.next() == b"y"
    assert len(deframer._buffer) < 200_000
