from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serving.served import serving
from weirpool import DataLost, JournalCorrupt, JournalMismatch, JournalMissing
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import trim
from weirpool.spark import reading
from weirpool.spark.partitions import JournalPartition, Range
from weirpool.spark.reading import read
from weirpool.spark.schema import COLUMNS, Projection

from .journals import damage, fill, item, log_of, options, segments, span


def positions(journal: Path, *ranges: Range, **more: str) -> list[int]:
    batches = read(options(journal, **more), Projection(COLUMNS), JournalPartition(list(ranges)))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert all(row["data"] == item(row["position"]) for row in rows)
    return [row["position"] for row in rows]


def test_reads_the_rows_of_its_ranges_and_no_others(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 25)
    fill(tmp_path, "b", 4)
    assert positions(tmp_path, span(tmp_path, "a", 5, 22), span(tmp_path, "b", 1, 3)) == [*range(5, 22), 1, 2]


def test_reads_the_same_again(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    first = positions(tmp_path, span(tmp_path, "a", 0, 10))
    fill(tmp_path, "a", 20)
    assert positions(tmp_path, span(tmp_path, "a", 0, 10)) == first
    assert positions(tmp_path, span(tmp_path, "a", 5, 20)) == [*range(5, 20)]


def test_a_log_that_was_created_again_is_not_read(tmp_path: Path) -> None:
    # THREATS 99
    fill(tmp_path, "a", 10)
    planned = span(tmp_path, "a", 0, 10)
    shutil.rmtree(log_folder(tmp_path, "a"))
    fill(tmp_path, "a", 15)
    for lossy in ("true", "false"):
        with pytest.raises(
            JournalMismatch, match=f"is log {log_of(tmp_path, 'a')} on this machine, but log {planned.log}"
        ):
            positions(tmp_path, planned, failOnDataLoss=lossy)
    assert positions(tmp_path, span(tmp_path, "a", 0, 15)) == [*range(15)]


@pytest.mark.parametrize("lossy", ["true", "false"])
def test_a_damaged_row_fails_the_task_and_is_named(tmp_path: Path, lossy: str) -> None:
    fill(tmp_path, "a", 10, 20, 30)
    damage(segments(tmp_path, "a")[0], item(15))
    with pytest.raises(JournalCorrupt, match="positions 10 to 19"):
        positions(tmp_path, span(tmp_path, "a", 0, 30), failOnDataLoss=lossy)


@pytest.mark.parametrize("lossy", ["true", "false"])
def test_rows_that_are_gone_fail_the_task_and_are_named(tmp_path: Path, lossy: str) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    trim(log_folder(tmp_path, "a"), 20, retain_bytes=0)
    with pytest.raises(DataLost, match="positions 5 to 19"):
        positions(tmp_path, span(tmp_path, "a", 5, 30), failOnDataLoss=lossy)


def test_a_segment_that_goes_while_it_is_read_is_a_loss(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10_000, 20_000, 30_000, segment_bytes=1)
    batches = read(options(tmp_path), Projection(COLUMNS), JournalPartition([span(tmp_path, "a", 0, 30_000)]))
    assert next(batches).num_rows == 10_000
    segments(tmp_path, "a")[2].unlink()
    with pytest.raises((DataLost, JournalCorrupt), match="20000 to 29999"):
        list(batches)


@pytest.mark.parametrize("lossy", ["true", "false"])
@pytest.mark.parametrize("gone", ["log", "journal", "mount"])
def test_a_journal_that_this_machine_does_not_see_fails_the_task(tmp_path: Path, gone: str, lossy: str) -> None:
    # THREATS 99: it is never "lost". The disk is not mounted here, or only its empty folder is there.
    journal = tmp_path / "journal"
    fill(journal, "a", 10)
    planned = span(journal, "a", 0, 10)
    (log_folder(journal, "a") if gone == "log" else journal).rename(tmp_path / "elsewhere")
    if gone == "mount":
        journal.mkdir()
    code = (
        "import sys; from weirpool.spark import options, partitions, reading, schema\n"
        "journal, lossy, log = sys.argv[1:]\n"
        "part = partitions.JournalPartition([partitions.Range('a', 0, 10, log)])\n"
        "parsed = options.SourceOptions.parse({'journal': journal, 'failOnDataLoss': lossy})\n"
        "try:\n    print(list(reading.read(parsed, schema.Projection(schema.COLUMNS), part)))\n"
        "except Exception as error:\n    print(type(error).__name__)"
    )
    command = [sys.executable, "-c", code, str(journal), lossy, planned.log]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.stdout == "JournalMissing\n", result.stderr


def test_a_journal_that_goes_while_a_worker_lives_fails_the_task(tmp_path: Path) -> None:
    fill(tmp_path / "journal", "a", 10)
    planned = span(tmp_path / "journal", "a", 0, 10)
    assert positions(tmp_path / "journal", planned) == [*range(10)]
    (tmp_path / "journal").rename(tmp_path / "elsewhere")
    with pytest.raises((DataLost, JournalMissing)):
        positions(tmp_path / "journal", planned, failOnDataLoss="false")


def test_workers_need_not_wait_for_pandas(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    code = (
        "import sys; from weirpool.spark import options, partitions, reading, schema\n"
        "part = partitions.JournalPartition([partitions.Range('a', 0, 10, sys.argv[2])])\n"
        "parsed = options.SourceOptions.parse({'journal': sys.argv[1]})\n"
        "rows = sum(b.num_rows for b in reading.read(parsed, schema.Projection(schema.COLUMNS), part))\n"
        "print(rows, 'pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path), log_of(tmp_path, "a")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.stdout == "10 False\n", result.stderr


def test_without_the_folder_the_rows_come_from_its_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEIRPOOL_JOURNAL_TOKEN", raising=False)
    fill(tmp_path / "journal", "a", 10, 20)
    rows = span(tmp_path / "journal", "a", 5, 15)
    elsewhere = options(tmp_path / "mount" / "journal")
    with serving(tmp_path / "journal") as served:
        here = (served.url, socket.gethostname())

        def read_by(found: tuple[str, str] | None) -> list[int]:
            batches = read(elsewhere, Projection(COLUMNS), JournalPartition([rows], found))
            return [position for batch in batches for position in batch["position"].to_pylist()]

        assert read_by(here) == [*range(5, 15)]
        with pytest.raises(JournalMissing, match=r"is not on this machine, and its collector listens on"):
            read_by((served.url, "elsewhere"))
        with pytest.raises(JournalMissing):
            read_by(None)
        # A folder that is there is never passed over.
        (tmp_path / "mount" / "journal").mkdir(parents=True)
        reading._reader.cache_clear()
        with pytest.raises(JournalMissing):
            read_by(here)


def test_a_worker_exempts_its_imports_from_garbage_collection_once(monkeypatch: pytest.MonkeyPatch) -> None:
    frozen: list[int] = []
    monkeypatch.setattr(reading.gc, "freeze", lambda: frozen.append(1))
    for context, expected in ((None, 0), (object(), 1)):
        reading._exempt_imports.cache_clear()
        monkeypatch.setattr(reading.TaskContext, "get", lambda context=context: context)
        reading._exempt_imports()
        reading._exempt_imports()
        assert len(frozen) == expected
    reading._exempt_imports.cache_clear()
