from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import DataLost, JournalCorrupt
from penstock.journal.layout import log_folder
from penstock.journal.retention import trim
from penstock.spark.partitions import JournalPartition, Range
from penstock.spark.reading import read
from penstock.spark.schema import COLUMNS, Projection

from .journals import damage, fill, item, options, segments


def positions(journal: Path, *ranges: Range, **more: str) -> list[int]:
    batches = read(options(journal, **more), Projection(COLUMNS), JournalPartition(list(ranges)))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert all(row["data"] == item(row["position"]) for row in rows)
    return [row["position"] for row in rows]


def test_reads_the_rows_of_its_ranges_and_no_others(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 25)
    fill(tmp_path, "b", 4)
    assert positions(tmp_path, Range("a", 5, 22), Range("b", 1, 3)) == [*range(5, 22), 1, 2]


def test_reads_the_same_again(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    first = positions(tmp_path, Range("a", 0, 10))
    fill(tmp_path, "a", 20)
    assert positions(tmp_path, Range("a", 0, 10)) == first
    assert positions(tmp_path, Range("a", 5, 20)) == [*range(5, 20)]


def test_a_journal_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20)
    assert positions(tmp_path, Range("a", 0, 20)) == [*range(20)]
    shutil.rmtree(log_folder(tmp_path, "a"))
    fill(tmp_path, "a", 7, 15)
    assert positions(tmp_path, Range("a", 0, 15)) == [*range(15)]


def test_a_damaged_row_ends_the_query_and_is_named(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30)
    damage(segments(tmp_path, "a")[0], item(15))
    with pytest.raises(JournalCorrupt, match="positions 10 to 19 are damaged"):
        positions(tmp_path, Range("a", 0, 30))


def test_damaged_rows_are_skipped_if_that_is_wanted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, "a", 10, 20, 30)
    damage(segments(tmp_path, "a")[0], item(15))
    assert positions(tmp_path, Range("a", 3, 28), failOnDataLoss="false") == [*range(3, 10), *range(20, 28)]
    assert "skipped positions 10 to 19 of source 'a'" in caplog.text


def test_a_segment_that_is_all_damaged_is_skipped(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    middle = segments(tmp_path, "a")[1]
    middle.write_bytes(bytes(middle.stat().st_size))
    assert positions(tmp_path, Range("a", 0, 30), failOnDataLoss="false") == [*range(10), *range(20, 30)]
    with pytest.raises(JournalCorrupt, match="positions 10 to 19"):
        positions(tmp_path, Range("a", 0, 30))


def test_rows_that_are_gone_end_the_query_and_are_named(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    trim(log_folder(tmp_path, "a"), 20, retain_bytes=0)
    with pytest.raises(DataLost, match="positions 5 to 19 are not in the log"):
        positions(tmp_path, Range("a", 5, 30))


def test_rows_that_are_gone_are_skipped_if_that_is_wanted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    trim(log_folder(tmp_path, "a"), 20, retain_bytes=0)
    assert positions(tmp_path, Range("a", 5, 30), failOnDataLoss="false") == [*range(20, 30)]
    assert "skipped positions 5 to 19 of source 'a'" in caplog.text


def test_a_segment_that_goes_while_it_is_read_is_a_loss(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10_000, 20_000, 30_000, segment_bytes=1)
    batches = read(options(tmp_path), Projection(COLUMNS), JournalPartition([Range("a", 0, 30_000)]))
    assert next(batches).num_rows == 10_000
    segments(tmp_path, "a")[1].unlink()
    with pytest.raises((DataLost, JournalCorrupt), match="10000 to 19999"):
        list(batches)


def test_nothing_is_left_of_a_log_that_is_gone(tmp_path: Path) -> None:
    assert positions(tmp_path, Range("a", 0, 5), failOnDataLoss="false") == []
    with pytest.raises(DataLost, match="positions 0 to 4"):
        positions(tmp_path, Range("a", 0, 5))


def test_workers_need_not_wait_for_pandas(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    code = (
        "import sys; from penstock.spark import options, partitions, reading, schema\n"
        "part = partitions.JournalPartition([partitions.Range('a', 0, 10)])\n"
        "parsed = options.SourceOptions.parse({'journal': sys.argv[1]})\n"
        "rows = sum(b.num_rows for b in reading.read(parsed, schema.Projection(schema.COLUMNS), part))\n"
        "print(rows, 'pandas' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert result.stdout == "10 False\n", result.stderr
