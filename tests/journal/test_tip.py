from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, all_numbers, append, items, segment
from weirpool import JournalError
from weirpool.journal import Journal, JournalWriter
from weirpool.journal.layout import UNSYNCED, log_folder
from weirpool.journal.replay import Reliance

ONE = Reliance("1" * 32, 0)
TWO = Reliance("2" * 32, 5)


@pytest.fixture
def writer(tmp_path: Path) -> JournalWriter:
    """A log with one batch."""
    writer = JournalWriter.open(tmp_path, SOURCE)
    append(writer, 3)
    return writer


@pytest.fixture
def unsynced(tmp_path: Path) -> Path:
    return log_folder(tmp_path, SOURCE) / UNSYNCED


def fail(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fails(*arguments: object) -> int:
        raise OSError(errno.EIO, "test")

    monkeypatch.setattr(os, call, fails)


def test_a_staged_batch_is_read_after_it_is_published(writer: JournalWriter, tmp_path: Path) -> None:
    with writer:
        staged = writer.stage(items(3, 2), "numbers", b"staged")
        assert staged is not None
        record = staged.record
        content = segment(log_folder(tmp_path, SOURCE)).read_bytes()
        assert content[record.offset :] == b"".join(record.chunks)
        assert (writer.position, Journal(tmp_path).reader(SOURCE).end) == (3, 3)
        assert writer.publish(staged) == writer.position == 5
        assert writer.state == b"staged"
        append(writer, 4)
    assert all_numbers(tmp_path) == list(range(9))


def test_a_canceled_batch_leaves_nothing(writer: JournalWriter, unsynced: Path, tmp_path: Path) -> None:
    with writer:
        writer.rely_on(ONE)
        staged = writer.stage(items(3, 2), "numbers")
        assert staged is not None
        writer.cancel(staged)
        # Redo files may have the batch.
        assert not unsynced.exists()
        assert segment(log_folder(tmp_path, SOURCE)).stat().st_size == staged.record.offset
        append(writer, 1)
    assert all_numbers(tmp_path) == list(range(4))


def test_a_segment_that_starts_is_durable_at_once(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=3_000) as writer:
        assert [writer.stage(items(0, 5), "numbers"), writer.position] == [None, 5]
        while (staged := writer.stage(items(writer.position, 5), "numbers")) is not None:
            writer.publish(staged)
        assert writer.position > 10
        end = writer.position
    assert all_numbers(tmp_path) == list(range(end))


def test_a_log_that_is_never_synced_stages_nothing(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
        assert [writer.stage(items(at, 5), "numbers") for at in (0, 5)] == [None, None]
        assert writer.position == 10


def test_relying_on_redo_files_is_recorded_until_the_segment_is_settled(writer: JournalWriter, unsynced: Path) -> None:
    with writer:
        writer.rely_on(ONE)
        writer.rely_on(ONE._replace(number=9))
        assert unsynced.read_bytes() == ONE.encode()
        writer.rely_on(TWO)
        assert unsynced.read_bytes() == TWO.encode()
        writer.settle()
        assert not unsynced.exists()
        writer.rely_on(ONE)
    assert not unsynced.exists()


def test_a_failed_sync_leaves_the_rest_to_recovery(
    writer: JournalWriter, unsynced: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    writer.rely_on(ONE)
    staged = writer.stage(items(3, 2), "numbers")
    assert staged is not None
    writer.publish(staged)
    with monkeypatch.context() as patch, pytest.raises(JournalError):
        fail(patch, "fsync")
        writer.sync()
    # The system may have dropped the bytes: nothing may pretend that they are durable.
    for action in (writer.sync, writer.settle):
        with pytest.raises(JournalError, match="open the log again"):
            action()
    with pytest.raises(JournalError, match="the writer is closed"):
        append(writer, 1)
    writer.close()
    assert unsynced.exists()
    with JournalWriter.open(tmp_path, SOURCE) as again:
        assert again.position == 5
    assert not unsynced.exists()


def test_a_mark_that_cannot_be_written_cancels_the_batch(
    writer: JournalWriter, unsynced: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with writer:
        writer.rely_on(ONE)
        staged = writer.stage(items(3, 2), "numbers")
        assert staged is not None
        with monkeypatch.context() as patch, pytest.raises(JournalError):
            fail(patch, "pwrite")
            writer.publish(staged)
        assert (writer.position, unsynced.exists()) == (3, False)
        append(writer, 1)
    assert all_numbers(tmp_path) == list(range(4))


def test_closing_twice_and_settling_a_closed_log(writer: JournalWriter) -> None:
    writer.close()
    writer.close()
    writer.settle()
    writer.sync()
    assert writer.position == 3
