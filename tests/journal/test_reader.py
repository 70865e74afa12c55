from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import DataLost, Journal
from penstock.journal import JournalReader, JournalWriter
from tests.journal.batches import batch, numbers


def fill(path, *counts: int, **options) -> None:
    with JournalWriter.open(path, "s", **options) as writer:
        for count in counts:
            writer.append(batch(writer.position, count), "stream")


def test_an_absent_log_is_empty(tmp_path) -> None:
    reader = JournalReader(tmp_path, "s")
    assert (reader.first, reader.end) == (0, 0)
    assert list(reader.read(0, 0)) == []


def test_columns_are_what_spark_wants(tmp_path) -> None:
    fill(tmp_path, 3)
    (rows,) = JournalReader(tmp_path, "s").read(0, 3)
    assert str(rows.schema.field("time").type) == "timestamp[us, tz=UTC]"
    assert rows.schema.names == ["position", "time", "stream", "data", "metadata"]
    assert all(field.nullable for field in rows.schema)
    assert rows.column("metadata").to_pylist() == [b"m", None, None]


@settings(max_examples=30)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.data())
def test_any_range_gives_just_its_rows(tmp_path_factory, counts, data) -> None:
    path = tmp_path_factory.mktemp("journal")
    fill(path, *counts, segment_bytes=3_000)
    total = sum(counts)
    start = data.draw(st.integers(0, total))
    end = data.draw(st.integers(start, total))
    reader = JournalReader(path, "s")
    assert numbers(reader.read(start, end)) == list(range(start, end))
    parts = reader.split(start, end, max_rows=7)
    assert [number for part in parts for number in range(*part)] == list(range(start, end))
    assert all(0 < last - first <= 7 for first, last in parts)


def test_a_reader_sees_what_is_appended_when_it_looks(tmp_path) -> None:
    with JournalWriter.open(tmp_path, "s") as writer:
        reader = JournalReader(tmp_path, "s")
        for count in range(1, 20):
            writer.append(batch(writer.position, count), "stream")
            reader.refresh()
            assert reader.end == writer.position
        assert numbers(reader.read(0, reader.end)) == list(range(writer.position))


def test_gaps_are_reported_where_they_are(tmp_path) -> None:
    with JournalWriter.open(tmp_path, "s") as writer:
        writer.append(batch(0, 4), "stream")
        writer.append_gap("the publisher forgot us")
        writer.append(batch(4, 4), "stream")
    reader = JournalReader(tmp_path, "s")
    (gap,) = reader.gaps()
    assert (gap.position, gap.reason) == (4, "the publisher forgot us")
    assert reader.gaps(0, 4) == [] and reader.gaps(5, 8) == []
    assert numbers(reader.read(0, 8)) == list(range(8))


def test_trimming_frees_room_and_says_what_is_gone(tmp_path) -> None:
    journal = Journal(tmp_path)
    fill(tmp_path, *[50] * 20, segment_bytes=5_000)
    assert journal.sources() == ["s"]
    first = journal.trim("s", 800, retain_bytes=0)
    assert 0 < first <= 800
    reader = journal.reader("s")
    assert (reader.first, reader.end) == (first, 1000)
    assert numbers(reader.read(first, 1000)) == list(range(first, 1000))
    with pytest.raises(DataLost, match="0 to"):
        list(reader.read(0, 10))
    with journal.writer("s") as writer:
        assert writer.append(batch(1000, 1), "stream") == 1001
    report = journal.verify()["s"]
    assert (report.rows, report.sound) == (1001 - first, True)


def test_the_slowest_of_several_readers_rules(tmp_path) -> None:
    journal = Journal(tmp_path)
    fill(tmp_path, *[50] * 20, segment_bytes=5_000)
    journal.trim("s", 100, reader="slow", retain_bytes=0)
    assert journal.trim("s", 1000, reader="fast", retain_bytes=0) <= 100
