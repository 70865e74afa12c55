from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.receiving.micro_batches import data_of, rows, staged
from weirpool.errors import ApplicationError, DiskFull, Invalid, JournalCorrupt, JournalMismatch
from weirpool.journal import Journal, JournalWriter
from weirpool.journal.identity import Request
from weirpool.journal.layout import log_folder
from weirpool.receiving import ledger
from weirpool.receiving import log as module
from weirpool.receiving.log import ReceivedLog
from weirpool.receiving.messages import Committed, Stage


@pytest.fixture
def log(tmp_path: Path) -> ReceivedLog:
    return opened(tmp_path)


def opened(journal: Path) -> ReceivedLog:
    return ReceivedLog(journal, "a", "a", fsync=False)


def once_then_full(log: ReceivedLog) -> Callable[..., None]:
    """Return what writes to a log once, and then finds the disk full."""
    real, written = log._write, []

    def write(*arguments: Any) -> None:
        if written:
            raise DiskFull("full")
        written.append(True)
        real(*arguments)

    return write


def held(journal: Path) -> list[bytes]:
    reader = Journal(journal).reader("a")
    return [value for batch in reader.read(0, reader.end) for value in batch["data"].to_pylist()]


def test_rows_of_a_micro_batch_are_appended_in_the_order_of_the_commit(log: ReceivedLog, tmp_path: Path) -> None:
    one, two = staged(log, "q", 0)
    assert log.commit("q", 0, [two, one]) == Committed(0, 8)
    assert held(tmp_path) == data_of("q", 0, 1) + data_of("q", 0, 0)
    assert log.stages.used_bytes == 0


def test_repeated_commit_answers_the_same(log: ReceivedLog, tmp_path: Path) -> None:
    log.append(rows([b"pushed"]))
    first = staged(log, "q", 0)
    log.commit("q", 0, first)
    again = staged(log, "q", 0)
    assert log.commit("q", 0, again) == Committed(1, 9, repeated=True)
    log.commit("q", 1, staged(log, "q", 1))
    assert log.commit("q", 0, first) == Committed(None, None, repeated=True)
    log.close()
    later = opened(tmp_path)
    assert later.commit("q", 1, first) == Committed(9, 17, repeated=True)
    assert later.committed("q", 2) is None
    assert len(held(tmp_path)) == 17


def test_two_queries_do_not_disturb_each_other(log: ReceivedLog, tmp_path: Path) -> None:
    p, q = staged(log, "p", 7), staged(log, "q", 3)
    assert log.commit("q", 3, q) == Committed(0, 8)
    assert log.commit("p", 7, p) == Committed(8, 16)
    log.close()
    later = opened(tmp_path)
    assert later.commit("q", 3, []) == Committed(0, 8, repeated=True)
    assert later.commit("p", 7, []) == Committed(8, 16, repeated=True)


def test_micro_batch_without_rows_is_remembered(log: ReceivedLog, tmp_path: Path) -> None:
    assert log.commit("q", 0, []) == Committed(0, 0)
    log.close()
    assert opened(tmp_path).commit("q", 0, []) == Committed(0, 0, repeated=True)


def test_nothing_is_appended_unless_all_stages_are_there(log: ReceivedLog, tmp_path: Path) -> None:
    one, two = staged(log, "q", 0)
    for other in (Stage("gone", 4, two.digest), Stage(two.id, 3, two.digest), Stage(two.id, 4, one.digest)):
        with pytest.raises(ApplicationError, match="run the micro-batch again"):
            log.commit("q", 0, [one, other])
    assert log.position == 0
    assert log.commit("q", 0, [one, two]) == Committed(0, 8)


def test_large_micro_batch_goes_on_after_its_first_rows(
    log: ReceivedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 100)
    stages = staged(log, "q", 0)
    real = ReceivedLog._write
    written: list[int] = []

    def write(self: ReceivedLog, *arguments: object) -> None:
        if len(written) == 1:
            raise KeyboardInterrupt
        written.append(1)
        real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ReceivedLog, "_write", write)
    with pytest.raises(KeyboardInterrupt):
        log.commit("q", 0, stages)
    monkeypatch.setattr(ReceivedLog, "_write", real)
    assert 0 < log.position < 8
    log.close()
    later = opened(tmp_path)
    assert held(tmp_path) == data_of("q", 0, 0) + data_of("q", 0, 1)
    assert later.commit("q", 0, []) == Committed(0, 8, repeated=True)
    later.close()
    (log_folder(tmp_path, "a") / "_commit").unlink(missing_ok=True)


def test_collected_log_is_not_written_to(tmp_path: Path) -> None:
    JournalWriter.open(tmp_path, "a", request=Request("a"), fsync=False).close()
    with pytest.raises(JournalMismatch):
        opened(tmp_path)


def test_received_log_is_not_collected_into(log: ReceivedLog, tmp_path: Path) -> None:
    log.close()
    with pytest.raises(JournalMismatch):
        JournalWriter.open(tmp_path, "a", request=Request("a"), fsync=False)


def test_damaged_ledger_is_refused(log: ReceivedLog, tmp_path: Path) -> None:
    log.commit("q", 0, [])
    log.close()
    (log_folder(tmp_path, "a") / "_received").write_bytes(b"junk")
    with pytest.raises(JournalCorrupt, match="_received"):
        opened(tmp_path)
    # The lock was released.
    (log_folder(tmp_path, "a") / "_received").unlink()
    opened(tmp_path).close()


def test_stages_of_a_commit_that_was_refused_are_dropped(log: ReceivedLog) -> None:
    one, two = staged(log, "q", 0)
    with pytest.raises(ApplicationError, match="gone"):
        log.commit("q", 0, [one, two, Stage("gone", 1, "")])
    log.stages.drop([one.id, two.id])
    assert log.stages.used_bytes == 0


def test_stages_stay_while_their_commit_is_not_complete(
    log: ReceivedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 100)
    stages = staged(log, "q", 0)
    real = ReceivedLog._write
    room = [1]

    def write(self: ReceivedLog, *arguments: object) -> None:
        if not room:
            raise DiskFull("full")
        room.pop()
        real(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ReceivedLog, "_write", write)
    with pytest.raises(DiskFull):
        log.commit("q", 0, stages)
    log.stages.drop([stage.id for stage in stages])
    room += [1] * 10
    assert log.commit("q", 0, stages) == Committed(0, 8, repeated=True)
    assert held(tmp_path) == data_of("q", 0, 0) + data_of("q", 0, 1)


def test_stage_counts_once(log: ReceivedLog) -> None:
    one, _ = staged(log, "q", 0)
    with pytest.raises(Invalid, match="twice"):
        log.commit("q", 0, [one, one])
    assert log.position == 0


def test_micro_batch_is_entered_although_the_disk_was_full_meanwhile(
    log: ReceivedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **named: object) -> None:
        raise DiskFull("full")

    first = staged(log, "q", 0)
    with monkeypatch.context() as patch:
        patch.setattr(ledger, "replace_file", full)
        with pytest.raises(DiskFull):
            log.commit("q", 0, first)
    other = staged(log, "p", 0)
    real = log._finish
    # The process dies after the rows of the other query are in the log.
    monkeypatch.setattr(log, "_finish", lambda state: real(state) if state.query == "q" else None)
    log.commit("p", 0, other)
    log.close()
    later = opened(tmp_path)
    assert later.commit("q", 0, first) == Committed(0, 8, repeated=True)
    assert len(held(tmp_path)) == 16


def test_push_waits_for_the_rest_of_a_micro_batch(
    log: ReceivedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Its row would stand where the plan has one of the micro-batch, which would be taken for written, and be lost.
    monkeypatch.setattr(module, "BATCH_BYTES", 100)
    stages = staged(log, "q", 0)
    with monkeypatch.context() as patch:
        patch.setattr(log, "_write", once_then_full(log))
        with pytest.raises(DiskFull):
            log.commit("q", 0, stages)
        assert 0 < log.position < 8
        with pytest.raises(DiskFull):
            log.append(rows([b"pushed"]))
    log.append(rows([b"pushed"]))
    assert log.commit("q", 0, stages) == Committed(0, 8, repeated=True)
    assert held(tmp_path) == [*data_of("q", 0, 0), *data_of("q", 0, 1), b"pushed"]


def test_other_query_waits_for_the_rest_of_a_micro_batch(
    log: ReceivedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 100)
    one, other = staged(log, "q", 0), staged(log, "p", 0)
    with monkeypatch.context() as patch:
        patch.setattr(log, "_write", once_then_full(log))
        with pytest.raises(DiskFull):
            log.commit("q", 0, one)
        with pytest.raises(DiskFull):
            log.committed("q", 0)
    assert log.commit("p", 0, other) == Committed(8, 16)
    assert log.committed("q", 0) == Committed(0, 8, repeated=True)
    assert held(tmp_path) == [value for query in "qp" for part in (0, 1) for value in data_of(query, 0, part)]


def test_first_micro_batch_is_stored_once_although_many_queries_follow(
    log: ReceivedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "MAX_QUERIES", 4)
    monkeypatch.setattr(ledger, "LAST_WRITES", 1)
    for number in range(3):
        log.commit(f"old-{number}", 5, [])
    first = staged(log, "q", 0)
    log.commit("q", 0, first)
    for number in range(5):
        log.commit(f"write-{number}", 0, [], single=True)
    log.close()
    later = opened(tmp_path)
    assert later.commit("q", 0, first) == Committed(0, 8, repeated=True)
    assert later.commit("write-4", 0, [], single=True) == Committed(8, 8, repeated=True)
    assert len(held(tmp_path)) == 8


def test_other_rows_of_the_same_micro_batch_are_reported(log: ReceivedLog, caplog: pytest.LogCaptureFixture) -> None:
    log.commit("q", 0, staged(log, "q", 0))
    with caplog.at_level(logging.WARNING):
        log.commit("q", 0, staged(log, "q", 0))
    assert not caplog.records
    log.commit("q", 0, staged(log, "q", 0, parts=1))
    assert "copies of one checkpoint" in caplog.text


def test_lost_rest_of_a_micro_batch_is_damage(
    log: ReceivedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 100)
    stages = staged(log, "q", 0)
    real = log._write
    monkeypatch.setattr(log, "_write", lambda *arguments: (real(*arguments), log._writer.close()))
    with pytest.raises(Exception, match="closed"):
        log.commit("q", 0, stages)
    for path in (log_folder(tmp_path, "a") / "_stages").iterdir():
        path.unlink()
    with pytest.raises(JournalCorrupt, match="restore the folder"):
        opened(tmp_path)
