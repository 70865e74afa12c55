from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from weirpool.errors import SessionStoreError
from weirpool.store.log import MAGIC, TEMPORARY, Log, frame, split

RECORDS = [b"first", b"", b"x" * 1000, b"last"]
WHOLE = MAGIC + b"".join(map(frame, RECORDS))


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def closed() -> list[str]:
    return []


@pytest.fixture
def log(tmp_path: Path, closed: list[str]) -> Log:
    return Log(tmp_path / "one.session", lambda: closed.append("closed"))


def test_records_come_back() -> None:
    assert split(WHOLE) == (RECORDS, len(WHOLE))


def test_a_record_that_was_never_finished_is_cut_off() -> None:
    for size in range(len(MAGIC), len(WHOLE)):
        records, end = split(WHOLE[:size])
        assert records == RECORDS[: len(records)]
        assert WHOLE[:end] == MAGIC + b"".join(map(frame, records))
        assert size - end < len(frame(RECORDS[len(records)]))


def test_bytes_that_never_came_are_cut_off() -> None:
    torn = frame(b"torn" * 9)
    for behind in (b"\0" * 100, torn[:12] + b"\0" * 36, torn[:7]):
        assert split(WHOLE + behind) == (RECORDS, len(WHOLE))


def test_damage_before_the_end_is_refused() -> None:
    for at in range(len(MAGIC), len(WHOLE) - len(frame(RECORDS[-1]))):
        damaged = bytearray(WHOLE)
        damaged[at] ^= 0x55
        with pytest.raises(ValueError, match="checksum"):
            split(bytes(damaged))


@pytest.mark.parametrize("data", [b"", MAGIC[:-1], b"weirpool session 2\n"])
def test_invalid_log_raises(data: bytes) -> None:
    with pytest.raises(ValueError, match="not the log of a session"):
        split(data)


def test_records_are_read_after_reopening(log: Log, closed: list[str]) -> None:
    log.rewrite(b"begun")
    log.append(b"more")
    assert log.size == log.path.stat().st_size
    log.close()
    log.close()
    log.path.write_bytes(log.path.read_bytes() + b"torn")
    again = Log(log.path, lambda: None)
    assert again.read() == [b"begun", b"more"]
    again.append(b"on")
    assert again.path.stat().st_size == again.size
    again.close()
    assert again.read() == [b"begun", b"more", b"on"]
    again.remove()
    assert not log.path.exists()
    assert closed == ["closed", "closed"]


def test_rewrite_replaces_all_records(log: Log) -> None:
    log.rewrite(b"x" * 10_000)
    log.append(b"more")
    log.rewrite(b"short")
    log.append(b"on")
    log.close()
    assert log.read() == [b"short", b"on"]
    assert [path.name for path in log.path.parent.iterdir()] == ["one.session"]
    log.close()


def test_sessions_that_wait_take_up_no_descriptors(tmp_path: Path) -> None:
    # THREATS 88, 111
    before = len(os.listdir("/proc/self/fd"))
    logs = [Log(tmp_path / f"{number}.session", lambda: None) for number in range(100)]
    for log in logs:
        log.rewrite(b"begun")
        log.append(b"more")
    assert len(os.listdir("/proc/self/fd")) == before
    assert all(log.read() == [b"begun", b"more"] for log in logs)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO])
def test_a_shortage_fails_one_record_only(log: Log, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    # THREATS 112
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    log.rewrite(b"begun")
    for failing in ("open", "pwrite"):
        with monkeypatch.context() as patched:
            patched.setattr(os, failing, fail)
            with pytest.raises(SessionStoreError, match="cannot be written"):
                log.append(b"lost")
    log.append(b"kept")
    assert log.read() == [b"begun", b"kept"]


def test_log_is_private_to_its_owner(log: Log) -> None:
    # THREATS 28
    log.rewrite(b"secret")
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    log.close()


@pytest.mark.parametrize("failing", ["open", "pwrite", "fdatasync"])
def test_full_disk_keeps_the_earlier_records(log: Log, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    log.rewrite(b"begun")
    with monkeypatch.context() as patched:
        patched.setattr(os, failing, no_room)
        with pytest.raises(SessionStoreError, match="No space left"):
            log.append(b"lost")
    log.append(b"kept")
    log.close()
    assert log.read() == [b"begun", b"kept"]
    log.close()


@pytest.mark.parametrize("failing", ["pwrite", "fsync", "rename"])
def test_where_writing_anew_fails_the_old_stays(log: Log, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    log.rewrite(b"old")
    with monkeypatch.context() as patched:
        patched.setattr(os, failing, no_room)
        with pytest.raises(SessionStoreError, match="cannot be rewritten"):
            log.rewrite(b"new")
    assert not log.path.with_name(log.path.name + TEMPORARY).exists()
    log.append(b"more")
    log.close()
    assert log.read() == [b"old", b"more"]
    log.close()


def test_damage_error_names_the_file(log: Log) -> None:
    log.path.write_bytes(b"junk")
    with pytest.raises(SessionStoreError, match=r"one\.session: not the log of a session"):
        log.read()
    log.close()
    log.path.unlink()
    with pytest.raises(SessionStoreError, match="cannot be read"):
        log.read()
