from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxRows
from pyspark.sql.types import StructType

from weirpool import DataLost, JournalCorrupt, JournalMissing, LocalError
from weirpool.journal import gaps
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import commits
from weirpool.spark.gaps import GAP_COLUMNS
from weirpool.spark.reading import TaskReader
from weirpool.spark.schema import COLUMNS

from .drivers import exit_code_of
from .journals import (
    advance,
    damage,
    datasource,
    fill,
    item,
    log_of,
    read_batch,
    read_between,
    run_task,
    segments,
    stream_reader,
)


def test_batch_read_is_the_whole_journal(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5, 12)
    fill(tmp_path, "b", 3)
    table = read_batch(datasource(tmp_path).reader(COLUMNS))
    rows = table.to_pylist()
    assert [(row["source"], row["position"]) for row in rows] == [
        *(("a", n) for n in range(12)),
        *(("b", n) for n in range(3)),
    ]
    assert rows[1] | {"time": None} == {
        "source": "a", "position": 1, "time": None, "stream": "flights", "data": item(1), "metadata": None,
    }  # fmt: skip
    assert table.schema.equals(to_arrow_schema(COLUMNS, timezone="UTC"))


def test_batch_read_may_begin_and_end_anywhere(tmp_path: Path) -> None:
    fill(tmp_path, "a", 20)
    fill(tmp_path, "b", 5)
    reader = datasource(tmp_path, startingOffsets='{"a": 4, "b": "latest"}', endingOffsets='{"a": 7}').reader(COLUMNS)
    assert read_batch(reader)["data"].to_pylist() == [item(4), item(5), item(6)]


def test_batch_read_reads_only_the_columns_of_the_schema(tmp_path: Path) -> None:
    fill(tmp_path, "a", 2)
    schema = StructType([COLUMNS["data"], COLUMNS["position"]])
    assert read_batch(datasource(tmp_path).reader(schema)).to_pylist() == [
        {"data": item(0), "position": 0},
        {"data": item(1), "position": 1},
    ]


def test_batch_read_of_no_rows_has_one_empty_task(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    reader = datasource(tmp_path, startingOffsets="latest").reader(COLUMNS)
    (part,) = reader.partitions()
    assert list(run_task(reader, part)) == []


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        (
            {"startingOffsets": '{"a": 4}', "endingOffsets": '{"a": 2}'},
            LocalError,
            "ends at position 2, before its start, 4",
        ),
        ({"startingOffsets": '{"a": 9}'}, DataLost, "ends at position 5, before 9"),
        ({"url": "rsocket+tcp://h:1", "route": "a"}, LocalError, "is for streams"),
        ({"source": "b"}, JournalMissing, "has no source 'b' in it; its sources are a"),
        ({"startingOffsets": '{"aa": 1}'}, LocalError, "\"startingOffsets\" names source 'aa', .*; its sources are a"),
        ({"endingOffsets": '{"aa": 1}'}, LocalError, "\"endingOffsets\" names source 'aa'"),
    ],
)
def test_batch_reads_that_cannot_be_are_explained(
    tmp_path: Path, more: dict[str, str], error: type[Exception], message: str
) -> None:
    fill(tmp_path, "a", 5)
    with pytest.raises(error, match=message):
        datasource(tmp_path, **more).reader(COLUMNS).partitions()


def test_batch_read_of_nothing_is_explained(tmp_path: Path) -> None:
    with pytest.raises(JournalMissing, match="check the path"):
        datasource(tmp_path / "typo").reader(COLUMNS).partitions()
    assert not (tmp_path / "typo").exists()


def test_first_offset_is_symbolic_and_always_the_same(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    reader = stream_reader(tmp_path, startingOffsets="latest")
    first = reader.initialOffset()
    fill(tmp_path, "a", 9)
    assert first == reader.initialOffset()
    assert first == {"v": 2, "query": None, "from": "latest", "sources": {}, "logs": {}}


def test_a_query_reads_every_row_once(tmp_path: Path) -> None:
    fill(tmp_path, "a", 7, 15)
    reader = stream_reader(tmp_path, maxRowsPerTrigger="4")
    at, seen = reader.initialOffset(), []
    for grow in (None, 17, None, None, None, 18, None, None):
        if grow:
            fill(tmp_path, "a", grow)
        end = advance(reader, at)
        if end == at:
            continue
        batch = read_between(reader, at, end)
        assert 0 < len(batch) <= 4
        seen += batch
        at = end
    assert seen == [item(n) for n in range(18)]
    assert advance(reader, at) == at


def test_the_same_offsets_are_the_same_rows_in_any_process(tmp_path: Path) -> None:
    # THREATS 79: after a crash Spark asks for the partitions of offsets that it had written down.
    fill(tmp_path, "a", 7)
    reader = stream_reader(tmp_path)
    start = reader.initialOffset()
    end = advance(reader, start)
    before = read_between(reader, start, end)
    reader.stop()
    fill(tmp_path, "a", 12)
    after = read_between(stream_reader(tmp_path, partitions="3"), start, end)
    assert before == after == [item(n) for n in range(7)]


def test_latest_that_was_planned_is_not_looked_up_anew(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    reader = stream_reader(tmp_path, startingOffsets="latest")
    start = reader.initialOffset()
    settled = advance(reader, start)
    assert read_between(reader, start, settled) == []
    reader.stop()
    fill(tmp_path, "a", 8)
    again = stream_reader(tmp_path, startingOffsets="latest")
    end = advance(again, settled)
    assert read_between(again, settled, end) == [item(n) for n in (5, 6, 7)]


def test_a_query_that_waits_returns_the_very_offset(tmp_path: Path) -> None:
    # THREATS 81: an end that equals the start has no rows.
    reader = stream_reader(tmp_path)
    start = reader.initialOffset()
    assert reader.latestOffset(start, ReadAllAvailable()) is start
    assert reader.partitions(start, start) == []


@pytest.mark.parametrize(("more", "limit"), [({}, ReadMaxBytes(1 << 30)), ({"maxRowsPerTrigger": "5"}, ReadMaxRows(5))])
def test_default_limit_is_that_of_the_options(tmp_path: Path, more: dict[str, str], limit: object) -> None:
    assert stream_reader(tmp_path, **more).getDefaultReadLimit() == limit


def test_both_limits_hold_whichever_spark_passes_on(tmp_path: Path) -> None:
    fill(tmp_path, "a", 1000)
    reader = stream_reader(tmp_path, maxRowsPerTrigger="500", maxBytesPerTrigger="1")
    assert advance(reader, reader.initialOffset())["sources"] == {"a": 1}
    # The trigger "once" takes all there is.
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable())["sources"] == {"a": 1000}


def test_available_now_ends_where_the_journal_ended(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    reader = stream_reader(tmp_path, maxRowsPerTrigger="3")
    reader.prepareForTriggerAvailableNow()
    fill(tmp_path, "a", 9)
    first = advance(reader, reader.initialOffset())
    second = advance(reader, first)
    assert (first["sources"], second["sources"]) == ({"a": 3}, {"a": 5})
    assert advance(reader, second) == second


def test_start_of_the_next_batch_is_committed(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    reader = stream_reader(tmp_path, reader="delays")
    start = reader.initialOffset()
    end = advance(reader, start)
    read_between(reader, start, end)
    assert commits(log_folder(tmp_path, "a")) == {"delays": 0}
    advance(reader, end)
    assert commits(log_folder(tmp_path, "a")) == {"delays": 5}


def test_commit_is_the_second_way(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    reader = stream_reader(tmp_path, reader="delays")
    end = advance(reader, reader.initialOffset())
    read_between(reader, reader.initialOffset(), end)
    reader.commit(end)
    assert commits(log_folder(tmp_path, "a")) == {"delays": 5}


def test_a_restarted_query_takes_its_name_before_it_reads(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    end = {"v": 2, "query": "q1", "from": {"a": 0}, "sources": {"a": 5}, "logs": {"a": log_of(tmp_path, "a")}}
    stream_reader(tmp_path, reader="delays").partitions({**end, "sources": {"a": 2}}, end)
    assert commits(log_folder(tmp_path, "a")) == {"delays": 2}


def test_a_batch_read_goes_on_without_a_bad_log_if_that_is_wanted(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 5)
    (log_folder(tmp_path, "b") / "_log.json").write_bytes(b"junk")
    with pytest.raises(JournalCorrupt, match="source=b"):
        datasource(tmp_path).reader(COLUMNS).partitions()
    table = read_batch(datasource(tmp_path, failOnDataLoss="false").reader(COLUMNS))
    assert set(table["source"].to_pylist()) == {"a"}


@pytest.mark.parametrize("rows", ["items", "gaps"])
def test_a_batch_read_leaves_no_trace(tmp_path: Path, rows: str) -> None:
    # THREATS 99: nothing is trimmed, held back or recorded, even if it names a reader that is in use.
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    owner = stream_reader(tmp_path, reader="r", retainBytes="0")
    owner.partitions(owner.initialOffset(), advance(owner, owner.initialOffset()))
    damage(segments(tmp_path, "a")[1], item(15))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    more = {"reader": "r", "retainBytes": "0"} if rows == "items" else {}
    source = datasource(tmp_path, rows=rows, failOnDataLoss="false", **more)
    assert read_batch(source.reader(source.schema())).num_rows == (20 if rows == "items" else 0)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_batch_is_the_same_in_a_reader_that_was_started_again(tmp_path: Path) -> None:
    # THREATS 79: damage that is passed over is passed over by the next driver, too.
    fill(tmp_path, "a", 10, 20, 30)
    damage(segments(tmp_path, "a")[0], item(15))
    start = stream_reader(tmp_path).initialOffset()
    reader = stream_reader(tmp_path, failOnDataLoss="false")
    end = advance(reader, start)
    first = read_between(reader, start, end)
    again = read_between(stream_reader(tmp_path, failOnDataLoss="false"), start, end)
    assert first == again == [item(n) for n in (*range(10), *range(20, 30))]


def test_bad_logs_among_fifty_hurt_only_themselves(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    names = [f"feed-{number:02}" for number in range(50)]
    for name in names:
        fill(tmp_path, name, 10, 20, segment_bytes=1)
    folders = {name: log_folder(tmp_path, name) for name in names}
    good = {
        name: (folders[name] / file).read_bytes() for name, file in (("feed-03", "_log.json"), ("feed-04", "_durable"))
    }
    (folders["feed-03"] / "_log.json").write_bytes(b"junk")
    (folders["feed-04"] / "_durable").write_bytes(b"junk")
    (folders["feed-05"] / "_gaps").write_bytes(b"junk")
    (folders["feed-06"] / "_trimmed").write_bytes(b"junk")
    segments(tmp_path, "feed-06")[0].unlink()
    damage(segments(tmp_path, "feed-07")[0], item(5))
    segments(tmp_path, "feed-08")[1].write_bytes(b"")
    segments(tmp_path, "feed-09")[0].unlink()
    reader = stream_reader(tmp_path, failOnDataLoss="false", reader="r")
    start = reader.initialOffset()
    seen: dict[str, list[int]] = {}

    def read_on(at: dict[str, Any]) -> dict[str, Any]:
        end = advance(reader, at)
        for part in reader.partitions(at, end):
            for batch in run_task(reader, part):
                for source, position in zip(*(batch[name].to_pylist() for name in ("source", "position")), strict=True):
                    seen.setdefault(source, []).append(position)
        return end

    at = read_on(start)
    aside = {"feed-03", "feed-04", "feed-05", "feed-06"}
    lossy = {"feed-07": range(10, 20), "feed-08": range(10), "feed-09": range(10, 20)}
    assert seen == {name: list(lossy.get(name, range(20))) for name in names if name not in aside}
    assert {name for name in names if f"without source '{name}'" in caplog.text} == aside
    # Others come, and some are repaired.
    fill(tmp_path, "feed-50", 5)
    for name, file in (("feed-03", "_log.json"), ("feed-04", "_durable")):
        (folders[name] / file).write_bytes(good[name])
    (folders["feed-05"] / "_gaps").unlink()
    (folders["feed-06"] / "_trimmed").unlink()
    at = read_on(at)
    assert seen.keys() == {*names, "feed-50"}
    assert {name: seen[name] for name in sorted({*aside, "feed-50"})} == {
        **{name: list(range(20)) for name in ("feed-03", "feed-04", "feed-05")},
        "feed-06": list(range(10, 20)),
        "feed-50": list(range(5)),
    }
    recorded = read_batch(datasource(tmp_path, rows="gaps").reader(GAP_COLUMNS)).to_pylist()
    assert [(gap["source"], gap["lost_first"], gap["lost_end"]) for gap in recorded] == [
        ("feed-06", 0, 10), ("feed-07", 0, 10), ("feed-08", 10, 20), ("feed-09", 0, 10),
    ]  # fmt: skip
    # One that is deleted on purpose has to be left out on purpose.
    shutil.rmtree(folders["feed-11"])
    with pytest.raises(JournalMissing, match=r"no source 'feed-11' .* name the remaining ones with the option source"):
        advance(reader, at)
    left = ",".join(name for name in (*names, "feed-50") if name != "feed-11")
    reader.stop()
    reader = stream_reader(tmp_path, failOnDataLoss="false", reader="r", source=left)
    assert advance(reader, at) == at
    fill(tmp_path, "feed-12", 25)
    read_on(at)
    assert seen["feed-12"] == list(range(25))


def test_progress_shows_how_far_the_journal_goes(tmp_path: Path) -> None:
    reader = stream_reader(tmp_path)
    advance(reader, reader.initialOffset())
    assert reader.reportLatestOffset() is None
    fill(tmp_path, "a", 5)
    advance(reader, reader.initialOffset())
    latest = reader.reportLatestOffset()
    assert latest is not None and latest["sources"] == {"a": 5}


def test_offsets_of_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="not an offset of this source"):
        stream_reader(tmp_path).latestOffset({"offset": 5}, ReadAllAvailable())


def test_workers_only_read(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    reader = stream_reader(tmp_path)
    start = reader.initialOffset()
    task = cloudpickle.loads(cloudpickle.dumps(reader))
    assert type(task) is TaskReader
    parts = reader.partitions(start, advance(reader, start))
    assert sum(batch.num_rows for part in parts for batch in task.read(part)) == 5


def test_making_a_reader_touches_nothing(tmp_path: Path) -> None:
    stream_reader(tmp_path / "journal", url="rsocket+tcp://127.0.0.1:1", route="flights").stop()
    assert not (tmp_path / "journal").exists()


def run_killed(tmp_path: Path, point: str, *, lossy: str = "strict") -> int:
    """Copy a journal with a driver that is killed at position 4000; return its exit code."""
    folders = (str(tmp_path / name) for name in ("journal", "c", "out"))
    return exit_code_of("tests.spark.killed", point, "4000", *folders, lossy)


def copy_the_rest(spark: SparkSession, tmp_path: Path, checkpoint: str = "c", out: str = "out", **more: str) -> None:
    rows = spark.readStream.format("weirpool").options(**more).load(str(tmp_path / "journal"))
    writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / checkpoint))
    assert writer.trigger(availableNow=True).start(str(tmp_path / out)).awaitTermination(100)


def positions(spark: SparkSession, out: Path) -> list[int]:
    return sorted(row.position for row in spark.read.parquet(str(out)).select("position").collect())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("point", ["partitions", "task", "commit"])
def test_after_a_kill_every_row_is_there_once(spark: SparkSession, tmp_path: Path, point: str) -> None:
    # THREATS 79
    fill(tmp_path / "journal", "a", *range(1_000, 10_001, 1_000), segment_bytes=1)
    assert run_killed(tmp_path, point) == -signal.SIGKILL
    fill(tmp_path / "journal", "a", 11_000)
    copy_the_rest(spark, tmp_path, reader="killed", maxRowsPerTrigger="3000")
    assert positions(spark, tmp_path / "out") == list(range(11_000))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(("point", "code"), [("planned", -signal.SIGKILL), ("reader", 1)])
def test_a_loss_is_recorded_before_spark_commits(spark: SparkSession, tmp_path: Path, point: str, code: int) -> None:
    # THREATS 79, 99: the driver dies when the batch is planned, and was not written.
    fill(tmp_path / "journal", "a", *range(1_000, 10_001, 1_000), segment_bytes=1)
    damage(segments(tmp_path / "journal", "a")[4], item(4_500))
    assert run_killed(tmp_path, point, lossy="lossy") == code
    assert positions(spark, tmp_path / "out") == list(range(4_000))
    assert [gap.lost for gap in gaps.load(log_folder(tmp_path / "journal", "a"))] == [(4_000, 5_000)]
    damage(segments(tmp_path / "journal", "a")[7], item(7_500))
    for _ in range(2):
        copy_the_rest(spark, tmp_path, reader="killed", maxRowsPerTrigger="3000", failOnDataLoss="false")
        copy_the_rest(spark, tmp_path, "c-gaps", "gaps", rows="gaps")
    assert positions(spark, tmp_path / "out") == [*range(4_000), *range(5_000, 7_000), *range(8_000, 10_000)]
    rows = spark.read.parquet(str(tmp_path / "gaps")).collect()
    assert sorted((row.lost_first, row.lost_end) for row in rows) == [(4_000, 5_000), (7_000, 8_000)]
