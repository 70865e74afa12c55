from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from penstock import DiskFull, JournalError
from penstock.journal.disk import disk_errors, replace_file, sync_folder, write_at


def test_a_full_disk_has_its_own_error() -> None:
    for number in (errno.ENOSPC, errno.EDQUOT):
        with pytest.raises(DiskFull, match=r"^place: no room on the disk, it cannot take it; free some") as caught:
            with disk_errors("place", "take it"):
                raise OSError(number, os.strerror(number))
        assert "\n" not in str(caught.value)


def test_other_errors_say_where_and_what() -> None:
    with pytest.raises(JournalError, match=r"^place: cannot take it \(Input/output error\); check") as caught:
        with disk_errors("place", "take it"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
    assert not isinstance(caught.value, DiskFull)


def test_everything_is_written_however_little_goes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:3], offset))
    path = tmp_path / "file"
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        assert write_at(fd, [b"0123456789", memoryview(b""), b"abcd"], 2) == 16
    finally:
        os.close(fd)
    assert path.read_bytes() == b"\0\x000123456789abcd"


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    replace_file(path, b"old")
    replace_file(path, b"new")
    assert path.read_bytes() == b"new"

    def refuse(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="full"):
        replace_file(path, b"newer")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_is_not_there_cannot_be_synced(tmp_path: Path) -> None:
    sync_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_folder(tmp_path / "absent")
