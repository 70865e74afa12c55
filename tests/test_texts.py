from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.texts import shown


def test_nothing_steers_a_terminal() -> None:
    assert shown("a\x1b[2J\x9b\x7f\r\0b") == "a\\x1b[2J\\x9b\\x7f\\x0d\\x00b"


def test_lines_and_columns_stay() -> None:
    assert shown("one\ttwo\nthrée") == "one\ttwo\nthrée"


@given(st.text())
def test_what_is_shown_is_shown_alike_again(text: str) -> None:
    assert shown(shown(text)) == shown(text)
    assert not any(character in shown(text) for character in map(chr, [*range(9), *range(11, 32), *range(127, 160)]))
