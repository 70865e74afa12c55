from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

import pytest

from weirpool import JournalError, JournalLocked
from weirpool.journal.lock import Lock


def is_free(path: Path) -> bool:
    """Return whether a lock can be taken, and give it back."""
    try:
        Lock(path).close()
    except JournalLocked:
        return False
    return True


def test_a_second_lock_is_told_who_holds_the_first(tmp_path: Path) -> None:
    with Lock(tmp_path / "_lock"):
        with pytest.raises(JournalLocked) as caught:
            Lock(tmp_path / "_lock")
    message = str(caught.value)
    assert f"process {os.getpid()} on {socket.gethostname()} since 2" in message
    assert "stop it, or choose another source name" in message


def test_a_lock_that_was_given_back_is_free(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "_lock")
    lock.close()
    lock.close()
    assert is_free(tmp_path / "_lock")


@pytest.mark.parametrize("left", [b"junk", b'{"host":"\xff","pid":1,"since":""}'])
def test_a_lock_whose_owner_left_no_name_holds_too(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "_lock"
    path.write_bytes(left)
    with open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(JournalLocked, match="another process writes"):
            Lock(path)


def test_a_lock_inherited_by_a_child_can_be_given_back(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "_lock")
    # What a fork does: another descriptor of the same open file.
    inherited = os.dup(lock._fd)
    assert not is_free(tmp_path / "_lock")
    lock.close()
    try:
        assert is_free(tmp_path / "_lock")
    finally:
        os.close(inherited)


@pytest.mark.parametrize("temporary", [False, True])
def test_a_forked_process_does_not_give_back_the_lock_of_its_parent(tmp_path: Path, temporary: bool) -> None:
    path = tmp_path / "_lock"
    lock = Lock(path, temporary=temporary)
    child = os.fork()
    if not child:
        lock.close()
        os._exit(0 if lock.closed else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert path.exists()
    assert not is_free(path)
    lock.close()
    assert path.exists() is not temporary
    assert is_free(path)


def test_a_lock_holds_though_the_disk_has_no_room_for_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with Lock(tmp_path / "_lock"), pytest.raises(JournalLocked):
        Lock(tmp_path / "_lock")


@pytest.mark.parametrize("replaced", [False, True])
def test_a_lock_on_a_file_that_was_removed_meanwhile_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    # The owner before has removed it between the opening and the locking: the next process would lock another file.
    path, flock = tmp_path / "_lock", fcntl.flock
    removed = []

    def locked(fd: int, operation: int) -> None:
        if not removed:
            removed.append(fd)
            path.unlink()
            if replaced:
                path.touch()
        flock(fd, operation)

    monkeypatch.setattr(fcntl, "flock", locked)
    with Lock(path):
        assert removed and not is_free(path)
    assert is_free(path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be locked"):
        Lock(tmp_path / "absent" / "_lock")


def test_a_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(fd: int, operation: int) -> None:
        raise OSError(95, "Operation not supported")

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", unsupported)
        with pytest.raises(JournalError, match="Operation not supported"):
            Lock(tmp_path / "_lock")
    Lock(tmp_path / "_lock").close()
