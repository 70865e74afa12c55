"""What a collector's next process finds, after it was killed at any step."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.journal.logs import SOURCE, items
from tests.traces import holders
from weirpool import JournalCorrupt, JournalLocked, JournalMismatch
from weirpool.checkpoints import join, split
from weirpool.journal import JournalReader, JournalWriter, Request
from weirpool.journal import secret as secrets
from weirpool.journal.feedlog import MAX_PRIVATE_BYTES, NO_TOKEN, NOT_RESUMED, FeedLog, Place, State, fits
from weirpool.journal.format import NO_ITEMS
from weirpool.journal.identity import load
from weirpool.journal.layout import IDENTITY, LOCK, SECRET, log_folder
from weirpool.journal.writer import MAX_STATE_BYTES

REQUEST = Request("route", b"data")
CHECKPOINT = join(b"public", b"private")


@pytest.fixture
def opened(tmp_path: Path) -> Callable[..., FeedLog]:
    """Opens the log as a process does; the one before it is closed as the kernel does when it is killed."""
    last: list[FeedLog] = []

    def open_(request: Request = REQUEST) -> FeedLog:
        for log in last:
            kill(log)
        last[:] = [FeedLog(Place(journal=tmp_path, source=SOURCE, request=request, options={"fsync": False}))]
        return last[0]

    return open_


def kill(log: FeedLog) -> None:
    for lock in (log._lock, log._writer and log._writer._lock):
        if lock is not None:
            lock.close()


def opening(log: FeedLog, checkpoint: bytes | None = CHECKPOINT, token: bytes = b"token") -> State:
    state = log.begin(token)
    state = State(checkpoint, True, False, 5, state.session)
    log.keep(state)
    return state


def killed_while_appending(log: FeedLog, batch: pa.RecordBatch, state: State) -> None:
    def killed(*arguments: object) -> int:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(JournalWriter, "append", killed)
        log.append(batch, "route", state)


def recorded(path: Path) -> list[tuple[int, str]]:
    return [(gap.position, gap.reason) for gap in JournalReader(path, SOURCE).gaps()]


def test_a_stream_that_never_opens_leaves_nothing(tmp_path: Path, opened: Callable[..., FeedLog]) -> None:
    log = opened()
    opening(log)
    assert not log.exists
    assert sorted(os.listdir(log_folder(tmp_path, SOURCE))) == sorted([LOCK, SECRET])
    log.abandon()
    log.close()
    assert os.listdir(tmp_path) == []


def test_the_log_comes_with_the_first_record(tmp_path: Path, opened: Callable[..., FeedLog]) -> None:
    log = opened()
    state = opening(log)
    assert (log.exists, log.opening, load(log_folder(tmp_path, SOURCE))) == (False, True, None)
    assert log.append(items(0, 3), "route", state) == 3
    assert (log.exists, log.opening) == (True, False)
    again = opened()
    assert (again.state, again.token, again.loss, again.opening) == (state, b"token", "", False)


def test_a_stream_that_was_opened_is_found_before_there_is_a_log(opened: Callable[..., FeedLog]) -> None:
    state = opening(opened())
    log = opened()
    assert (log.exists, log.state, log.token, log.loss, log.opening) == (False, state, b"token", "", True)


def test_a_stream_that_was_being_opened_is_a_gap_before_the_first_row(
    tmp_path: Path, opened: Callable[..., FeedLog]
) -> None:
    opened().begin(b"token")
    log = opened()
    assert (log.exists, log.loss) == (False, NOT_RESUMED)
    # It is not known that anything was lost: the gap waits for a row.
    log.append_gap(log.loss)
    assert (log.exists, log.gaps) == (False, 0)
    log = opened()
    assert (log.loss, log.state.begun) == ("", False)
    state = opening(log)
    # Killed again: still not forgotten.
    log = opened()
    assert (log.state, log.loss) == (state, "")
    log.append(items(0, 1), "route", state)
    assert (recorded(tmp_path), log.gaps) == ([(0, NOT_RESUMED)], 1)
    log.append(items(1, 1), "route", state)
    assert recorded(tmp_path) == [(0, NOT_RESUMED)]


def test_a_gap_that_was_not_written_is_the_next_process_s(tmp_path: Path, opened: Callable[..., FeedLog]) -> None:
    log = opened()
    state = log.begin(b"")
    log.append(items(0, 3), "route", State(None, True, False, 5, state.session))
    # Here the connection breaks, and the process is killed before it can record the gap.
    log = opened()
    assert log.loss == NOT_RESUMED
    log.append_gap(log.loss)
    # Recorded once: the process after it has nothing to add.
    log = opened()
    assert (log.loss, recorded(tmp_path)) == ("", [(3, NOT_RESUMED)])
    # Neither has the one after that, whose stream was being opened.
    log.begin(b"")
    log = opened()
    log.append_gap(log.loss)
    state = opening(log, None, b"")
    log.append(items(3, 1), "route", state)
    assert recorded(tmp_path) == [(3, NOT_RESUMED)]


def test_a_lost_secret_is_a_gap(opened: Callable[..., FeedLog], tmp_path: Path) -> None:
    log = opened()
    log.append(items(0, 3), "route", opening(log))
    (log_folder(tmp_path, SOURCE) / SECRET).unlink()
    assert opened().loss == NO_TOKEN


@pytest.mark.parametrize("session", [None, 7])
def test_a_foreign_secret_is_a_gap(opened: Callable[..., FeedLog], tmp_path: Path, session: int | None) -> None:
    log = opened()
    state = opening(log)
    log.append(items(0, 3), "route", state)
    stranger = secrets.Secret(owner="another", session=session or secrets.new_session(), token=b"theirs", state=b"junk")
    secrets.save(log_folder(tmp_path, SOURCE), stranger)
    log = opened()
    public = State(join(b"public", b""), True, False, 5, state.session)
    assert (log.loss, log.token, log.state) == (NO_TOKEN, b"", public)


def test_the_private_part_of_a_checkpoint_is_in_the_secret_alone(
    tmp_path: Path, opened: Callable[..., FeedLog]
) -> None:
    # THREATS 100
    log = opened()
    texts = [b"the first private part", b"the second private part", b"the third private part"]
    state = opening(log, join(b"public", texts[0]))
    log.append(items(0, 1), "route", state)
    for text in texts[1:]:
        state = State(join(b"public", text), True, False, 5, state.session)
        log.append(items(log.position, 1), "route", state)
        assert [holders(tmp_path, each) for each in texts] == [{SECRET} if each == text else set() for each in texts]
        again = opened()
        assert (again.state, again.token, again.loss) == (state, b"token", "")
        log = again
    log.append(items(log.position, 1), "route", State(join(b"public", b""), True, False, 5, state.session))
    assert [holders(tmp_path, each) for each in texts] == [set(), set(), set()]
    assert opened().token == b"token"


def test_a_private_part_is_durable_before_the_log_refers_to_it(
    opened: Callable[..., FeedLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened()
    state = opening(log)
    log.append(items(0, 1), "route", state)
    later = State(join(b"later", b"part"), True, False, 5, state.session)

    def killed(*arguments: object) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(JournalWriter, "append", killed)
        log.append(items(1, 1), "route", later)
    # The earlier checkpoint, with the later private part: sessions take of it what they need.
    assert opened().state == State(join(b"public", b"part"), True, False, 5, state.session)


def test_a_secret_that_was_half_written_is_not_left(tmp_path: Path, opened: Callable[..., FeedLog]) -> None:
    state = opening(opened())
    left = log_folder(tmp_path, SOURCE) / f".{SECRET}.1"
    left.write_bytes(b"half of it")
    assert opened().state == state
    assert not left.exists()


def test_a_checkpoint_has_room_in_the_log_and_in_the_secret(tmp_path: Path, opened: Callable[..., FeedLog]) -> None:
    largest = join(bytes(MAX_STATE_BYTES - 1_024), bytes(MAX_PRIVATE_BYTES))
    assert fits(largest)
    assert not fits(join(bytes(MAX_STATE_BYTES - 1_023), b""))
    assert not fits(join(b"", bytes(MAX_PRIVATE_BYTES + 1)))
    log = opened()
    state = opening(log, largest, bytes(65_535))
    assert opened().state == state
    assert split(state.checkpoint or b"") == split(largest)


def test_a_secret_of_another_request_is_dropped(opened: Callable[..., FeedLog]) -> None:
    opening(opened())
    log = opened(Request("another"))
    assert (log.state, log.loss, log.opening) == (State(), "", False)


def test_a_log_of_another_request_is_refused(tmp_path: Path, opened: Callable[..., FeedLog]) -> None:
    # THREATS 99
    log = opened()
    log.append(items(0, 3), "route", opening(log))
    with pytest.raises(JournalMismatch, match="with route 'route' and different data, not the requested 'another'"):
        opened(Request("another"))
    opened()


def test_old_tokens_are_dropped(tmp_path: Path, opened: Callable[..., FeedLog]) -> None:
    path = log_folder(tmp_path, SOURCE) / SECRET
    log = opened()
    log.append(items(0, 3), "route", opening(log, token=b"first"))
    assert path.exists()
    log.append_gap("lost")
    assert not path.exists()
    state = opening(log, token=b"second")
    log.append(NO_ITEMS, "route", State(None, True, True, 0, state.session))
    assert not path.exists()


def test_a_complete_stream_stays_complete_if_the_next_never_opens(opened: Callable[..., FeedLog]) -> None:
    log = opened()
    state = log.begin(b"")
    log.append(items(0, 3), "route", State(None, True, True, 0, state.session))
    log = opened()
    log.reopen()
    assert not log.state.done
    opening(log)
    log.abandon()
    log = opened()
    assert (log.state.done, log.loss) == (True, "")
    log.reopen()
    state = opening(log)
    # This one was opened, and its process killed: it goes on without being asked for once more.
    assert opened().state == state


def test_a_killed_creation_is_gone_on_with(tmp_path: Path, opened: Callable[..., FeedLog]) -> None:
    log = opened()
    state = opening(log)

    killed_while_appending(log, items(0, 3), state)
    assert (log_folder(tmp_path, SOURCE) / IDENTITY).exists()
    log = opened()
    assert (log.exists, log.opening, log.state, log.token) == (True, True, state, b"token")


@pytest.mark.parametrize("checkpoint", [None, join(b"checkpoint", b"")], ids=["resumes nothing", "resumes"])
@pytest.mark.parametrize("rows", [0, 3])
def test_a_gap_is_recorded_once_though_a_kill_follows_it(
    tmp_path: Path,
    opened: Callable[..., FeedLog],
    checkpoint: bytes | None,
    rows: int,
) -> None:
    log = opened()
    if rows:
        log.append(items(0, rows), "route", opening(log))
        log.append(items(rows, 0), "route", State(None, True, True, 0, log.state.session))
        log.reopen()
    # The stream is being opened twice: the first time nobody knows what came of it.
    log.begin(b"")
    log = opened()
    log.append_gap(log.loss)
    state = opening(log, checkpoint)

    killed_while_appending(log, items(rows, 3), state)
    assert recorded(tmp_path) == [(rows, NOT_RESUMED)]
    log = opened()
    assert log.loss == ("" if checkpoint else NOT_RESUMED)
    # With a checkpoint, its publisher has forgotten the session.
    log.append_gap(log.loss or "refused")
    assert log.gaps == 0
    log.append(items(rows, 3), "route", opening(log))
    assert recorded(tmp_path) == [(rows, NOT_RESUMED)]
    log.append_gap("another")
    assert recorded(tmp_path) == [(rows, NOT_RESUMED), (rows + 3, "another")]


def test_a_session_whose_gap_is_recorded_is_resumed_after_a_kill(
    tmp_path: Path, opened: Callable[..., FeedLog]
) -> None:
    opened().begin(b"")
    log = opened()
    log.append_gap(log.loss)
    state = opening(log)

    killed_while_appending(log, items(0, 3), state)
    log = opened()
    assert (log.state.checkpoint, log.state.outstanding, log.token, log.loss) == (CHECKPOINT, 5, b"token", "")
    log.append(items(0, 3), "route", state)
    assert recorded(tmp_path) == [(0, NOT_RESUMED)]


def test_a_second_collector_is_kept_out_before_there_is_a_log(tmp_path: Path, opened: Callable[..., FeedLog]) -> None:
    opening(opened())
    with pytest.raises(JournalLocked):
        FeedLog(Place(journal=tmp_path, source=SOURCE, request=REQUEST, options={}))


def test_a_state_of_somebody_else_is_corrupt(tmp_path: Path, opened: Callable[..., FeedLog]) -> None:
    # THREATS 98
    with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
        writer.append_gap("a test", b"\x91" * 50_000)
    with pytest.raises(JournalCorrupt, match="not written by a collector"):
        opened()
