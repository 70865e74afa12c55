from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from weirpool import JournalError, LocalError
from weirpool.journal.layout import log_folder
from weirpool.journal.reader import JournalReader
from weirpool.journal.since import first_since
from weirpool.journal.writer import JournalWriter
from weirpool.spark.cursor import Cursor
from weirpool.spark.offsets import Offset
from weirpool.spark.places import Start
from weirpool.spark.schema import COLUMNS

from .journals import (
    LATEST,
    NO_LIMITS,
    damage,
    datasource,
    driver,
    fill,
    item,
    items,
    numbers,
    quiet_collector,
    read_batch,
    segments,
    span,
    stream_reader,
)

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def second(number: float) -> datetime:
    return NOON + timedelta(seconds=number)


def collect(journal: Path, *seconds: float, rows: int = 10, segment_bytes: int = 1) -> JournalReader:
    """Append some rows at each of these seconds after noon."""
    now = NOON
    with JournalWriter.open(
        journal, "a", segment_bytes=segment_bytes, fsync=False, clock=lambda: now.timestamp()
    ) as writer:
        for number in seconds:
            now = second(number)
            writer.append(items(writer.position, writer.position + rows), "flights")
    return JournalReader(journal, "a")


@pytest.mark.parametrize("segment_bytes", [1, 1 << 26])
def test_first_row_since_a_time_is_found(tmp_path: Path, segment_bytes: int) -> None:
    reader = collect(tmp_path, *range(1, 8), segment_bytes=segment_bytes)
    assert len(segments(tmp_path, "a")) == (7 if segment_bytes == 1 else 1)
    for number in range(1, 8):
        assert first_since(reader, second(number)) == 10 * (number - 1)
        assert first_since(reader, second(number - 0.5)) == 10 * (number - 1)
    assert first_since(reader, second(8)) == reader.end == 70


def test_an_empty_log_begins_at_its_end(tmp_path: Path) -> None:
    assert first_since(collect(tmp_path), NOON) == 0


def test_damage_counts_as_received_since(tmp_path: Path) -> None:
    # Rows that came since may be in it, so the query must meet it.
    reader = collect(tmp_path, 1, 2, 3, 4, rows=10_000, segment_bytes=1 << 26)
    damage(segments(tmp_path, "a")[0], item(15_000))
    assert first_since(reader, second(3)) == 10_000
    assert first_since(reader, second(1)) == 0


def test_damaged_segments_count_as_received_since(tmp_path: Path) -> None:
    # The time of a batch is in its header.
    for part, found in ((b"item", 30), (b'"time":', 10)):
        reader = collect(tmp_path / part.hex(), 1, 2, 3, 4)
        for path in segments(tmp_path / part.hex(), "a")[1:3]:
            damage(path, part)
        assert first_since(reader, second(2)) == 10
        assert first_since(reader, second(4)) == found


# Queries that begin at "latest".


@pytest.mark.parametrize("begun", ["latest", {"a": "latest"}])
def test_latest_is_settled_at_once_even_if_there_is_nothing_to_read(tmp_path: Path, begun: Start) -> None:
    fill(tmp_path, "a", 5)
    one = driver(tmp_path)
    settled = one.advance(Offset(begun), NO_LIMITS)
    assert settled is not None and numbers(settled) == ({"a": 5}, {"a": 5})
    assert one.advance(settled, NO_LIMITS) is None
    fill(tmp_path, "a", 8)
    assert numbers(driver(tmp_path).advance(settled, NO_LIMITS)) == ({"a": 5}, {"a": 8})


@pytest.mark.parametrize("there", [True, False])
def test_latest_of_an_empty_journal_is_its_beginning(tmp_path: Path, there: bool) -> None:
    journal = tmp_path if there else tmp_path / "journal"
    settled = driver(journal).advance(LATEST, NO_LIMITS)
    assert settled is not None and numbers(settled) == ({}, {})
    fill(journal, "a", 5)
    assert numbers(driver(journal).advance(settled, NO_LIMITS)) == ({"a": 0}, {"a": 5})


def test_sources_that_come_later_are_read_from_their_beginning(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    one = driver(tmp_path)
    first = one.advance(LATEST, NO_LIMITS)
    assert first is not None
    fill(tmp_path, "b", 3)
    second = one.advance(first, NO_LIMITS)
    assert second is not None and numbers(second) == ({"a": 5, "b": 0}, {"a": 5, "b": 3})
    assert first.ranges(second) == {"b": (0, 3)}


def test_latest_of_a_log_that_cannot_be_read_yet_is_when_the_query_began(tmp_path: Path) -> None:
    for source in "ab":
        fill(tmp_path, source, 5)
    identity = log_folder(tmp_path, "b") / "_log.json"
    good = identity.read_bytes()
    identity.write_bytes(b"junk")
    settled = driver(tmp_path, failOnDataLoss="false").advance(LATEST, NO_LIMITS)
    assert settled is not None and numbers(settled) == ({"a": 5}, {"a": 5})
    assert driver(tmp_path, failOnDataLoss="false").advance(settled, NO_LIMITS) is None
    identity.write_bytes(good)
    fill(tmp_path, "b", 8)
    assert numbers(driver(tmp_path).advance(settled, NO_LIMITS)) == ({"a": 5, "b": 5}, {"a": 5, "b": 8})


@pytest.mark.parametrize("begun", ["latest", {"a": "latest"}])
@pytest.mark.parametrize("there", [True, False])
def test_latest_of_a_journal_that_is_not_mounted_is_when_the_query_began(
    tmp_path: Path, begun: Start, there: bool
) -> None:
    # THREATS 99: neither rows from before, as with "earliest", nor later ones left out.
    fill(tmp_path / "disk", "a", 5)
    journal = tmp_path / "journal"
    if there:
        journal.mkdir()
    settled = driver(journal).advance(Offset(begun), NO_LIMITS)
    assert settled is not None and settled.positions == {}
    fill(tmp_path / "disk", "a", 8)
    if there:
        journal.rmdir()
    (tmp_path / "disk").rename(journal)
    again = driver(journal)
    end = again.advance(Offset.parse(json.loads(json.dumps(settled.json()))), NO_LIMITS)
    assert numbers(end) == ({"a": 5}, {"a": 8})
    assert end is not None and again.plan(settled, end) == [span(journal, "a", 5, 8)]


def test_latest_of_a_source_that_is_mounted_later_is_when_the_query_began(tmp_path: Path) -> None:
    for source in "ab":
        fill(tmp_path, source, 5)
    log_folder(tmp_path, "b").rename(tmp_path / "away")
    settled = driver(tmp_path).advance(LATEST, NO_LIMITS)
    assert numbers(settled) == ({"a": 5}, {"a": 5})
    (tmp_path / "away").rename(log_folder(tmp_path, "b"))
    fill(tmp_path, "b", 7)
    fill(tmp_path, "c", 3)
    end = driver(tmp_path).advance(settled or LATEST, NO_LIMITS)
    assert numbers(end) == ({"a": 5, "b": 5, "c": 0}, {"a": 5, "b": 7, "c": 3})


def test_latest_of_a_journal_that_does_not_answer_is_when_the_query_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "a", 5)
    one = driver(tmp_path)

    def fail() -> None:
        raise JournalError("the disk does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(one.view, "refresh", fail)
        settled = one.advance(LATEST, NO_LIMITS)
    assert settled is not None and numbers(settled) == ({}, {})
    fill(tmp_path, "a", 8)
    assert numbers(one.advance(settled, NO_LIMITS)) == ({"a": 5}, {"a": 8})


def test_latest_of_a_name_that_cannot_be_claimed_yet_is_when_the_query_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, "a", 5)
    one = driver(tmp_path, reader="lake")

    def fail(*_: object, **__: object) -> None:
        raise JournalError("the collector cannot be reached")

    with monkeypatch.context() as patch:
        patch.setattr(Cursor, "claim", fail)
        settled = one.advance(LATEST, NO_LIMITS)
    assert settled is not None and numbers(settled) == ({}, {})
    fill(tmp_path, "a", 8)
    assert numbers(one.advance(settled, NO_LIMITS)) == ({"a": 5}, {"a": 8})


def test_a_name_that_is_mistyped_is_refused_when_the_journal_is_mounted(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    settled = driver(journal).advance(Offset({"cuont": "latest"}), NO_LIMITS)
    fill(journal, "count", 5)
    with pytest.raises(LocalError, match=r".startingOffsets. names source 'cuont', .*; its sources are count"):
        driver(journal).advance(settled or LATEST, NO_LIMITS)


def test_places_of_sources_that_have_no_rows_yet_are_kept(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    with quiet_collector(tmp_path, "b"):
        first = driver(tmp_path).advance(Offset({"a": 2, "b": 1}), NO_LIMITS)
    assert numbers(first) == ({"a": 2, "b": 1}, {"a": 5})
    fill(tmp_path, "b", 3)
    assert numbers(driver(tmp_path).advance(first or LATEST, NO_LIMITS)) == ({"a": 2, "b": 1}, {"a": 5, "b": 3})


# Queries that begin at a time.


@pytest.mark.parametrize("option", ["startingTimestamp", "startingOffsetsByTimestamp"])
def test_a_query_begins_with_the_first_row_since_a_time(tmp_path: Path, option: str) -> None:
    collect(tmp_path, 1, 2, 3)
    text = second(2).isoformat()
    one = driver(tmp_path, **{option: text if option == "startingTimestamp" else json.dumps({"a": text})})
    end = one.advance(Offset(one._options.starting), NO_LIMITS)
    assert end is not None and numbers(end) == ({"a": 10}, {"a": 30})
    again = Offset.parse(json.loads(json.dumps(end.json())))
    assert again == end and one.plan(Offset(one._options.starting), again) == [span(tmp_path, "a", 10, 30)]


def test_a_source_that_comes_later_begins_at_that_time_too(tmp_path: Path) -> None:
    fill(tmp_path, "b", 3)
    begun = Offset(second(2).isoformat())
    first = driver(tmp_path).advance(begun, NO_LIMITS)
    assert first is not None and first.since == second(2).isoformat()
    collect(tmp_path, 1, 2, 3)
    end = driver(tmp_path).advance(Offset.parse(json.loads(json.dumps(first.json()))), NO_LIMITS)
    assert end is not None and end.begun == {"a": 10, "b": 0}


def test_a_time_after_all_rows_is_the_end_unless_that_is_an_error(tmp_path: Path) -> None:
    collect(tmp_path, 1, 2, 3)
    begun = Offset(second(4).isoformat())
    assert numbers(driver(tmp_path).advance(begun, NO_LIMITS)) == ({"a": 30}, {"a": 30})
    strict = driver(tmp_path, startingOffsetsByTimestampStrategy="error")
    with pytest.raises(LocalError, match=r"source 'a' has no row that was received since 2026-01-02T12:00:04"):
        strict.advance(begun, NO_LIMITS)
    # Only where the query starts.
    assert (
        strict.advance(Offset({"a": 30}, {"a": 30}, {"a": JournalReader(tmp_path, "a").uuid}, "q1"), NO_LIMITS) is None
    )


def test_a_batch_is_what_was_received_between_two_times(tmp_path: Path) -> None:
    collect(tmp_path, 1, 2, 3)
    between = datasource(
        tmp_path,
        startingTimestamp=second(2).isoformat(),
        endingOffsetsByTimestamp=json.dumps({"a": round(second(3).timestamp() * 1000)}),
    )
    assert read_batch(between.reader(COLUMNS))["position"].to_pylist() == [*range(10, 20)]
    with pytest.raises(LocalError, match="ends at position 0, before its start, 10"):
        datasource(tmp_path, startingTimestamp=second(2).isoformat(), endingTimestamp=second(1).isoformat()).reader(
            COLUMNS
        ).partitions()


def test_places_in_time_skip_nothing_when_the_clock_was_set_back(tmp_path: Path) -> None:
    # THREATS 114: rows 0 to 9 came at 10 s, 10 to 19 at 20 s, then the clock was set back by 15 s.
    collect(tmp_path, 10, 20, 5, 15, 25)
    for since, until, rows in (
        (10, 21, range(40)),
        (16, 21, range(10, 40)),
        (6, 11, range(10)),
        (21, 30, range(40, 50)),
    ):
        start, end = second(since).isoformat(), second(until).isoformat()
        batch = datasource(tmp_path, startingTimestamp=start, endingTimestamp=end)
        assert read_batch(batch.reader(COLUMNS))["position"].to_pylist() == [*rows]
    # So does the latest position of a source that was not there when the query started.
    first = driver(tmp_path).advance(Offset(second(16).isoformat()), NO_LIMITS)
    assert numbers(first) == ({"a": 10}, {"a": 50})


@pytest.mark.parametrize(
    ("option", "end"),
    [
        ("endingOffsets", '{"a": 2}'),
        ("endingTimestamp", "2026-01-31T12:00:00Z"),
        ("endingOffsetsByTimestamp", '{"a": 0}'),
    ],
)
def test_a_stream_has_no_end(tmp_path: Path, option: str, end: str) -> None:
    with pytest.raises(LocalError, match="a stream has no end; the options endingOffsets, "):
        stream_reader(tmp_path, **{option: end})
    stream_reader(tmp_path, endingOffsets="latest")
