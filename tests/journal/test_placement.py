from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, append, flip, numbers, segment, uuid, write
from weirpool import JournalCorrupt
from weirpool.journal import Journal, JournalReader, JournalWriter
from weirpool.journal.layout import log_folder, segment_name
from weirpool.journal.placement import misplaced
from weirpool.journal.repair import repair
from weirpool.journal.storage import LogFolder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of three segments of a batch."""
    return write(tmp_path, 3, 2, 4, segment_bytes=1)


def found(folder: Path, trimmed: int = 0) -> list[tuple[int, int | None]]:
    log = LogFolder.local(folder)
    return [(each.name, each.home) for each in misplaced(log, uuid(folder), log.mark(), trimmed)]


def heals(path: Path) -> None:
    """Make sure that one repair without any loss brings a log back."""
    shown = repair(path, SOURCE)
    assert not shown.loses
    done = repair(path, SOURCE, apply=True)
    assert (done.actions, done.refused) == (shown.actions, "")
    assert repair(path, SOURCE).actions == []
    assert Journal(path).verify()[SOURCE].sound
    assert numbers(JournalReader(path, SOURCE), 0, 9) == list(range(9))
    with JournalWriter.open(path, SOURCE) as writer:
        assert append(writer, 1) == 10


def test_a_sound_log_has_nothing_misplaced(folder: Path) -> None:
    assert found(folder) == []


@pytest.mark.parametrize("link", [False, True], ids=["copy", "hard link"])
@pytest.mark.parametrize("name", [1, 2, 4, 6, 8, 9, 10, 500])
@pytest.mark.parametrize("source", [0, 3, 5])
def test_a_copy_under_another_name_is_set_aside(
    tmp_path: Path, folder: Path, source: int, name: int, link: bool
) -> None:
    # THREATS 97: inside the positions of the log, at its end, and beyond.
    (os.link if link else shutil.copy)(segment(folder, source), segment(folder, name))
    assert found(folder) == [(name, None)]
    heals(tmp_path)


@pytest.mark.parametrize("name", [1, 4, 9, 500])
def test_a_segment_of_another_log_is_set_aside(tmp_path: Path, folder: Path, name: int) -> None:
    # THREATS 97
    other = write(tmp_path / "other", *[1] * 12, segment_bytes=1)
    shutil.copy(segment(other, min(name, 11)), segment(folder, name))
    assert found(folder) == [(name, None)]
    heals(tmp_path)


@pytest.mark.parametrize("name", [1, 4, 6])
def test_junk_within_the_rows_of_a_segment_is_set_aside(tmp_path: Path, folder: Path, name: int) -> None:
    segment(folder, name).write_bytes(b"junk" * 200)
    assert found(folder) == [(name, None)]
    heals(tmp_path)


@pytest.mark.parametrize(("one", "two"), [(0, 3), (0, 5), (3, 5)])
def test_two_segments_that_were_swapped_change_names(tmp_path: Path, folder: Path, one: int, two: int) -> None:
    # THREATS 97
    before, after = segment(folder, one).read_bytes(), segment(folder, two).read_bytes()
    segment(folder, one).write_bytes(after)
    segment(folder, two).write_bytes(before)
    assert found(folder) == [(one, two), (two, one)]
    with pytest.raises(JournalCorrupt):
        numbers(JournalReader(tmp_path, SOURCE))
    heals(tmp_path)


def test_a_segment_gets_its_name_back(tmp_path: Path, folder: Path) -> None:
    segment(folder, 3).rename(folder / segment_name(700))
    shutil.copy(folder / segment_name(700), folder / segment_name(1))
    assert found(folder) == [(1, 3), (700, None)]
    heals(tmp_path)


def test_what_was_trimmed_does_not_come_back(folder: Path) -> None:
    segment(folder).rename(folder / segment_name(700))
    assert found(folder, trimmed=3) == [(700, None)]


def test_a_damaged_beginning_is_no_wrong_name(folder: Path) -> None:
    flip(segment(folder, 3), 200)
    flip(segment(folder, 5), segment(folder, 5).stat().st_size - 1)
    assert found(folder) == []


def test_a_log_whose_first_bytes_name_another_one_stays(tmp_path: Path, folder: Path) -> None:
    content = segment(folder, 3).read_bytes()
    name = uuid(folder).encode()
    segment(folder, 3).write_bytes(content.replace(name, b"0" * len(name)))
    assert found(folder) == []
    assert log_folder(tmp_path, SOURCE) == folder
