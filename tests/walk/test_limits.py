"""What grows is refused by its name; what shrinks lowers its limit."""

from __future__ import annotations

from pathlib import Path

from walk.limits import Limits, excesses, load, lowered, slack, text_of
from walk.rows import Row

ROWS = [Row("files", 13), Row("circles", 2), Row("chains", 5)]
LIMITS = Limits({"files": 13, "circles": 2, "chains": 5}, {"circles": 0})


def test_rows_at_their_limits_pass() -> None:
    assert excesses(ROWS, LIMITS) == []
    assert slack(ROWS, LIMITS) == []


def test_row_that_grew_is_named() -> None:
    assert excesses([Row("files", 14), *ROWS[1:]], LIMITS) == ["files: 14, more than the limit of 13"]


def test_row_without_limit_is_refused() -> None:
    assert excesses([*ROWS, Row("fresh", 0)], LIMITS) == ["fresh: 0, without a limit; run python -m walk --update"]


def test_limit_without_row_is_refused() -> None:
    assert excesses(ROWS[1:], LIMITS) == ["files: no longer measured; run python -m walk --update"]


def test_row_that_shrank_passes_and_is_told() -> None:
    rows = [Row("files", 12), *ROWS[1:]]
    assert excesses(rows, LIMITS) == []
    assert slack(rows, LIMITS) == ["files"]


def test_update_lowers_limits_and_raises_none() -> None:
    rows = [Row("files", 12), Row("circles", 3), Row("chains", 4), Row("fresh", 7)]
    fresh = lowered(rows, LIMITS)
    assert fresh == Limits({"files": 12, "circles": 2, "chains": 4, "fresh": 7}, {"circles": 0})
    assert excesses(rows, fresh) == ["circles: 3, more than the limit of 2"]


def test_update_forgets_rows_that_are_gone() -> None:
    assert lowered(ROWS[:1], LIMITS) == Limits({"files": 13}, {})


def test_limits_survive_the_file(tmp_path: Path) -> None:
    path = tmp_path / "limits.toml"
    path.write_text(text_of(LIMITS))
    assert load(path) == LIMITS


def test_file_is_as_update_writes_it() -> None:
    from walk.limits import LIMITS as FILE

    assert FILE.read_text() == text_of(load())
