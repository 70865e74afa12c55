from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.journal.logs import SOURCE, append, items, numbers, segment, write
from weirpool import DataLost, JournalCorrupt, JournalMissing, LocalError
from weirpool.journal import SCHEMA, Journal, JournalReader, JournalWriter
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import trim

SMALL = 4_000
"""A segment of a few batches of five rows."""


def test_an_absent_log_is_missing(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(JournalMissing, match="source=s: there is no such log"):
            JournalReader(path, SOURCE)
    folder = write(tmp_path, 3)
    (folder / "_log.json").unlink()
    with pytest.raises(JournalCorrupt, match=r"no _log\.json"):
        JournalReader(tmp_path, SOURCE)


def test_a_log_without_rows_is_empty(tmp_path: Path) -> None:
    JournalWriter.open(tmp_path, SOURCE, fsync=False).close()
    reader = JournalReader(tmp_path, SOURCE)
    assert (reader.first, reader.end, reader.segments(), reader.gaps()) == (0, 0, [], [])
    assert list(reader.read(0, 0)) == reader.split(0, 0, max_rows=1) == []
    with pytest.raises(DataLost, match="positions 0 to 4 are not in the log, which is empty"):
        reader.read(0, 5)
    write(tmp_path, 5)
    assert numbers(reader, 0, 5) == list(range(5))


def test_segments_have_the_times_of_their_earliest_and_latest_row(tmp_path: Path) -> None:
    now = 0.0
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=SMALL, fsync=False, clock=lambda: now) as writer:
        # The clock goes back.
        for seconds in (3, 1, 2, 7, 6, 9):
            now = seconds
            writer.append(items(writer.position, 5), "numbers")
    reader = JournalReader(tmp_path, SOURCE)
    assert [extent.times for extent in reader.segments()] == [None, (6_000_000, 9_000_000)]
    reader.gaps()
    assert [extent.times for extent in reader.segments()] == [(1_000_000, 7_000_000), (6_000_000, 9_000_000)]


def test_rows_have_the_schema(tmp_path: Path) -> None:
    write(tmp_path, 2, 2)
    for batch in JournalReader(tmp_path, SOURCE).read(1, 3):
        assert batch.schema.equals(SCHEMA, check_metadata=True)


def log_and_range(path: Path, counts: list[int], data: st.DataObject) -> tuple[JournalReader, int, int]:
    """Write a log of several segments; return its reader, and the start and end of any range."""
    write(path, *counts, segment_bytes=SMALL)
    start = data.draw(st.integers(0, sum(counts)))
    end = data.draw(st.integers(start, sum(counts)))
    return JournalReader(path, SOURCE), start, end


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data())
def test_any_range_gives_just_its_rows(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], data: st.DataObject
) -> None:
    reader, start, end = log_and_range(tmp_path_factory.mktemp("journal"), counts, data)
    assert (reader.first, reader.end) == (0, sum(counts))
    assert numbers(reader, start, end) == list(range(start, end))


@settings(max_examples=40)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.data())
def test_parts_make_up_the_range(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], data: st.DataObject
) -> None:
    reader, start, end = log_and_range(tmp_path_factory.mktemp("journal"), counts, data)
    max_rows = data.draw(st.none() | st.integers(1, 40))
    max_bytes = data.draw(st.none() | st.integers(1, 5_000))
    parts = reader.split(start, end, max_rows=max_rows, max_bytes=max_bytes)
    assert [position for part in parts for position in range(*part)] == list(range(start, end))
    assert all(first < behind for first, behind in parts)
    if max_rows is not None:
        assert all(behind - first <= max_rows for first, behind in parts)
    elif max_bytes is None:
        assert len(parts) == (start < end)


def test_parts_end_where_batches_do(tmp_path: Path) -> None:
    write(tmp_path, 10, 10, 10, 35, 5)
    reader = JournalReader(tmp_path, SOURCE)
    assert reader.split(0, 70, max_rows=25) == [(0, 20), (20, 30), (30, 47), (47, 70)]
    assert reader.split(5, 70) == [(5, 70)]
    assert [reader.locate(position) for position in (0, 9, 10, 69)] == [(0, 10), (0, 10), (10, 20), (65, 70)]
    size = reader.bytes_between(0, 70)
    assert len(reader.split(0, 70, max_bytes=size // 3)) in (4, 5)
    with pytest.raises(LocalError, match="max_rows is 0"):
        reader.split(0, 70, max_rows=0)
    with pytest.raises(DataLost):
        reader.split(0, 71)
    with pytest.raises(DataLost):
        reader.locate(70)


def test_segments_and_their_bytes(tmp_path: Path) -> None:
    folder = write(tmp_path, 5, 5, 5, segment_bytes=1)
    reader = JournalReader(tmp_path, SOURCE)
    extents = reader.segments()
    assert [(extent.first, extent.end) for extent in extents] == [(0, 5), (5, 10), (10, 15)]
    assert [extent.size for extent in extents] == [segment(folder, first).stat().st_size for first in (0, 5, 10)]
    assert reader.bytes_between(0, 15) == sum(extent.size for extent in extents)
    assert reader.bytes_between(5, 10) == extents[1].size


def test_large_batches_lie_in_the_file_and_small_ones_are_joined(tmp_path: Path) -> None:
    write(tmp_path, 10, 10, 9_000, 10)
    batches = list(JournalReader(tmp_path, SOURCE).read(0, 9_030))
    assert [batch.num_rows for batch in batches] == [20, 9_000, 10]
    wide = [100, 100, 9_000]
    with JournalWriter.open(tmp_path / "wide", SOURCE, fsync=False) as writer:
        for count in (100, 100):
            writer.append(items(writer.position, count, width=20_000), "wide")
        append(writer, 9_000)
    assert [batch.num_rows for batch in JournalReader(tmp_path / "wide", SOURCE).read(0, 9_200)] == wide
    allocated = pa.total_allocated_bytes()
    held = list(JournalReader(tmp_path / "wide", SOURCE).read(0, 9_200))
    assert pa.total_allocated_bytes() - allocated < 10_000
    assert sum(batch.num_rows for batch in held) == 9_200


def test_some_columns_are_returned_alone(tmp_path: Path) -> None:
    write(tmp_path, 9_000, 10, 20)
    reader = JournalReader(tmp_path, SOURCE)
    whole = pa.Table.from_batches(reader.read(5, 9_020))
    some = pa.Table.from_batches(reader.read(5, 9_020, columns=("data", "position")))
    assert some.equals(whole.select(["data", "position"]))


def test_joined_batches_stay_within_bounds(tmp_path: Path) -> None:
    write(tmp_path, *[3_000] * 7)
    sizes = [batch.num_rows for batch in JournalReader(tmp_path, SOURCE).read(0, 21_000)]
    assert sizes == [9_000, 9_000, 3_000]


def test_what_is_appended_shows_on_a_refresh(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=SMALL, fsync=False) as writer:
        reader = JournalReader(tmp_path, SOURCE)
        for count in range(1, 25):
            append(writer, count)
            assert reader.end == writer.position - count
            reader.refresh()
            assert reader.end == writer.position
        assert numbers(reader) == list(range(writer.position))


def test_reading_goes_on_while_the_reader_looks_again(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        append(writer, 9_000, 9_000, 9_000)
        reader = JournalReader(tmp_path, SOURCE)
        batches = reader.read(0, 27_000)
        rows = next(batches).num_rows
        append(writer, 5, 5)
        reader.refresh()
        assert rows + sum(batch.num_rows for batch in batches) == 27_000


def test_a_range_that_is_there_by_now_needs_no_refresh(tmp_path: Path) -> None:
    write(tmp_path, 5)
    reader = JournalReader(tmp_path, SOURCE)
    write(tmp_path, 5)
    assert numbers(reader, 0, 10) == list(range(10))
    assert reader.end == 10


def test_ranges_that_make_no_sense(tmp_path: Path) -> None:
    write(tmp_path, 5)
    reader = JournalReader(tmp_path, SOURCE)
    for start, end in ((3, 2), (-1, 2)):
        with pytest.raises(LocalError, match="no range from"):
            reader.read(start, end)
    with pytest.raises(DataLost, match="positions 5 to 6 are not in the log, which holds 0 to 4"):
        reader.read(3, 7)


def test_what_is_trimmed_is_named(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    write(tmp_path, *[5] * 10, segment_bytes=1)
    reader = journal.reader(SOURCE)
    unaware = journal.reader(SOURCE)
    started = unaware.read(10, 50)
    assert journal.trim(SOURCE, 20, retain_bytes=0) == 20
    reader.refresh()
    assert (reader.first, reader.end) == (20, 50)
    for start, end, lost in ((0, 50, "0 to 19"), (10, 15, "10 to 14"), (19, 21, "19 to 19")):
        with pytest.raises(DataLost, match=f"positions {lost} are not in the log, which holds 20 to 49"):
            reader.read(start, end)
    assert numbers(reader, 20, 50) == list(range(20, 50))
    # One that did not know finds out on the way.
    with pytest.raises(DataLost, match="positions 10 to 14"):
        list(started)
    with pytest.raises(DataLost, match="positions 10 to"):
        unaware.split(10, 50, max_rows=5)


def test_gaps_are_reported_once(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False, clock=lambda: 1.5) as writer:
        writer.append_gap("at the start")
        append(writer, 4)
        writer.append_gap("in between")
        append(writer, 4)
        writer.append_gap("at the end")
    reader = JournalReader(tmp_path, SOURCE)
    assert numbers(reader) == list(range(8))
    assert [(gap.position, gap.reason) for gap in reader.gaps()] == [
        (0, "at the start"),
        (4, "in between"),
        (8, "at the end"),
    ]
    assert [gap.time.timestamp() for gap in reader.gaps()] == [1.5] * 3
    ranges = [(0, 2), (2, 4), (4, 5), (5, 8)]
    assert [[gap.position for gap in reader.gaps(*part)] for part in ranges] == [[0], [], [4], []]
    assert [gap.position for gap in reader.gaps(5)] == [8]


def test_reading_while_it_is_written_and_trimmed(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    total = 3_000
    failures: list[BaseException] = []

    def produce() -> None:
        try:
            with journal.writer(SOURCE, segment_bytes=SMALL, fsync=False) as writer:
                while writer.position < total:
                    append(writer, min(1 + writer.position % 17, total - writer.position))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=produce)
    journal.writer(SOURCE).close()
    reader = journal.reader(SOURCE)
    thread.start()
    at = 0
    while at < total and not failures:
        reader.refresh()
        assert numbers(reader, at, reader.end) == list(range(at, reader.end))
        at = reader.end
        journal.trim(SOURCE, at, retain_bytes=0)
    thread.join()
    assert failures == []
    assert journal.reader(SOURCE).first > 0


def test_a_segment_that_goes_while_it_is_read_is_missing(tmp_path: Path) -> None:
    # THREATS 97: whatever was not trimmed must be there.
    folder = write(tmp_path, 9_000, 9_000, 9_000, 9_000, segment_bytes=1)
    batches = JournalReader(tmp_path, SOURCE).read(0, 36_000)
    assert next(batches).num_rows == 9_000
    segment(folder, 18_000).unlink()
    with pytest.raises(JournalCorrupt, match=r"positions 18000 to 26999 are damaged \(the file is missing"):
        list(batches)


def test_gaps_are_found_while_it_is_trimmed(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        for number in range(4):
            writer.append_gap(f"gap {number}")
            append(writer, 3)
    reader = JournalReader(tmp_path, SOURCE)
    trim(log_folder(tmp_path, SOURCE), 6, retain_bytes=0)
    assert [gap.reason for gap in reader.gaps()] == [f"gap {number}" for number in range(4)]
    reader = JournalReader(tmp_path, SOURCE)
    trim(log_folder(tmp_path, SOURCE), 9, retain_bytes=0)
    assert reader.damage() == []
