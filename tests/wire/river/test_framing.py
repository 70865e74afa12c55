from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import FrameError, LocalError
from penstock.wire.river.framing import deframer, framed


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(1, 50))
def test_messages_come_whole_however_they_are_cut(messages: list[bytes], size: int) -> None:
    stream = b"".join(map(framed, messages))
    cut = deframer(300)
    found = []
    for at in range(0, len(stream), size):
        cut.feed(stream[at : at + size])
        while cut.next():
            found.append(cut.buffer[cut.start : cut.end])
    assert found == messages and cut.pending == 0


def test_a_length_above_the_limit_is_refused_before_it_is_read() -> None:
    cut = deframer(1_000)
    cut.feed(b"\xff\xff\xff\xff")
    with pytest.raises(FrameError, match="4294967295 bytes, and at most 1000"):
        cut.next()


def test_a_message_too_long_for_its_length_is_refused() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 1 << 32

    with pytest.raises(LocalError, match="longer than its length"):
        framed(Huge())
