from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from tests.journal.logs import SOURCE, append, entries, flip, segment, set_mark, uuid, write
from weirpool.journal import JournalWriter
from weirpool.journal.index import Index
from weirpool.journal.layout import log_folder
from weirpool.journal.storage import LogFolder
from weirpool.journal.survey import survey


def look(folder: Path) -> list[Index]:
    """Return the indexes of a log, and note which segment has an open end."""
    log = LogFolder.local(folder)
    open_ends: list[Index] = []

    def tail(index: Index, content: pa.Buffer) -> None:
        open_ends.append(index)

    indexes = survey(log, uuid(folder), [first for first, _ in log.segments()], log.mark(), tail)
    assert all(not index.sealed for index in open_ends)
    return indexes


def damage(folder: Path) -> list[tuple[str, int, int | None]]:
    return [(Path(index.name).stem[-1], each.first, each.end) for index in look(folder) for each in index.damage]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of three segments of a batch."""
    return write(tmp_path, 3, 2, 4, segment_bytes=1)


def test_a_sound_log(folder: Path) -> None:
    assert [(index.first, index.end, index.sealed) for index in look(folder)] == [
        (0, 3, True),
        (3, 5, True),
        (5, 9, False),
    ]
    assert damage(folder) == []


def test_a_segment_of_a_copy_that_went_another_way_is_found(tmp_path: Path, folder: Path) -> None:
    # THREATS 97: same log, same positions, sound in itself; but not what the next segment was written after.
    shutil.copytree(tmp_path, tmp_path.parent / "fork")
    fork = log_folder(tmp_path.parent / "fork", SOURCE)
    for each in (3, 5):
        segment(fork, each).unlink()
    set_mark(fork, 3)
    write(tmp_path.parent / "fork", 2, 4, segment_bytes=1)
    shutil.copy(segment(fork, 3), segment(folder, 3))
    assert damage(folder) == [("3", 3, 5)]
    shutil.copy(segment(fork, 5), segment(folder, 5))
    assert damage(folder) == [("5", 5, 9)]


def test_a_missing_segment_is_found_in_the_one_before_it(folder: Path) -> None:
    # THREATS 97
    segment(folder, 3).unlink()
    assert damage(folder) == [("0", 3, 5)]
    segment(folder, 5).unlink()
    assert damage(folder) == [("0", 3, 5), ("5", 5, 9)]


def test_an_old_mark_must_fit_the_segment_that_it_names(folder: Path) -> None:
    # THREATS 97
    mark = set_mark(folder, 3)
    assert damage(folder) == []
    (folder / "_durable").write_bytes(type(mark)(0, mark.offset, 3, "ab" * 32).encode(1))
    assert damage(folder) == [("0", 0, 3)]


def test_a_damaged_record_leaves_the_segment_before_it_sound(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        append(writer, 3)
        writer.append_gap("lost")
        append(writer, 3)
    folder = log_folder(tmp_path, SOURCE)
    first, record = next(each for each in entries(folder) if not each[1].note.rows)
    assert first == record.position == 3
    # Nothing tells any more which batch the segment was written after.
    flip(segment(folder, 3), record.offset + 20)
    assert damage(folder) == [("3", 3, 3)]


def test_segments_that_are_trimmed_while_it_looks_leave_the_others_sound(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = LogFolder.content

    def trimmed(log: LogFolder, first: int) -> pa.Buffer | None:
        # The first was looked at before it went, with the second.
        return None if first == 3 else content(log, first)

    monkeypatch.setattr(LogFolder, "content", trimmed)
    assert damage(folder) == []
