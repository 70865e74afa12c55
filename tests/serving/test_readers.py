"""Readers that are lent to requests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, write
from weirpool.errors import DataLost, JournalMismatch
from weirpool.journal import Journal
from weirpool.serving.readers import MAX_IDLE, Readers


def test_a_reader_is_used_again_but_by_one_at_a_time(tmp_path: Path) -> None:
    write(tmp_path, 10)
    readers = Readers(Journal(tmp_path).reader)
    with readers.lend(SOURCE) as first, readers.lend(SOURCE) as second:
        assert first is not second
    write(tmp_path, 10)
    with readers.lend(SOURCE) as again:
        assert again is first and again.end == 20


def test_a_reader_that_failed_is_not_used_again(tmp_path: Path) -> None:
    write(tmp_path, 10)
    readers = Readers(Journal(tmp_path).reader)
    with pytest.raises(DataLost), readers.lend(SOURCE) as first:
        list(first.read(0, 11))
    with readers.lend(SOURCE) as again:
        assert again is not first


def test_a_log_that_was_collected_again_is_another_one(tmp_path: Path) -> None:
    folder = write(tmp_path, 10)
    readers = Readers(Journal(tmp_path).reader)
    with readers.lend(SOURCE) as reader:
        before = reader.uuid
    shutil.rmtree(folder)
    write(tmp_path, 5)
    with readers.lend(SOURCE) as reader:
        assert reader.uuid != before and reader.end == 5
    with pytest.raises(JournalMismatch), readers.lend(SOURCE, before):
        pass


def test_only_so_many_wait(tmp_path: Path) -> None:
    readers = Readers(Journal(tmp_path).reader)
    for number in range(MAX_IDLE + 5):
        shutil.copytree(write(tmp_path / "new", 1), tmp_path / f"source={number}")
        with readers.lend(str(number)):
            pass
    assert len(readers._idle) == MAX_IDLE
