"""Which ranges of positions a log has, and the errors for others."""

from __future__ import annotations

from pathlib import Path

import pytest

from weirpool import DataLost, LocalError
from weirpool.journal import JournalReader, JournalWriter
from weirpool.journal.bounds import check_range, lost_rows
from weirpool.journal.retention import trim

from .logs import SOURCE, append, write


@pytest.fixture
def trimmed(tmp_path: Path) -> JournalReader:
    """A reader of a log that holds positions 20 to 49."""
    folder = write(tmp_path, *[10] * 5, segment_bytes=1)
    trim(folder, 20, retain_bytes=0)
    return JournalReader(tmp_path, SOURCE)


@pytest.mark.parametrize(("start", "end"), [(20, 50), (20, 20), (35, 36), (50, 50)])
def test_ranges_in_the_log(trimmed: JournalReader, start: int, end: int) -> None:
    check_range(trimmed, "log", start, end)
    assert (trimmed.first, trimmed.end) == (20, 50)


def test_an_empty_range_needs_no_rows(trimmed: JournalReader) -> None:
    check_range(trimmed, "log", 5, 5)
    with pytest.raises(DataLost):
        check_range(trimmed, "log", 5, 6)


@pytest.mark.parametrize(
    ("start", "end", "lost"),
    [(0, 10, "0 to 9"), (0, 50, "0 to 19"), (19, 21, "19 to 19"), (0, 70, "0 to 19"), (40, 51, "50 to 50")],
)
def test_the_first_missing_rows_are_named(trimmed: JournalReader, start: int, end: int, lost: str) -> None:
    with pytest.raises(DataLost, match=f"^log: positions {lost} are not in the log, which holds 20 to 49;"):
        check_range(trimmed, "log", start, end)


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (30, 29)])
def test_there_is_no_such_range(trimmed: JournalReader, start: int, end: int) -> None:
    with pytest.raises(LocalError, match=f"^log: there is no range from {start} to {end}"):
        check_range(trimmed, "log", start, end)


def test_a_range_beyond_the_end_refreshes_the_reader(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
        append(writer, 5)
        reader = JournalReader(tmp_path, SOURCE)
        append(writer, 5)
        check_range(reader, "log", 0, 5)
        assert reader.end == 5
        check_range(reader, "log", 0, 10)
        assert reader.end == 10


def test_an_empty_log_is_named_as_such(tmp_path: Path) -> None:
    JournalWriter.open(tmp_path, SOURCE, fsync=False).close()
    error = lost_rows(JournalReader(tmp_path, SOURCE), "log", 0, 5)
    assert str(error).startswith("log: positions 0 to 4 are not in the log, which is empty;")
