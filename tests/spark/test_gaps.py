from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructField, StructType

from weirpool import JournalCorrupt, JournalMismatch, JournalMissing, LocalError
from weirpool.journal import gaps
from weirpool.journal.gaps import Gap
from weirpool.journal.layout import log_folder, segment_name
from weirpool.journal.reader import JournalReader
from weirpool.journal.writer import JournalWriter
from weirpool.spark import troubles
from weirpool.spark.gaps import GAP_COLUMNS, GapOffset, GapStreamReader, Seen
from weirpool.spark.polling import Poll

from .journals import Offset, datasource, fill, items, over_the_wire, run_task

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def lose(journal: Path, source: str, *reasons: str, rows: int = 0) -> None:
    """Have the collector record gaps, and then append rows."""
    with JournalWriter.open(journal, source, fsync=False) as writer:
        for reason in reasons:
            writer.append_gap(reason)
        if rows:
            writer.append(items(writer.position, writer.position + rows), "flights")


def find(journal: Path, first: int, end: int, reason: str, query: str | None = None) -> None:
    """Record a loss of rows that were written before."""
    gaps.add(log_folder(journal, "a"), [Gap(end, NOON, reason, lost=(first, end), query=query)])


def reader(journal: Path, **more: str) -> GapStreamReader:
    source = datasource(journal, rows="gaps", **more)
    made = source.streamReader(source.schema())
    assert isinstance(made, GapStreamReader)
    return made


def advance(one: GapStreamReader, start: Offset) -> Offset:
    return over_the_wire(one.latestOffset(start, ReadAllAvailable()))


def rows(one: GapStreamReader, start: Offset, end: Offset) -> list[dict[str, Any]]:
    parts = one.partitions(over_the_wire(start), over_the_wire(end))
    return [row for part in parts for batch in run_task(one, part) for row in batch.to_pylist()]


def reasons(one: GapStreamReader, start: Offset, end: Offset) -> list[str]:
    return [row["reason"] for row in rows(one, start, end)]


def test_a_batch_read_is_all_there_is_to_know(tmp_path: Path) -> None:
    lose(tmp_path, "a", rows=5)
    lose(tmp_path, "a", "the session had expired", rows=4)
    find(tmp_path, 2, 4, "damaged", query="q1")
    source = datasource(tmp_path, rows="gaps")
    one = source.reader(source.schema())
    (batch,) = (batch for part in one.partitions() for batch in run_task(one, part))
    assert batch.schema.equals(to_arrow_schema(GAP_COLUMNS, timezone="UTC"))
    late, gap = batch.to_pylist()
    assert isinstance(gap.pop("time"), datetime)
    gap.pop("previous_time")
    assert gap == {
        "source": "a", "position": 5, "last_position": 4, "lost_first": None, "lost_end": None, "query": None,
        "reason": "the session had expired",
    }  # fmt: skip
    assert late == {
        "source": "a", "position": 4, "time": NOON, "previous_time": None, "last_position": 1, "lost_first": 2,
        "lost_end": 4, "query": "q1", "reason": "damaged",
    }  # fmt: skip


def test_a_gap_before_the_first_row_has_no_row_before_it(tmp_path: Path) -> None:
    lose(tmp_path, "a", "never began")
    source = datasource(tmp_path, rows="gaps")
    one = source.reader(StructType([GAP_COLUMNS["last_position"], GAP_COLUMNS["position"]]))
    (batch,) = (batch for part in one.partitions() for batch in run_task(one, part))
    assert batch.to_pylist() == [{"last_position": None, "position": 0}]


def test_a_gap_that_is_recorded_while_spark_waits_is_in_the_answer(tmp_path: Path) -> None:
    lose(tmp_path, "a", "first", rows=5)
    one = reader(tmp_path)
    at = advance(one, one.initialOffset())
    looks = []

    def look() -> bool:
        looks.append(True)
        if len(looks) == 3:
            lose(tmp_path, "a", "second")
        return one._view is not None and one._view.may_have_changed()

    one._poll = Poll(look, sleep=lambda seconds: None)
    while (end := advance(one, at)) == at:
        pass
    assert reasons(one, at, end) == ["second"] and len(looks) == 3


def test_a_stream_has_each_gap_once(tmp_path: Path) -> None:
    lose(tmp_path, "a", "1", rows=5)
    at = reader(tmp_path).initialOffset()
    seen: list[str] = []
    for record in (
        lambda: None,
        lambda: None,
        lambda: lose(tmp_path, "a", "2", "3"),
        lambda: lose(tmp_path, "a", "4", rows=3),
        # Recorded late: its position is below that of gaps that were read.
        lambda: find(tmp_path, 2, 3, "late"),
        lambda: find(tmp_path, 1, 3, "later"),
        lambda: lose(tmp_path, "a", "5"),
        lambda: (find(tmp_path, 0, 1, "latest"), lose(tmp_path, "a", "6", rows=1)),
        lambda: lose(tmp_path, "b", "b1", rows=1),
    ):
        record()
        one = reader(tmp_path)
        end = advance(one, at)
        found = reasons(one, at, end)
        assert reasons(reader(tmp_path), at, end) == found
        assert bool(found) == (end != at)
        seen, at = seen + found, end
    assert seen == ["1", "2", "3", "4", "late", "later", "5", "6", "latest", "b1"]
    assert advance(reader(tmp_path), at) == at


def test_a_gap_that_is_damaged_for_a_while_comes_once(tmp_path: Path) -> None:
    lose(tmp_path, "a", "1", rows=5)
    at = advance(reader(tmp_path), reader(tmp_path).initialOffset())
    path = log_folder(tmp_path, "a") / segment_name(0)
    content = path.read_bytes()
    path.write_bytes(content[:600] + b"?" + content[601:])
    damaged = reader(tmp_path)
    assert JournalReader(tmp_path, "a").gaps() == []
    assert advance(damaged, at) == at
    path.write_bytes(content)
    one = reader(tmp_path)
    assert advance(one, at) == at
    lose(tmp_path, "a", "2")
    assert reasons(one, at, advance(one, at)) == ["2"]


def test_the_same_offsets_are_the_same_gaps(tmp_path: Path) -> None:
    # THREATS 79
    lose(tmp_path, "a", "1", rows=5)
    one = reader(tmp_path)
    start = one.initialOffset()
    end = advance(one, start)
    find(tmp_path, 0, 2, "late")
    lose(tmp_path, "a", "2")
    assert reasons(reader(tmp_path), start, end) == ["1"]
    assert reasons(reader(tmp_path), end, advance(reader(tmp_path), end)) == ["2", "late"]


@given(st.data())
def test_whatever_is_recorded_is_between_two_offsets_once(data: st.DataObject) -> None:
    recorded: list[Gap] = []
    seen = Seen(0, 0, 0)
    found: list[Gap] = []
    for at in range(data.draw(st.integers(0, 12))):
        last = max((gap.position for gap in recorded if not gap.number), default=0)
        if data.draw(st.booleans()):
            recorded.append(Gap(last + data.draw(st.integers(0, 2)), NOON - timedelta(seconds=at), str(at)))
        else:
            end = data.draw(st.integers(1, 5))
            number = 1 + max((gap.number for gap in recorded), default=0)
            recorded.append(Gap(end, NOON, str(at), lost=(0, end), number=number))
        if data.draw(st.booleans()):
            ordered = gaps.merge(recorded)
            end_seen = Seen.all_of(ordered)
            found += seen.between(end_seen, ordered)
            seen = end_seen
    ordered = gaps.merge(recorded)
    found += seen.between(Seen.all_of(ordered), ordered)
    assert sorted(gap.reason for gap in found) == sorted(gap.reason for gap in recorded)


def test_latest_begins_with_what_comes_after(tmp_path: Path) -> None:
    lose(tmp_path, "a", "before", rows=5)
    one = reader(tmp_path, startingOffsets="latest")
    start = one.initialOffset()
    settled = advance(one, start)
    assert settled != start and rows(one, start, settled) == []
    lose(tmp_path, "a", "after")
    lose(tmp_path, "b", "new")
    again = reader(tmp_path, startingOffsets="latest")
    assert reasons(again, settled, advance(again, settled)) == ["after", "new"]


@pytest.mark.parametrize("there", ["mounted", "unmounted"])
def test_latest_begins_when_the_query_does(tmp_path: Path, there: str) -> None:
    journal = tmp_path / "journal"
    lose(tmp_path / "disk", "a", "before", rows=5)
    find(tmp_path / "disk", 1, 2, "late, before")
    if there == "mounted":
        (tmp_path / "disk").rename(journal)
    one = reader(journal, startingOffsets="latest")
    start = one.initialOffset()
    settled = advance(one, start)
    assert settled != start and rows(one, start, settled) == []
    if there == "unmounted":
        (tmp_path / "disk").rename(journal)
    lose(journal, "a", "after")
    gaps.add(log_folder(journal, "a"), [Gap(3, datetime.now(UTC), "late, after", lost=(2, 3))])
    again = reader(journal, startingOffsets="latest")
    end = advance(again, settled)
    assert reasons(again, settled, end) == reasons(reader(journal), settled, end) == ["after", "late, after"]


def test_a_log_whose_gaps_are_damaged_hurts_only_itself_if_that_is_wanted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for source in "ab":
        lose(tmp_path, source, f"{source}1", rows=5)
    find(tmp_path, 1, 2, "late")
    path = log_folder(tmp_path, "a") / "_gaps"
    good = path.read_bytes()
    path.write_bytes(b"junk")
    strict, one = reader(tmp_path), reader(tmp_path, failOnDataLoss="false")
    start = one.initialOffset()
    with pytest.raises(JournalCorrupt, match="_gaps: the file is damaged"):
        advance(strict, start)
    end = advance(one, start)
    assert reasons(one, start, end) == ["b1"] and advance(one, end) == end
    assert caplog.text.count("the query continues without source 'a': ") == 1
    source = datasource(tmp_path, rows="gaps", failOnDataLoss="false")
    batch = source.reader(source.schema())
    assert [row["reason"] for part in batch.partitions() for b in run_task(batch, part) for row in b.to_pylist()] == [
        "b1"
    ]
    path.write_bytes(good)
    assert reasons(one, end, advance(one, end)) == ["a1", "late"]


def test_planned_gaps_wait_for_their_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(tmp_path / "journal", "a", "1")
    one = reader(tmp_path / "journal")
    start = one.initialOffset()
    end = advance(one, start)
    (tmp_path / "journal").rename(tmp_path / "away")
    with pytest.raises(JournalMissing):
        reader(tmp_path / "journal", journalTimeout="0").partitions(start, end)
    monkeypatch.setattr(troubles.time, "sleep", lambda _: (tmp_path / "away").rename(tmp_path / "journal"))
    assert reasons(reader(tmp_path / "journal"), start, end) == ["1"]


def test_a_bounded_run_ends_with_what_there_was(tmp_path: Path) -> None:
    lose(tmp_path, "a", "1")
    one = reader(tmp_path)
    one.prepareForTriggerAvailableNow()
    lose(tmp_path, "a", "2")
    lose(tmp_path, "b", "3")
    start = one.initialOffset()
    end = advance(one, start)
    assert reasons(one, start, end) == ["1"]
    assert advance(one, end) == end


def test_a_log_without_gaps_is_no_row(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    one = reader(tmp_path)
    start = one.initialOffset()
    end = advance(one, start)
    assert one.partitions(start, end) == []
    source = datasource(tmp_path, rows="gaps")
    batch = source.reader(source.schema())
    assert sum(found.num_rows for part in batch.partitions() for found in run_task(batch, part)) == 0


def test_another_journal_is_refused(tmp_path: Path) -> None:
    # THREATS 99
    lose(tmp_path / "one", "a", "1")
    lose(tmp_path / "two", "a", "1")
    one = reader(tmp_path / "one")
    end = advance(one, one.initialOffset())
    start = one.initialOffset()
    for attempt in (lambda two: two.latestOffset(end, ReadAllAvailable()), lambda two: two.partitions(start, end)):
        with pytest.raises(JournalMismatch):
            attempt(reader(tmp_path / "two"))


def test_a_journal_that_is_not_there_is_waited_for(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    one = reader(journal)
    start = one.initialOffset()
    assert one.latestOffset(start, ReadAllAvailable()) is start
    with pytest.raises(JournalMissing):
        reader(journal, journalTimeout="0").latestOffset(start, ReadAllAvailable())
    lose(journal, "a", "1")
    assert reasons(one, start, advance(one, start)) == ["1"]


def test_offsets_have_one_form(tmp_path: Path) -> None:
    offset = GapOffset("earliest", {"b": Seen(1, 2, 3), "a": Seen(0, 0, 0)}, {"b": "w", "a": "u"})
    assert json.dumps(offset.json()) == (
        '{"v": 2, "rows": "gaps", "from": "earliest", "sources": {"a": [0, 0, 0], "b": [1, 2, 3]}, '
        '"logs": {"a": "u", "b": "w"}}'
    )
    assert GapOffset.parse(over_the_wire(offset.json())) == offset


@pytest.mark.parametrize(
    "change",
    [
        {"v": 3},
        {"rows": "items"},
        {"from": 0},
        {"from": "2026-01-02T12:00:00"},
        {"more": 1},
        {"sources": []},
        {"sources": {"a": [0, 0]}},
        {"sources": {"a": [0, 0, -1]}},
        {"sources": {"a": [0, 0, 1.0]}},
        {"sources": {"a": 5}},
        {"sources": {}},
        {"logs": {"a": 5}},
        {"logs": []},
        {"sources": {"../a": [0, 0, 0]}, "logs": {"../a": "u"}},
    ],
)
def test_what_is_no_offset_is_refused(change: dict[str, Any]) -> None:
    # THREATS 82
    whole = {"v": 2, "rows": "gaps", "from": "earliest", "sources": {"a": [0, 0, 0]}, "logs": {"a": "u"}}
    GapOffset.parse(whole)
    with pytest.raises(LocalError, match="not an offset of this source"):
        GapOffset.parse({**whole, **change})


def test_columns_are_those_of_gaps(tmp_path: Path) -> None:
    source = datasource(tmp_path, rows="gaps")
    for field in (StructField("data", GAP_COLUMNS["reason"].dataType), GAP_COLUMNS["query"]):
        other = StructType([StructField(field.name, field.dataType, nullable=False)])
        with pytest.raises(LocalError):
            source.reader(other)


def test_workers_get_no_handles(tmp_path: Path) -> None:
    lose(tmp_path, "a", "1")
    one = reader(tmp_path)
    advance(one, one.initialOffset())
    there = cloudpickle.loads(cloudpickle.dumps(one))
    assert there._view is None and there._troubles is None
    assert isinstance(pa.schema([]), pa.Schema)
