from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.disk.lying import LyingDisk, PowerCut
from weirpool import DiskFull, JournalError, JournalUnavailable
from weirpool.journal import disk
from weirpool.journal.disk import (
    disk_errors,
    make_folder,
    open_private,
    read_file,
    replace_file,
    sync_folder,
    write_at,
)


def test_a_full_disk_has_its_own_error() -> None:
    for number in (errno.ENOSPC, errno.EDQUOT):
        with pytest.raises(DiskFull, match=r"^place: cannot take it: the disk is full; free some") as caught:
            with disk_errors("place", "take it"):
                raise OSError(number, os.strerror(number))
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM])
def test_a_shortage_that_passes_has_its_own_error(number: int) -> None:
    # THREATS 112
    with pytest.raises(JournalUnavailable, match=r"^place: cannot take it at the moment \(.*\(ulimit -n\)") as caught:
        with disk_errors("place", "take it"):
            raise OSError(number, os.strerror(number))
    assert not isinstance(caught.value, DiskFull)


def test_other_errors_say_where_and_what() -> None:
    with pytest.raises(JournalError, match=r"^place: cannot take it \(Input/output error\); check") as caught:
        with disk_errors("place", "take it"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
    assert not isinstance(caught.value, JournalUnavailable)


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


def test_a_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_file(tmp_path / "file", 4) == b"0123"
    assert read_file(tmp_path / "absent", 4) is None
    with pytest.raises(JournalError, match="cannot be read"):
        read_file(tmp_path, 4)


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


@pytest.fixture(params=[0o022, 0o000, 0o777], ids="{:03o}".format)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def modes(top: Path) -> dict[str, int]:
    return {str(path.relative_to(top)): path.stat().st_mode & 0o777 for path in top.rglob("*")}


@pytest.mark.usefixtures("umask")
def test_what_is_made_is_for_this_user_only(tmp_path: Path) -> None:
    # THREATS 100
    make_folder(tmp_path / "a" / "b")
    os.close(open_private(tmp_path / "a" / "file", os.O_RDWR))
    replace_file(tmp_path / "a" / "replaced", b"")
    assert modes(tmp_path) == {"a": 0o700, "a/b": 0o700, "a/file": 0o600, "a/replaced": 0o600}


def test_what_is_there_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "folder").chmod(0o750)
    (tmp_path / "file").chmod(0o640)
    make_folder(tmp_path / "folder")
    os.close(open_private(tmp_path / "file", os.O_RDWR))
    assert modes(tmp_path) == {"folder": 0o750, "file": 0o640}
    with pytest.raises(FileExistsError):
        open_private(tmp_path / "file", os.O_RDWR | os.O_EXCL)
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")


@pytest.mark.parametrize("fails", ["error", "kill"])
def test_folder_is_durable_although_the_first_try_was_stopped(tmp_path: Path, fails: str) -> None:
    # All rows of its log would be gone after a power cut, although they were synced.
    before, after = tmp_path / "before", tmp_path / "after"
    (before / "there").mkdir(parents=True)
    (before / "there" / "file").touch()
    folder = before / "there" / "journal" / "log"
    for step in range(1, 5):
        lying = LyingDisk(before, **{"error": {"fail_at": (step, errno.EIO)}, "kill": {"cut_at": step}}[fails])
        with lying.installed(), suppress(OSError, PowerCut):
            make_folder(folder)
        # The next process finds what was made.
        lying.go_on()
        with lying.installed():
            make_folder(folder)
        left = after / f"{step}"
        left.mkdir(parents=True)
        lying.power_cut(left, None)
        assert (left / "there" / "journal" / "log").is_dir(), step
        shutil.rmtree(before / "there" / "journal")


def test_working_folder_may_be_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_folder(Path("journal"))
    make_folder(Path("journal"))
    assert (tmp_path / "journal").is_dir()


def test_folder_that_may_not_be_listed_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path) -> None:
        raise PermissionError(errno.EACCES, "test")

    monkeypatch.setattr(Path, "iterdir", refused)
    make_folder(tmp_path / "journal")
    assert (tmp_path / "journal").is_dir()


def test_empty_folder_in_one_that_may_not_be_read_can_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "test")

    monkeypatch.setattr(disk, "sync_folder", refused)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    make_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    # THREATS 100
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        open_private(tmp_path / "link", os.O_RDWR)
    (tmp_path / f".file.{os.getpid()}").symlink_to(tmp_path / "target")
    replace_file(tmp_path / "file", b"new")
    assert (tmp_path / "target").read_bytes() == b""
