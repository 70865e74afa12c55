from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, all_numbers, append, segment, write
from weirpool import JournalLocked, JournalMismatch, JournalMissing
from weirpool.journal import Journal, JournalWriter
from weirpool.journal import copying as copying_module
from weirpool.journal.compare import compare
from weirpool.journal.copying import copy
from weirpool.journal.layout import COMMITTED, DURABLE, SECRET, log_folder
from weirpool.journal.retention import commit
from weirpool.journal.storage import LogFolder


def grow(path: Path, *counts: int) -> None:
    with JournalWriter.open(path, SOURCE, segment_bytes=1_000, fsync=False) as writer:
        append(writer, *counts)


def agree(one: Path, two: Path) -> bool:
    return compare(*(LogFolder.local(log_folder(path, SOURCE)) for path in (one, two))).agree


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    write(tmp_path / "one", 3, 2, 4, segment_bytes=1_000)
    return tmp_path / "one", tmp_path / "two"


def test_a_copy_is_the_same_log(paths: tuple[Path, Path]) -> None:
    one, two = paths
    copied = copy(one, SOURCE, two)
    assert (copied.first, copied.end) == (0, 9)
    assert copied.size == sum(path.stat().st_size for path in one.glob("*/*.arrows"))
    assert all_numbers(two) == all_numbers(one)
    assert agree(one, two)
    # The copy can be continued as a log of its own.
    grow(two, 2)
    assert all_numbers(two) == list(range(11))


def test_a_copy_is_brought_up_to_date(paths: tuple[Path, Path]) -> None:
    one, two = paths
    copy(one, SOURCE, two)
    for counts in ((1,), (60, 60), (2, 3)):
        grow(one, *counts)
        size = copy(one, SOURCE, two).size
        assert 0 < size < sum(path.stat().st_size for path in one.glob("*/*.arrows"))
        assert all_numbers(two) == all_numbers(one)
    assert copy(one, SOURCE, two).size == 0


def test_what_is_not_durable_is_not_copied(paths: tuple[Path, Path]) -> None:
    one, two = paths
    last = max(one.glob("*/*.arrows"))
    with open(last, "ab") as file:
        file.write(b"half a batch")
    copy(one, SOURCE, two)
    assert agree(one, two)
    assert segment(log_folder(two, SOURCE), int(last.stem)).stat().st_size == last.stat().st_size - 12
    grow(one, 5)
    copy(one, SOURCE, two)
    assert all_numbers(two) == all_numbers(one)


def test_an_interrupted_copy_is_continued(paths: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = paths
    grow(one, *[50] * 20)
    write_at = copying_module.write_at
    for calls in range(6):
        left = calls

        def torn(fd: int, chunks: list[memoryview], offset: int) -> int:
            nonlocal left
            if left == 0:
                write_at(fd, [chunks[0][: len(chunks[0]) // 2]], offset)
                raise OSError(5, "the disk failed")
            left -= 1
            return write_at(fd, chunks, offset)

        monkeypatch.setattr(copying_module, "write_at", torn)
        with pytest.raises(Exception, match="the disk failed"):
            copy(one, SOURCE, two)
        assert not (log_folder(two, SOURCE) / DURABLE).exists()
    monkeypatch.setattr(copying_module, "write_at", write_at)
    copy(one, SOURCE, two)
    assert all_numbers(two) == all_numbers(one)
    assert agree(one, two)


def test_secrets_and_readers_stay_behind(paths: tuple[Path, Path]) -> None:
    one, two = paths
    folder = log_folder(one, SOURCE)
    (folder / SECRET).write_bytes(b"a token")
    commit(folder, "spark", 3)
    copy(one, SOURCE, two)
    names = set(os.listdir(log_folder(two, SOURCE)))
    assert not names & {SECRET, COMMITTED}
    assert (log_folder(two, SOURCE).stat().st_mode & 0o777) == 0o700


def test_gaps_and_trimming_are_copied(paths: tuple[Path, Path]) -> None:
    one, two = paths
    with JournalWriter.open(one, SOURCE, segment_bytes=1, fsync=False) as writer:
        writer.append_gap("the publisher was away")
        append(writer, 2, 2)
    Journal(one).trim(SOURCE, 11, retain_bytes=0)
    copy(one, SOURCE, two)
    assert Journal(two).reader(SOURCE).first == Journal(one).reader(SOURCE).first > 0
    assert [gap.reason for gap in Journal(two).reader(SOURCE).gaps()] == ["the publisher was away"]
    assert Journal(two).verify()[SOURCE].sound


def test_a_copy_outlives_trimming(paths: tuple[Path, Path]) -> None:
    one, two = paths
    grow(one, 60, 60)
    copy(one, SOURCE, two)
    grow(one, 60, 60)
    Journal(one).trim(SOURCE, 129, retain_bytes=0)
    copy(one, SOURCE, two)
    assert all_numbers(two) == list(range(249))


def test_a_hole_is_refused(paths: tuple[Path, Path]) -> None:
    one, two = paths
    copy(one, SOURCE, two)
    grow(one, 60, 60, 60)
    Journal(one).trim(SOURCE, 189, retain_bytes=0)
    with pytest.raises(JournalMismatch, match="was trimmed below"):
        copy(one, SOURCE, two)
    assert all_numbers(two) == list(range(9))


def test_other_logs_are_refused(paths: tuple[Path, Path]) -> None:
    one, two = paths
    with pytest.raises(JournalMismatch, match="to itself"):
        copy(one, SOURCE, one)
    write(two, 3)
    with pytest.raises(JournalMismatch, match="choose another folder"):
        copy(one, SOURCE, two)
    with pytest.raises(JournalMissing):
        copy(one, "none", two)


def test_a_copy_that_went_its_own_way_is_refused(paths: tuple[Path, Path]) -> None:
    one, two = paths
    copy(one, SOURCE, two)
    grow(two, 1)
    with pytest.raises(JournalMismatch, match="is longer"):
        copy(one, SOURCE, two)
    grow(one, 2)
    with pytest.raises(JournalMismatch, match="differs"):
        copy(one, SOURCE, two)


def test_a_copy_in_use_is_refused(paths: tuple[Path, Path]) -> None:
    one, two = paths
    copy(one, SOURCE, two)
    with JournalWriter.open(two, SOURCE, fsync=False), pytest.raises(JournalLocked):
        copy(one, SOURCE, two)
