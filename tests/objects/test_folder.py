from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from weirpool.errors import DiskFull, LocalError, StoreError
from weirpool.objects import open_store
from weirpool.objects.folder import FolderStore


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../a", "a/../../b", ".hidden", "a/.hidden"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    store = FolderStore(tmp_path / "store")
    for call in (lambda: store.put(name, b""), lambda: store.create(name, b""), lambda: store.get(name)):
        with pytest.raises(LocalError, match="not the name of an object"):
            call()


def test_files_are_private_and_no_temporary_ones_remain(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    store.put("a/b", b"1")
    assert store.create("a/c", b"2") and not store.create("a/c", b"3")
    assert sorted(path.name for path in (tmp_path / "store" / "a").iterdir()) == ["b", "c"]
    assert (tmp_path / "store" / "a" / "b").stat().st_mode & 0o777 == 0o600
    assert store.local_path("a/b").read_bytes() == b"1"


def test_hidden_files_are_no_objects(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("a", b"1")
    (tmp_path / ".temporary").write_bytes(b"2")
    assert store.list("") == [("a", 1)]


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, DiskFull), (errno.EIO, StoreError)])
def test_errors_of_the_disk_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    store = FolderStore(tmp_path / "store")
    store.put("a", b"before")

    def fail(*arguments: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pwrite", fail)
    for call in (lambda: store.put("a", b"after"), lambda: store.create("b", b"x")):
        with pytest.raises(kind, match=r"store/[ab]: cannot"):
            call()
    assert store.list("") == [("a", 6)]
    assert store.get("a") == b"before"


def test_what_killed_processes_have_left_is_removed(tmp_path: Path) -> None:
    program = """
import os, stat, sys
from weirpool.objects import open_store
os.fsync = lambda fd: os.kill(os.getpid(), 9) if stat.S_ISREG(os.fstat(fd).st_mode) else None
open_store(sys.argv[1]).create("folder/name", bytes(1000))
"""
    for _ in range(3):
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False, timeout=60)
    assert len(list((tmp_path / "folder").iterdir())) == 1
    store = open_store(tmp_path)
    assert store.create("folder/other", b"") and store.list("") == [("folder/other", 0)]
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["other"]


def test_what_is_being_written_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sync = os.fsync

    def another(fd: int) -> None:
        monkeypatch.setattr(os, "fsync", sync)
        assert open_store(tmp_path).create("folder/other", b"other")
        sync(fd)

    store = open_store(tmp_path)
    monkeypatch.setattr(os, "fsync", another)
    assert store.create("folder/name", b"name")
    assert store.get("folder/name") == b"name" and store.get("folder/other") == b"other"
