from __future__ import annotations

import re
import shutil
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import DataLost, JournalCorrupt, JournalMismatch, JournalMissing, LocalError
from penstock.journal import SCHEMA, Journal, JournalReader, JournalWriter
from penstock.journal.format import preamble
from penstock.journal.layout import log_folder
from penstock.journal.retention import trim
from tests.journal.logs import SOURCE, append, flip, items, numbers, segment, uuid, write

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


def test_rows_have_the_schema(tmp_path: Path) -> None:
    write(tmp_path, 2, 2)
    for batch in JournalReader(tmp_path, SOURCE).read(1, 3):
        assert batch.schema.equals(SCHEMA, check_metadata=True)


@settings(max_examples=40)
@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data())
def test_any_range_gives_just_its_rows(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal")
    write(path, *counts, segment_bytes=SMALL)
    total = sum(counts)
    start = data.draw(st.integers(0, total))
    end = data.draw(st.integers(start, total))
    reader = JournalReader(path, SOURCE)
    assert (reader.first, reader.end) == (0, total)
    assert numbers(reader, start, end) == list(range(start, end))


@settings(max_examples=40)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=12), st.data())
def test_parts_make_up_the_range(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal")
    write(path, *counts, segment_bytes=SMALL)
    start = data.draw(st.integers(0, sum(counts)))
    end = data.draw(st.integers(start, sum(counts)))
    max_rows = data.draw(st.none() | st.integers(1, 40))
    max_bytes = data.draw(st.none() | st.integers(1, 5_000))
    reader = JournalReader(path, SOURCE)
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


def test_a_tail_that_is_not_durable_is_not_there(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    with open(segment(folder), "ab") as file:
        file.write(b"\xff\xff\xff\xff half a batch")
    reader = JournalReader(tmp_path, SOURCE)
    assert numbers(reader) == list(range(3))
    # A segment with its name, but whose writer has not returned yet.
    shutil.copy(segment(folder), segment(folder, 3))
    reader.refresh()
    assert numbers(reader) == numbers(JournalReader(tmp_path, SOURCE)) == list(range(3))


def test_a_log_cut_below_its_mark_is_damaged(tmp_path: Path) -> None:
    # THREATS 80, 97: at every byte, and just the rows that are gone.
    folder = write(tmp_path, 3)
    before = segment(folder).stat().st_size
    write(tmp_path, 2)
    octets = segment(folder).read_bytes()
    for size in range(len(octets)):
        segment(folder).write_bytes(octets[:size])
        reader = JournalReader(tmp_path, SOURCE)
        kept = 3 if size >= before else 0
        assert reader.end == 5
        assert numbers(reader, 0, kept) == list(range(kept))
        with pytest.raises(JournalCorrupt, match=f"positions {kept} to 4 are damaged"):
            numbers(reader)
        assert reader.damage() == [(kept, 5)]


def test_a_copy_without_its_mark_holds_what_is_whole(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    before = segment(folder).stat().st_size
    write(tmp_path, 2)
    octets = segment(folder).read_bytes()
    (folder / "_durable").unlink()
    for size in range(0, len(octets), 7):
        segment(folder).write_bytes(octets[:size])
        assert numbers(JournalReader(tmp_path, SOURCE)) == list(range(3 if size >= before else 0))
    segment(folder).write_bytes(octets)
    assert numbers(JournalReader(tmp_path, SOURCE)) == list(range(5))


def test_a_mark_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    # THREATS 97
    folder = write(tmp_path, 3)
    for junk in (b"", b"junk", b"\0" * 5_000):
        (folder / "_durable").write_bytes(junk)
        with pytest.raises(JournalCorrupt, match="_durable: neither of its two slots has a valid mark"):
            JournalReader(tmp_path, SOURCE)


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    # THREATS 80
    folder = write(tmp_path, 3, 3, 3, 3, segment_bytes=2_500)
    files = sorted(folder.glob("*.arrows"))
    assert len(files) == 2
    for path in files:
        for offset in range(0, path.stat().st_size, 3):
            flip(path, offset, offset % 8)
            try:
                rows = numbers(JournalReader(tmp_path, SOURCE))
            except JournalCorrupt as error:
                assert re.search(
                    rf"{path.name}: (positions \d+ to \d+ are|a record before position \d+ is) damaged", str(error)
                )
            else:
                # Some bits of the schema mean nothing.
                assert offset < len(preamble(uuid(folder)))
                assert rows == list(range(12))
            flip(path, offset, offset % 8)
    assert numbers(JournalReader(tmp_path, SOURCE)) == list(range(12))


def test_damage_does_not_spoil_other_rows(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 3, 3, segment_bytes=1)
    flip(segment(folder, 3), segment(folder, 3).stat().st_size - 20)
    reader = JournalReader(tmp_path, SOURCE)
    assert numbers(reader, 0, 3) == [0, 1, 2]
    assert numbers(reader, 6, 9) == [6, 7, 8]
    with pytest.raises(JournalCorrupt, match="positions 3 to 5 are damaged"):
        numbers(reader, 0, 9)


def test_a_segment_that_is_cut_or_gone(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 3, 3, 3, segment_bytes=2_500)
    first, second = sorted(folder.glob("*.arrows"))
    following = int(second.stem)
    octets = first.read_bytes()
    first.write_bytes(octets[:-1])
    with pytest.raises(JournalCorrupt, match=rf"positions {following - 3} to {following - 1} are damaged"):
        numbers(JournalReader(tmp_path, SOURCE))
    first.unlink()
    reader = JournalReader(tmp_path, SOURCE)
    assert reader.first == 0
    with pytest.raises(JournalCorrupt, match=rf"positions 0 to {following - 1} are damaged \(the file is missing"):
        numbers(reader, 0, 12)


def test_a_hole_between_segments_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 3, 3, segment_bytes=1)
    segment(folder, 3).unlink()
    reader = JournalReader(tmp_path, SOURCE)
    batches = reader.read(0, 9)
    with pytest.raises(JournalCorrupt, match=r"00000.arrows: positions 3 to 5 are damaged \(its rows end before"):
        list(batches)
    assert numbers(reader, 6, 9) == [6, 7, 8]
    assert reader.damage() == [(3, 6)]


def test_a_last_segment_that_is_gone_is_named(tmp_path: Path) -> None:
    # THREATS 97
    folder = write(tmp_path, 3, 3, segment_bytes=1)
    for gone in (3, 0):
        segment(folder, gone).unlink()
        reader = JournalReader(tmp_path, SOURCE)
        assert reader.end == 6
        with pytest.raises(JournalCorrupt, match=r"03.arrows: positions 3 to 5 are damaged \(the file is missing"):
            numbers(reader, 3, 6)
    assert (reader.first, reader.damage()) == (0, [(0, 3), (3, 6)])


def test_a_log_that_is_gone_or_another_is_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    reader = JournalReader(tmp_path, SOURCE)
    before = reader.uuid
    shutil.rmtree(folder)
    with pytest.raises(JournalMissing):
        reader.refresh()
    # Whether it is shorter, or longer.
    for count in (2, 5):
        shutil.rmtree(folder, ignore_errors=True)
        write(tmp_path, count)
        with pytest.raises(JournalMismatch, match=f"the log with the UUID {before} was deleted, and another one"):
            reader.refresh()


def test_positions_that_go_back_are_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    old = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    write(tmp_path, 2)
    reader = JournalReader(tmp_path, SOURCE)
    for path, data in old.items():
        path.write_bytes(data)
    with pytest.raises(JournalCorrupt, match="ended at position 5 and now ends at 3"):
        reader.refresh()


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
