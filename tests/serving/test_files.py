"""The files of a log that a collector sends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, segment, write
from weirpool import JournalError, JournalMissing, JournalUnavailable, LocalError
from weirpool.journal import Journal
from weirpool.journal.layout import COMMITTED, DURABLE, GAPS, IDENTITY, LOCK, SECRET
from weirpool.serving.files import content_of, files_of
from weirpool.serving.ranges import Place

START = Place(0)


def content(path: Path, name: str, limit: int | None = None) -> bytes:
    return b"".join(part.content.to_pybytes() for part in content_of(str(path), SOURCE, name, limit, START))


def test_only_files_of_rows_are_sent(tmp_path: Path) -> None:
    folder = write(tmp_path, 10, 10, segment_bytes=1)
    Journal(tmp_path).seek(SOURCE, "export", 5)
    (folder / SECRET).write_bytes(b"s3cret")
    (folder / "notes.txt").write_bytes(b"mine")
    (folder / "00000000000000000020.arrows.tmp").write_bytes(b"not durable")
    found = files_of(str(tmp_path), SOURCE)
    assert [name for name, _ in found] == [segment(folder).name, segment(folder, 10).name, DURABLE, IDENTITY]
    for name, size in found:
        assert content(tmp_path, name) == (folder / name).read_bytes() and len((folder / name).read_bytes()) == size
    for name in (SECRET, LOCK, "notes.txt", f"{COMMITTED}/export", "../source=s/_secret", "/etc/passwd", "", ".", "\0"):
        with pytest.raises(LocalError, match="is not a file of a log that is sent"):
            content(tmp_path, name)


def test_a_file_is_cut_where_that_is_enough(tmp_path: Path) -> None:
    folder = write(tmp_path, 10)
    whole = segment(folder).read_bytes()
    for limit in (0, 1, 100, len(whole), len(whole) + 5):
        assert content(tmp_path, segment(folder).name, limit) == whole[:limit]


def test_large_files_come_in_parts(tmp_path: Path) -> None:
    folder = write(tmp_path, *[40_000] * 5)
    parts = list(content_of(str(tmp_path), SOURCE, segment(folder).name, None, START))
    assert len(parts) > 1 and max(part.content.size for part in parts) == 1 << 20
    assert b"".join(part.content.to_pybytes() for part in parts) == segment(folder).read_bytes()


def test_a_file_continues_where_an_earlier_part_ended(tmp_path: Path) -> None:
    folder = write(tmp_path, *[40_000] * 5)
    name = segment(folder).name
    first = next(content_of(str(tmp_path), SOURCE, name, None, START))
    taken, left = first.split(100)
    assert left is not None and taken.after is not None
    rest = list(content_of(str(tmp_path), SOURCE, name, None, taken.after))
    whole = segment(folder).read_bytes()
    assert taken.content.to_pybytes() + b"".join(part.content.to_pybytes() for part in rest) == whole
    segment(folder).rename(tmp_path / "before")
    segment(folder).write_bytes(whole)
    with pytest.raises(JournalUnavailable, match="was replaced while it was sent"):
        next(content_of(str(tmp_path), SOURCE, name, None, taken.after))


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    assert files_of(str(tmp_path), "absent") == []
    write(tmp_path, 10)
    with pytest.raises(JournalMissing, match="there is no such file"):
        content(tmp_path, GAPS)
    with pytest.raises(LocalError, match="cannot name a source"):
        files_of(str(tmp_path), "../other")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    folder = write(tmp_path, 10)
    (tmp_path / "private").write_bytes(b"s3cret")
    os.symlink(tmp_path / "private", folder / GAPS)
    with pytest.raises(JournalError, match="cannot be read"):
        content(tmp_path, GAPS)


def test_a_segment_that_goes_while_they_are_listed_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path, 10, 10, segment_bytes=1)
    real = os.listdir

    def listed(path: Path) -> list[str]:
        names = real(path)
        segment(folder).unlink()
        return names

    monkeypatch.setattr(os, "listdir", listed)
    assert segment(folder).name not in dict(files_of(str(tmp_path), SOURCE))
