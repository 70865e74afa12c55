from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from tests.journal.logs import SOURCE, append, flip, segment, set_mark, write
from weirpool import JournalMissing
from weirpool.journal import Journal, JournalWriter
from weirpool.journal.compare import Comparison, compare
from weirpool.journal.layout import log_folder
from weirpool.journal.storage import LogFolder


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    """A log of three segments, and a copy of it."""
    write(tmp_path / "one", 3, 2, 4, segment_bytes=1)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    return tmp_path / "one", tmp_path / "two"


def compared(paths: tuple[Path, Path]) -> Comparison:
    """Compare both ways."""
    one, two = (LogFolder.local(log_folder(path, SOURCE)) for path in paths)
    forth, back = compare(one, two), compare(two, one)
    assert (forth.agree, forth.end) == (back.agree, back.end)
    return forth


def grow(path: Path, *counts: int) -> None:
    with JournalWriter.open(path, SOURCE, segment_bytes=1, fsync=False) as writer:
        append(writer, *counts)


def test_copies_agree(paths: tuple[Path, Path]) -> None:
    found = compared(paths)
    assert (found.agree, found.end) == (True, 9)
    assert found.text == f"{paths[1]}/source=s has the same rows up to position 9"


def test_one_may_be_longer(paths: tuple[Path, Path]) -> None:
    grow(paths[0], 5)
    found = compared(paths)
    assert (found.agree, found.end) == (True, 9)
    assert found.text.endswith("up to position 9; this copy continues to 14")


def test_one_may_be_trimmed(paths: tuple[Path, Path]) -> None:
    Journal(paths[1]).trim(SOURCE, 5, retain_bytes=0)
    found = compared(paths)
    assert (found.agree, found.end) == (True, 9)


def test_where_they_part_is_told(paths: tuple[Path, Path]) -> None:
    for path in paths:
        grow(path, 5)
    found = compared(paths)
    assert (found.agree, found.end) == (False, 9)
    assert "differs from this copy at position 9" in found.text
    for path in paths:
        Journal(path).trim(SOURCE, 9, retain_bytes=0)
    assert not compared(paths).agree


def test_bodies_are_not_read(paths: tuple[Path, Path]) -> None:
    last = segment(log_folder(paths[0], SOURCE), 5)
    flip(last, last.stat().st_size - 1)
    assert compared(paths).agree


def test_nothing_in_common(tmp_path: Path, paths: tuple[Path, Path]) -> None:
    write(tmp_path / "three", 3)
    assert "is another log" in compared((paths[0], tmp_path / "three")).text
    grow(paths[0], 5, 5)
    Journal(paths[0]).trim(SOURCE, 14, retain_bytes=0)
    assert "has no positions in common" in compared(paths).text
    with pytest.raises(JournalMissing):
        compared((paths[0], tmp_path / "absent"))


def test_only_what_the_mark_tells_counts(paths: tuple[Path, Path]) -> None:
    set_mark(log_folder(paths[0], SOURCE), 5)
    found = compared(paths)
    assert (found.agree, found.end) == (True, 5)


def test_verify_compares(paths: tuple[Path, Path]) -> None:
    report = Journal(paths[0]).verify(against=paths[1])[SOURCE]
    assert report.sound
    assert "has the same rows up to position 9" in report.compared
    grow(paths[0], 1)
    grow(paths[1], 1)
    report = Journal(paths[0]).verify(against=paths[1])[SOURCE]
    assert not report.sound
    assert report.problems == [report.compared]


def test_one_may_be_trimmed_meanwhile(paths: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    content = LogFolder.content
    one = log_folder(paths[0], SOURCE)

    def trimmed(log: LogFolder, first: int) -> pa.Buffer | None:
        # The first was looked at before it went, with the second.
        return None if (log.path, first) == (str(one), 3) else content(log, first)

    monkeypatch.setattr(LogFolder, "content", trimmed)
    found = compared(paths)
    assert (found.agree, found.end) == (True, 9)
