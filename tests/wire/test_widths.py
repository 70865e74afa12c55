from __future__ import annotations

from array import array
from typing import Any

import pytest

from tests.builds import Build


@pytest.fixture(scope="session")
def widths(build: Build) -> Any:
    return build.module("weirpool.wire.widths")


@pytest.fixture(scope="session")
def errors(build: Build) -> Any:
    return build.module("weirpool.errors")


@pytest.mark.parametrize("width", [0, 1, 8, 1000])
@pytest.mark.parametrize("rows", [0, 1, 7, 1 << 18, (1 << 18) + 1])
def test_ends_are_multiples_of_the_width(widths: Any, width: int, rows: int) -> None:
    ends = array("i", bytes(widths.ends_of(width, rows)))
    assert len(ends) == rows + 1
    assert ends.tolist() == ([at * width for at in range(rows + 1)])


def test_ends_are_made_once_for_some_widths(widths: Any) -> None:
    first = widths.ends_of(8, 10)
    assert widths.ends_of(8, 1000).obj is first.obj
    for width in range(100, 130):
        widths.ends_of(width, 1)
        assert len(widths._shared) <= widths.SHARED_WIDTHS
    # Offsets of very wide rows are not shared.
    before = len(widths._shared)
    assert array("i", bytes(widths.ends_of(1 << 20, 3))).tolist() == [0, 1 << 20, 2 << 20, 3 << 20]
    assert len(widths._shared) == before


def test_runs_are_limited_by_their_bytes(widths: Any) -> None:
    rows = widths.WidthRows(memoryview(bytes(range(64))), 8)
    assert len(rows) == 8
    run = rows.run(1, None, 20)
    assert (len(run), run.width, run.buffer) == (2, 8, bytes(range(8, 24)))
    # A run has at least one row, and tiny rows count as `MIN_ROW_BYTES`.
    assert len(rows.run(2, 5, 1)) == 1
    assert len(widths.WidthRows(memoryview(bytes(100)), 1).run(0, None, 40)) == 10
    assert len(rows.run(3, 3)) == 0


def test_invalid_rows_are_refused(widths: Any, errors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for data, width in ((b"abc", 2), (b"abc", 0)):
        with pytest.raises(errors.LocalError, match="cannot be divided into rows of"):
            widths.WidthRows(memoryview(data), width)
    rows = widths.WidthRows(memoryview(b"abcd"), 2)
    for start, stop in ((0, 3), (-1, 1), (2, 1)):
        with pytest.raises(errors.LocalError, match="record batch of 2"):
            rows.run(start, stop)
    monkeypatch.setattr(widths, "MAX_RUN_BYTES", 1)
    with pytest.raises(errors.LocalError, match="at most 1 bytes"):
        rows.run(0, 1)
