from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

from tests.archive.logs import SMALL, fill, glob_positions, positions
from tests.journal.logs import SOURCE, append, flip, segment
from weirpool.archive import Sealer, SealingThread, SealOptions
from weirpool.archive import sealer as sealers
from weirpool.archive.options import DEFAULT_MAX_AGE
from weirpool.journal import Journal, JournalWriter


def second(path: Path, *counts: int) -> None:
    with JournalWriter.open(path, "other", segment_bytes=1, fsync=False) as writer:
        append(writer, *counts)


def test_all_logs_are_sealed(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4, 5)
    second(tmp_path, 6, 7)
    sealer = Sealer(tmp_path, SMALL)
    assert [(each.source, each.first, each.end) for each in sealer.step()] == [
        ("other", 0, 6),
        ("s", 0, 3),
        ("s", 3, 7),
    ]
    assert sealer.step() == [] and sealer.failures == {}


def test_only_the_given_logs_are_sealed(tmp_path: Path) -> None:
    fill(tmp_path, 3, 4)
    second(tmp_path, 6, 7)
    assert [each.source for each in Sealer(tmp_path, SMALL, sources=lambda: ["other", "later"]).step()] == ["other"]


def test_small_segments_wait_unless_forced(tmp_path: Path) -> None:
    folder = fill(tmp_path, 3, 4)
    now = segment(folder).stat().st_mtime
    sealer = Sealer(tmp_path, clock=lambda: now)
    assert sealer.step() == []
    assert len(sealer.step(force=True)) == 1
    fill(tmp_path, 5)
    now += DEFAULT_MAX_AGE + 60
    assert len(sealer.step()) == 1


def test_a_bad_log_does_not_stop_the_others_and_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = fill(tmp_path, 3, 4)
    second(tmp_path, 6, 7)
    at = segment(folder).stat().st_size - 3
    flip(segment(folder), at)
    sealer = Sealer(tmp_path, SMALL)
    with caplog.at_level(logging.WARNING):
        assert [each.source for each in sealer.step()] == ["other"]
        sealer.step()
    assert len(caplog.messages) == 1 and "positions 0 to 2 are damaged" in sealer.failures["s"]
    flip(segment(folder), at)
    assert [each.source for each in sealer.step()] == ["s"]
    assert sealer.failures == {}


def test_a_store_that_is_away_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path, 3, 4)
    sealer = Sealer(tmp_path, SealOptions(target_bytes=1, store="nowhere://x"))
    assert sealer.step() == [] and "nowhere://x" in sealer.failures["s"]
    assert positions(Journal(tmp_path).reader(SOURCE)) == [*range(7)]


def test_a_missing_journal_is_reported(tmp_path: Path) -> None:
    sealer = Sealer(tmp_path / "none")
    assert sealer.step() == [] and "" in sealer.failures


def test_history_is_retired_now_and_then(tmp_path: Path) -> None:
    folder = fill(tmp_path, 3, 4, 5)
    now = segment(folder).stat().st_mtime + 100
    sealer = Sealer(tmp_path, SealOptions(target_bytes=1, keep=50), clock=lambda: now)
    sealer.step()
    assert Journal(tmp_path).reader(SOURCE).first == 7
    assert not list(folder.glob("*.parquet"))


def test_it_runs_beside_a_writer_until_it_is_stopped(tmp_path: Path) -> None:
    sealer = Sealer(tmp_path, SMALL)
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        thread = SealingThread(sealer, interval=0.0)
        try:
            for _ in range(20):
                append(writer, 5)
                assert positions(Journal(tmp_path).reader(SOURCE)) == [*range(writer.position)]
        finally:
            thread.stop()
            thread.join(60)
    assert "weirpool-sealer" not in {each.name for each in threading.enumerate()} and sealer.failures == {}
    sealer.step()
    assert len(list((tmp_path / "source=s").glob("*.arrows"))) == 1


def test_a_collector_without_rows_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "source=s").mkdir(parents=True)
    sealer = Sealer(tmp_path)
    assert sealer.step() == [] and sealer.failures == {} and glob_positions is not None


def test_a_defect_with_one_log_does_not_end_the_sealing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_for_one(journal: Path, source: str, *arguments: object, **options: object) -> None:
        if source == "one":
            raise ZeroDivisionError("a defect")

    monkeypatch.setattr(sealers, "seal", fail_for_one)
    sealer = Sealer(tmp_path, SMALL, sources=lambda: ["one", "two"])
    for _ in range(2):
        assert sealer.step() == []
        assert sealer.failures == {"one": "a defect"}
    assert caplog.text.count("Traceback") == 1
