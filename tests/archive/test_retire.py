from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.archive.logs import broken, catalog, fill, glob_positions, positions, seal_all
from tests.archive.steps import Crash
from tests.journal.logs import SOURCE, append
from weirpool.archive import SealOptions
from weirpool.archive.retire import retire
from weirpool.errors import DataLost
from weirpool.journal import Journal, JournalWriter
from weirpool.journal.layout import log_folder
from weirpool.journal.sealed import load_sealed
from weirpool.objects import open_store

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def at_days(path: Path, *days: int) -> None:
    """Append three rows on each of these days, a last batch, and seal them."""
    day = 0
    with JournalWriter.open(
        path, SOURCE, segment_bytes=1, fsync=False, clock=lambda: (START + day * DAY).timestamp()
    ) as writer:
        for day in (*days, days[-1]):  # noqa: B007
            append(writer, 3)
    seal_all(path)


def daily(path: Path, *counts: int) -> None:
    """Append batches of so many rows, one a day, and seal them."""
    day = 0
    with JournalWriter.open(
        path, SOURCE, segment_bytes=1, fsync=False, clock=lambda: (START + day * DAY).timestamp()
    ) as writer:
        for day, count in enumerate(counts):  # noqa: B007
            append(writer, count)
    seal_all(path)


def retired(path: Path, after: timedelta, **options: float) -> int:
    return retire(path, SOURCE, SealOptions(**options), clock=lambda: (START + after).timestamp())  # type: ignore[arg-type]


def test_history_is_removed_by_age(tmp_path: Path) -> None:
    daily(tmp_path, 3, 4, 5, 6)
    keep = (2 * DAY).total_seconds()
    assert retired(tmp_path, 2 * DAY, keep=keep) == 0
    assert retired(tmp_path, 3.5 * DAY, keep=keep) == 7
    reader = Journal(tmp_path).reader(SOURCE)
    assert (reader.first, reader.end) == (7, 18) and positions(reader) == [*range(7, 18)]
    assert glob_positions(open_store(tmp_path)) == [*range(7, 12)]
    with pytest.raises(DataLost, match="positions 0 to 6 are not in the log"):
        list(reader.read(0, 18))


@pytest.mark.parametrize("wrong", [365, 1])
def test_a_clock_that_was_ahead_keeps_nothing_for_longer(tmp_path: Path, wrong: int) -> None:
    # THREATS 114: for one segment it was a year, or a day, ahead.
    at_days(tmp_path, 0, 1 + wrong, 2, 3)
    keep = (2 * DAY).total_seconds()
    assert retired(tmp_path, 3.5 * DAY, keep=keep) == 3
    assert retired(tmp_path, 4.5 * DAY, keep=keep) == 9


def test_history_is_removed_by_size(tmp_path: Path) -> None:
    daily(tmp_path, 3, 4, 5, 6)
    manifest = catalog(tmp_path).newest()
    assert manifest is not None
    assert retired(tmp_path, DAY, keep_bytes=sum(each.size for each in manifest.segments[1:])) == 3
    assert retired(tmp_path, DAY, keep_bytes=0) == 12
    assert positions(Journal(tmp_path).reader(SOURCE)) == [*range(12, 18)]
    fill(tmp_path, 7)
    seal_all(tmp_path)
    assert positions(Journal(tmp_path).reader(SOURCE)) == [*range(12, 25)]


def test_what_a_reader_needs_stays(tmp_path: Path) -> None:
    daily(tmp_path, 3, 4, 5, 6)
    Journal(tmp_path).trim(SOURCE, 5, reader="slow")
    assert retired(tmp_path, 99 * DAY, keep=0) == 3
    Journal(tmp_path).forget(SOURCE, "slow")
    assert retired(tmp_path, 99 * DAY, keep=0) == 12


def test_a_reader_that_has_begun_is_told(tmp_path: Path) -> None:
    daily(tmp_path, 3, 4, 5, 6)
    reader = Journal(tmp_path).reader(SOURCE)
    assert positions(reader, 0, 3) == [0, 1, 2]
    retired(tmp_path, 99 * DAY, keep=0)
    with pytest.raises(DataLost, match="positions 3 to 11"):
        positions(reader, 3, 12)


def test_a_kill_between_manifest_and_files_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    daily(tmp_path, 3, 4, 5, 6)

    def crash(*arguments: object) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr("weirpool.archive.retire._sweep", crash)
        with pytest.raises(Crash):
            retired(tmp_path, 3.5 * DAY, keep=0)
    assert positions(Journal(tmp_path).reader(SOURCE)) == [*range(12, 18)]
    retired(tmp_path, 3.5 * DAY, keep=0)
    assert glob_positions(open_store(tmp_path)) == []


def test_a_log_that_is_not_sealed_has_no_history(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4)
    assert retired(tmp_path, 99 * DAY, keep=0) == 0
    assert broken(tmp_path, 7, set()) == []


def test_pages_that_are_removed_meanwhile_are_rows_that_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weirpool.archive.manifest.MAX_SEGMENTS", 2)
    monkeypatch.setattr("weirpool.archive.manifest.PAGE_SEGMENTS", 2)
    monkeypatch.setattr("weirpool.archive.catalog.KEPT_VERSIONS", 1)
    monkeypatch.setattr("weirpool.archive.catalog._TIDY_EVERY", 1)
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        for count in range(8):
            writer.append_gap(f"gap {count}")
            append(writer, 2)
    seal_all(tmp_path)
    readers = [Journal(tmp_path).reader(SOURCE) for _ in range(5)]
    assert len(list(tmp_path.glob("source=*/_pages/*.json"))) == 3
    fill(tmp_path, 2, 2, gaps=(0,))
    seal_all(tmp_path)
    assert retired(tmp_path, 99 * DAY, keep_bytes=0) == 18
    fill(tmp_path, 2, 2, 2)
    seal_all(tmp_path)
    assert not list(tmp_path.glob("source=*/_pages/00000000000000000003*.json"))
    with pytest.raises(DataLost, match="positions 0 to 13 are not in the log"):
        positions(readers[0], 0, 14)
    with pytest.raises(DataLost, match="positions 2 to 13 are not in the log"):
        readers[1].split(2, 14)
    assert [gap.position for gap in readers[2].gaps()] == [*range(0, 18, 2)]
    # What it has seen in Arrow segments, and no sealed rows before that.
    assert readers[3].segments()[0].first == 14
    readers[4].refresh()
    assert positions(readers[4]) == [*range(18, 26)]


def test_a_kill_before_the_record_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    daily(tmp_path, 3, 4, 5, 6)

    def crash(*arguments: object) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr("weirpool.archive.retire.record_sealed", crash)
        with pytest.raises(Crash):
            retired(tmp_path, 3.5 * DAY, keep=0)
    retired(tmp_path, 3.5 * DAY, keep=0)
    state = load_sealed(log_folder(tmp_path, SOURCE))
    assert state is not None and (state.first, state.end, state.raw_bytes) == (12, 12, 0)
