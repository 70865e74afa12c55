from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.journal import gaps
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.layout import log_folder
from weirpool.journal.reader import JournalReader
from weirpool.journal.retention import trim
from weirpool.journal.writer import JournalWriter
from weirpool.spark.survey import Loss, losses, record, recorded, remaining

from .journals import damage, fill, item, items, segments


def found(journal: Path, first: int, end: int) -> list[tuple[int, int]]:
    return [(loss.first, loss.end) for loss in losses(JournalReader(journal, "a"), first, end)]


def test_a_sound_log_has_lost_nothing(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20_000, 20_010, segment_bytes=1)
    assert found(tmp_path, 0, 20_010) == found(tmp_path, 5, 15_000) == found(tmp_path, 7, 7) == []


def test_a_damaged_row_takes_its_batch_along(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30)
    damage(segments(tmp_path, "a")[0], item(15))
    assert found(tmp_path, 0, 30) == [(10, 20)]
    assert found(tmp_path, 12, 18) == [(12, 18)]
    assert found(tmp_path, 20, 30) == []
    (loss,) = losses(JournalReader(tmp_path, "a"), 3, 28)
    assert "10 to 19" in loss.reason


def test_a_segment_that_is_all_damaged_is_lost(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    middle = segments(tmp_path, "a")[1]
    middle.write_bytes(bytes(middle.stat().st_size))
    assert found(tmp_path, 0, 30) == [(10, 20)]


@pytest.mark.parametrize("segment_bytes", [1, 1 << 26])
@pytest.mark.parametrize("at", [0, 10, 20])
def test_a_damaged_record_takes_no_rows_along(tmp_path: Path, at: int, segment_bytes: int) -> None:
    # THREATS 97
    with JournalWriter.open(tmp_path, "a", segment_bytes=segment_bytes, fsync=False) as writer:
        for position in (0, 10, 20):
            if position == at:
                writer.append_gap("the record", b"state")
            if position < 20:
                writer.append(items(position, position + 10), "flights")
    spoiled = next(path for path in segments(tmp_path, "a") if b"the record" in path.read_bytes())
    damage(spoiled, b"the record")
    assert found(tmp_path, 0, 20) == [(at, at)]
    assert found(tmp_path, 3, 18) == ([(10, 10)] if at == 10 else [])
    # Rows next to it are lost with it in one piece.
    damage(next(path for path in segments(tmp_path, "a") if item(5) in path.read_bytes()), item(5))
    assert found(tmp_path, 0, 20) == ([(0, 10), (20, 20)] if at == 20 else [(0, 10)])


def test_a_segment_that_is_absent_is_lost(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, 40, segment_bytes=1)
    segments(tmp_path, "a")[1].unlink()
    assert found(tmp_path, 0, 40) == [(10, 20)]


def test_what_was_trimmed_is_lost(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, segment_bytes=1)
    trim(log_folder(tmp_path, "a"), 20, retain_bytes=0)
    assert found(tmp_path, 5, 30) == [(5, 20)]
    assert found(tmp_path, 5, 15) == [(5, 15)]


def test_what_is_lost_in_one_piece_is_one_loss(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30, 40, segment_bytes=1)
    for middle in segments(tmp_path, "a")[1:3]:
        middle.write_bytes(bytes(middle.stat().st_size))
    assert found(tmp_path, 0, 40) == [(10, 30)]


def test_what_is_recorded_is_durable_and_the_query_s_own(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10, 20, 30)
    reader = JournalReader(tmp_path, "a")
    record(
        FolderCoordinator(str(tmp_path)), reader, [Loss(10, 20, "damaged"), Loss(0, 3, "trimmed")], "q1", "flights (q1)"
    )
    record(FolderCoordinator(str(tmp_path)), reader, [Loss(25, 30, "damaged")], "q2", "q2")
    kept = gaps.load(log_folder(tmp_path, "a"))
    assert recorded(kept, "q1") == [(0, 3), (10, 20)]
    assert recorded(kept, "q2") == [(25, 30)]
    assert [(gap.position, gap.lost, gap.query, gap.reason) for gap in kept] == [
        (3, (0, 3), "q1", "skipped by query flights (q1): trimmed"),
        (20, (10, 20), "q1", "skipped by query flights (q1): damaged"),
        (30, (25, 30), "q2", "skipped by query q2: damaged"),
    ]
    (row,) = (batch for batch in reader.read(9, 10))
    assert [gap.previous for gap in kept][:2] == [None, row["time"][0].as_py()]


def test_what_a_former_driver_has_recorded_is_not_recorded_again(tmp_path: Path) -> None:
    # It was not dead yet when its successor had looked: a stream of gaps has each once.
    fill(tmp_path, "a", 10, 20)
    reader = JournalReader(tmp_path, "a")
    for found in ([Loss(0, 3, "trimmed")], [Loss(0, 3, "trimmed"), Loss(10, 20, "damaged")]):
        record(FolderCoordinator(str(tmp_path)), reader, found, "q1", "q1")
    record(FolderCoordinator(str(tmp_path)), reader, [Loss(0, 3, "trimmed")], "q2", "q2")
    kept = gaps.load(log_folder(tmp_path, "a"))
    assert [(gap.lost, gap.query) for gap in kept] == [((0, 3), "q1"), ((0, 3), "q2"), ((10, 20), "q1")]


def test_nothing_is_recorded_in_a_log_that_has_gone(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    reader = JournalReader(tmp_path, "a")
    shutil.rmtree(log_folder(tmp_path, "a"))
    with pytest.raises(Exception, match="there is no log here"):
        record(FolderCoordinator(str(tmp_path)), reader, [Loss(0, 10, "gone")], "q1", "q1")
    assert not log_folder(tmp_path, "a").exists()


@given(st.integers(0, 20), st.integers(0, 20), st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=5))
def test_what_is_left_are_all_other_positions(first: int, rows: int, cuts: list[tuple[int, int]]) -> None:
    passed_over = sorted((start, start + length) for start, length in cuts)
    gone = {at for start, end in passed_over for at in range(start, end)}
    spans = list(remaining(first, first + rows, passed_over))
    assert [at for start, end in spans for at in range(start, end)] == [
        at for at in range(first, first + rows) if at not in gone
    ]
    assert all(start < end for start, end in spans)
