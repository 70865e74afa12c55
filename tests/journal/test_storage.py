from __future__ import annotations

from pathlib import Path

import pyarrow.fs
import pytest

from tests.journal.logs import SOURCE, entries, numbers, segment, write
from weirpool import JournalCorrupt, JournalError, JournalMissing
from weirpool.journal import JournalReader, storage
from weirpool.journal.layout import log_folder
from weirpool.journal.mark import Mark
from weirpool.journal.storage import LogFolder, list_sources, resolve


def remote(root: Path) -> pyarrow.fs.FileSystem:
    """Return a file system that is none of this machine as far as anybody can tell."""
    return pyarrow.fs.SubTreeFileSystem(str(root), pyarrow.fs.LocalFileSystem())


def test_a_folder_is_memory_mapped(tmp_path: Path) -> None:
    for path in (tmp_path, str(tmp_path), f"file://{tmp_path}"):
        filesystem, inner = resolve(path)
        assert filesystem.equals(pyarrow.fs.LocalFileSystem(use_mmap=True))
        assert inner == str(tmp_path)


def test_a_relative_path_is_one_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve("data/journal")[1] == str(tmp_path / "data" / "journal")


def test_a_uri_that_leads_nowhere() -> None:
    with pytest.raises(JournalError, match=r"nowhere://x: cannot be read .* check the path"):
        resolve("nowhere://x")


def test_sources_are_folders_of_that_name(tmp_path: Path) -> None:
    for name in ("source=b", "source=a.1", "sink=c", "_readers"):
        (tmp_path / name).mkdir()
    (tmp_path / "source=file").touch()
    assert list_sources(*resolve(tmp_path)) == ["a.1", "b"]


@pytest.mark.parametrize("away", [False, True], ids=["local", "remote"])
def test_a_journal_that_is_not_there_is_missing(tmp_path: Path, away: bool) -> None:
    # THREATS 99: a mount that is gone is not an empty journal.
    filesystem = remote(tmp_path) if away else resolve(tmp_path)[0]
    root = "" if away else f"{tmp_path}/"
    with pytest.raises(JournalMissing, match="check the path and the mount"):
        list_sources(filesystem, f"{root}absent")
    (tmp_path / "empty").mkdir()
    assert list_sources(filesystem, f"{root}empty") == []


def test_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    log = LogFolder.of(tmp_path, SOURCE)
    assert (log.segments(), log.mark(), log.content(0)) == ([], None, None)


@pytest.mark.parametrize(
    ("names", "awaited"),
    [
        ([], False),
        (["_lock"], False),
        (["_lock", "_secret"], True),
        (["_lock", "_secret", "_durable"], False),
        (["_lock", "_secret", "00000000000000000000.arrows"], False),
    ],
)
def test_a_log_is_awaited_while_there_is_only_a_secret(tmp_path: Path, names: list[str], awaited: bool) -> None:
    log = LogFolder.of(tmp_path, SOURCE)
    assert not log.is_awaited()
    folder = log_folder(tmp_path, SOURCE)
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    assert log.is_awaited() == awaited


def test_what_a_log_holds(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 4, segment_bytes=1)
    for log in (LogFolder.local(folder), LogFolder.of(tmp_path, SOURCE), LogFolder(remote(folder), "")):
        sizes = [(first, segment(folder, first).stat().st_size) for first in (0, 3)]
        assert log.segments() == sizes
        assert log.mark() == Mark(3, sizes[1][1], 7, entries(folder)[-1][1].digest)
        content = log.content(3)
        assert content is not None
        assert content.to_pybytes() == segment(folder, 3).read_bytes()
        assert log.content(7) is None


def test_a_mark_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    (folder / "_durable").write_bytes(b"junk")
    with pytest.raises(JournalCorrupt, match="_durable: neither of its two slots"):
        LogFolder.local(folder).mark()
    (folder / "_durable").unlink()
    assert LogFolder.local(folder).mark() is None


def test_what_cannot_be_read_is_our_error(tmp_path: Path) -> None:
    (tmp_path / "source=s").touch()
    with pytest.raises(JournalError, match="source=s: cannot be read"):
        LogFolder.of(tmp_path, SOURCE).segments()


def test_a_journal_elsewhere_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, *[5] * 10, segment_bytes=4_000)
    monkeypatch.setattr(storage, "resolve", lambda path: (remote(tmp_path), ""))
    assert numbers(JournalReader("s3://bucket/journal", SOURCE)) == list(range(50))
