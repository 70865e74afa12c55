from __future__ import annotations

import stat
from pathlib import Path

import pytest

from weirpool.errors import SessionStoreError
from weirpool.store import SessionFolder
from weirpool.store.log import TEMPORARY

ONE, TWO, THREE = "1" * 64, "2" * 64, "3" * 64


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with two sessions of an earlier server."""
    folder = SessionFolder(tmp_path / "a" / "sessions")
    for name in (ONE, TWO):
        log = folder.create(name)
        assert log is not None
        log.rewrite(name.encode())
    folder.close()
    folder.close()
    return tmp_path / "a" / "sessions"


def test_next_server_finds_the_logs(place: Path) -> None:
    folder = SessionFolder(place)
    assert len(folder) == 2
    found = folder.open(ONE)
    assert found is not None
    assert found[1] == [ONE.encode()]
    # The first log is already open, and the second does not exist.
    assert folder.open(ONE) is None and folder.open(THREE) is None
    assert len(folder) == 2
    found[0].close()
    assert folder.open(ONE) is not None
    folder.close()


def test_names_are_given_once(place: Path) -> None:
    folder = SessionFolder(place)
    assert folder.create(ONE) is None
    third = folder.create(THREE)
    assert third is not None and folder.create(THREE) is None
    assert len(folder) == 3
    third.remove()
    assert len(folder) == 2
    assert folder.create(THREE) is not None
    folder.close()


def test_expire_removes_abandoned_logs(place: Path) -> None:
    # THREATS 30
    folder = SessionFolder(place)
    found = folder.open(ONE)
    assert found is not None
    folder.expire()
    assert len(folder) == 1
    assert folder.open(TWO) is None
    assert sorted(path.name for path in place.iterdir()) == [f"{ONE}.session", "lock"]
    found[0].append(b"on")
    folder.close()


def test_a_damaged_session_is_refused_and_the_others_live(place: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = place / f"{ONE}.session"
    damaged = bytearray(path.read_bytes())
    damaged[21] ^= 1
    path.write_bytes(bytes(damaged) + b"more")
    folder = SessionFolder(place)
    with pytest.raises(SessionStoreError, match="checksum"):
        folder.open(ONE)
    assert "checksum" in caplog.text
    assert folder.open(TWO) is not None
    folder.close()


def test_a_second_server_is_kept_out(place: Path) -> None:
    folder = SessionFolder(place)
    with pytest.raises(SessionStoreError, match="another server stores its sessions there"):
        SessionFolder(place)
    folder.close()
    SessionFolder(place).close()


def test_incomplete_logs_are_removed_and_others_kept(place: Path) -> None:
    (place / f"{THREE}.session{TEMPORARY}").write_bytes(b"half")
    (place / "notes.session").write_bytes(b"theirs")
    folder = SessionFolder(place)
    assert len(folder) == 2
    folder.expire()
    assert sorted(path.name for path in place.iterdir()) == ["lock", "notes.session"]
    folder.close()


def test_folder_is_private_to_its_owner(place: Path) -> None:
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in place.iterdir()} == {0o600}


def test_path_that_is_not_a_folder_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SessionStoreError, match="cannot be used"):
        SessionFolder(tmp_path / "file")
