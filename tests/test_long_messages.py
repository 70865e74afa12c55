from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.long_messages import WINDOW, LongMessage


@given(st.lists(st.integers(0, 3 * WINDOW), max_size=6))
def test_both_ends_are_kept_however_it_comes(sizes: list[int]) -> None:
    whole = bytes(index % 251 for index in range(sum(sizes)))
    message, at = LongMessage(), 0
    for size in sizes:
        message.add(b"?" + whole, at + 1, at + 1 + size)
        at += size
    assert message.size == len(whole)
    assert message.head == whole[:WINDOW]
    assert message.tail == whole[-WINDOW:]
    pieces = b"".join(message.pieces())
    assert len(pieces) == len(whole)
    assert pieces[:WINDOW] == message.head and pieces[-WINDOW:] == message.tail


def test_what_lies_between_is_not_held() -> None:
    message = LongMessage()
    for _ in range(64):
        message.add(bytes(1 << 20), 0, 1 << 20)
    assert message.size == 64 << 20 and len(message.head) + len(message.tail) == 2 * WINDOW
    assert max(len(piece) for piece in message.pieces()) <= 1 << 20
