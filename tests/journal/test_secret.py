from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from weirpool import DiskFull
from weirpool.journal.layout import SECRET
from weirpool.journal.secret import MAX_SECRET_BYTES, Secret, drop, load, new_session, save, tidy

WHOLE = Secret(owner="log", session=7, token=b"\0token\xff", private=b"private\xff", state=b"state", gap="reason")


def test_a_secret_is_kept_alone_and_privately(tmp_path: Path) -> None:
    assert load(tmp_path) is None
    save(tmp_path, Secret(owner="log", session=6, token=b"older"))
    save(tmp_path, WHOLE)
    assert load(tmp_path) == WHOLE
    assert os.listdir(tmp_path) == [SECRET]
    assert (tmp_path / SECRET).stat().st_mode & 0o777 == 0o600
    drop(tmp_path)
    drop(tmp_path)
    assert (load(tmp_path), os.listdir(tmp_path)) == (None, [])


def test_what_a_killed_process_left_of_it_is_removed(tmp_path: Path) -> None:
    # THREATS 100
    save(tmp_path, WHOLE)
    for name in (f".{SECRET}.1", f".{SECRET}.22", "._log.json.1"):
        (tmp_path / name).write_bytes(b"half")
    tidy(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["._log.json.1", SECRET]
    assert load(tmp_path) == WHOLE


def test_sessions_have_different_numbers() -> None:
    assert len({new_session() for _ in range(1_000)}) == 1_000


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"[]", b'{"owner":1}', b"[" * 100_000, b" " * MAX_SECRET_BYTES + b"{}"], ids=len
)
def test_a_damaged_secret_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / SECRET).write_bytes(data)
    assert load(tmp_path) is None


def test_a_secret_cut_anywhere_is_none(tmp_path: Path) -> None:
    whole = msgspec.json.encode(WHOLE)
    for size in range(len(whole)):
        (tmp_path / SECRET).write_bytes(whole[:size])
        assert load(tmp_path) is None


def test_a_full_disk_keeps_the_older_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, WHOLE)

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(DiskFull):
        save(tmp_path, Secret(owner="log", session=8))
    assert load(tmp_path) == WHOLE
