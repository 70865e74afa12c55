"""Every row of the table of threats is named by a test."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parent.parent
ROWS = {*range(1, 105)} - {78}
"""All rows but 78, which is about a tool that replays captures: there is none."""

_NAMED = re.compile(r"THREATS ((?:\d+(?:, | and )?)+)")


def named(text: str) -> set[int]:
    """Return the rows that tests name."""
    return {int(row) for found in _NAMED.findall(text) for row in re.findall(r"\d+", found)}


def test_every_row_has_a_test() -> None:
    tests = [path for path in TESTS.rglob("test_*.py") if path != Path(__file__)]
    rows = set().union(*(named(path.read_text()) for path in tests))
    assert ROWS - rows == set()


def test_rows_are_read_however_they_are_listed() -> None:
    assert named("# THREATS 3\n# THREATS 22, 24: both\n(THREATS 9). THREATS 30 and 31: two") == {3, 9, 22, 24, 30, 31}
