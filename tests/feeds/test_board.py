from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.journal.logs import flip, segment
from tests.objects.stores import numbers
from weirpool.archive import SealOptions, seal
from weirpool.feeds import board as boards
from weirpool.feeds.board import STALE_SECONDS, Board
from weirpool.feeds.status import FeedState, FeedStatus, Lag
from weirpool.journal import ITEMS, Journal, JournalWriter
from weirpool.journal.layout import COMMITTED, log_folder

BATCH = pa.record_batch([[b"x" * 100] * 10, [None] * 10], schema=ITEMS)


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 2e9

    def __call__(self) -> float:
        return self.now


def status(folder: Path, position: int, **options: Any) -> FeedStatus:
    fields: dict[str, Any] = {"name": "a", "url": "u", "route": "r", "source": "s", "state": FeedState.LIVE}
    return FeedStatus(**fields | {"journal": str(folder), "position": position, "budget": 10**6} | options)


def test_document_has_lags_and_budgets(tmp_path: Path) -> None:
    clock = Clock()
    board = Board(clock=clock, monotonic=clock)
    with JournalWriter.open(tmp_path, "s", fsync=False, budget_bytes=10**6, clock=clock) as writer:
        for _ in range(5):
            board.publish([status(tmp_path, writer.append(BATCH, "r"))])
            clock.now += 2
        Journal(tmp_path).trim("s", 20, reader="report")
        writer.refresh()
        [feed] = board.document().feeds
        assert feed.budget_free == writer.free_bytes
    # Row 20 was stored with the third batch, six seconds ago.
    assert feed.readers == {"report": Lag(20, 30, 6.0)}
    assert feed.rate == pytest.approx(40 / 8)
    # Documents are read from disk once a second.
    Journal(tmp_path).trim("s", 50, reader="report")
    assert board.document().feeds[0].readers["report"].rows == 30
    clock.now += 1
    assert board.document().feeds[0].readers == {"report": Lag(50, 0, 0.0)}


def test_feed_that_is_refused_has_no_rate_any_more(tmp_path: Path) -> None:
    clock = Clock()
    board = Board(clock=clock, monotonic=clock)
    with JournalWriter.open(tmp_path, "s", fsync=False) as writer:
        for _ in range(5):
            board.publish([status(tmp_path, writer.append(BATCH, "r"))])
            clock.now += 2
    assert board.document().feeds[0].rate > 0
    # The collector is started again, cannot open its log, and does not know its position.
    for _ in range(8):
        board.publish([status(tmp_path, 0, state=FeedState.REFUSED)])
        clock.now += 2
    [feed] = board.document().feeds
    assert (feed.rate, feed.position) == (0.0, 50)


def test_rows_from_before_the_process_are_no_rate(tmp_path: Path) -> None:
    clock = Clock()
    board = Board(clock=clock, monotonic=clock)
    for position in (0, 0, 1_000_000, 1_000_010):
        board.publish([status(tmp_path, position)])
        clock.now += 2
    assert board.document().feeds[0].rate <= 5


def test_log_that_is_not_open_yet_is_shown_as_it_is_on_disk(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, "s", fsync=False) as writer:
        writer.append(BATCH, "r")
    Journal(tmp_path).trim("s", 4, reader="report")
    board = Board()
    board.publish([status(tmp_path, 0, state=FeedState.REFUSED)])
    [feed] = board.document().feeds
    assert (feed.position, feed.rate, feed.readers["report"].rows) == (10, 0, 6)


def test_lag_from_before_the_process_is_that_of_the_rows(tmp_path: Path) -> None:
    clock = Clock()
    with JournalWriter.open(tmp_path, "s", fsync=False, segment_bytes=2_000, clock=clock) as writer:
        for _ in range(10):
            writer.append(BATCH, "r")
            clock.now += 100
    Journal(tmp_path).trim("s", 35, reader="report")
    board = Board(clock=clock, monotonic=clock)
    board.publish([status(tmp_path, 100)])
    assert board.document().feeds[0].readers == {"report": Lag(35, 65, 700.0)}


def test_lag_in_rows_that_are_sealed_is_that_of_the_rows_after_them(tmp_path: Path) -> None:
    # The store of sealed rows may be far away, and the status must not wait for it.
    clock = Clock()
    with JournalWriter.open(tmp_path, "s", fsync=False, segment_bytes=1, clock=clock) as writer:
        for _ in range(10):
            writer.append(BATCH, "r")
            clock.now += 100
    Journal(tmp_path).trim("s", 35, reader="report")
    seal(tmp_path, "s", SealOptions(store=f"memory://board-{next(numbers)}"), force=True)
    board = Board(clock=clock, monotonic=clock)
    board.publish([status(tmp_path, 100)])
    assert board.document().feeds[0].readers == {"report": Lag(35, 65, 100.0)}


def test_lag_of_a_row_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    clock = Clock()
    with JournalWriter.open(tmp_path, "s", fsync=False, clock=clock) as writer:
        writer.append(BATCH, "r")
    Journal(tmp_path).trim("s", 5, reader="report")
    board = Board(clock=clock, monotonic=clock)
    board.publish([status(tmp_path, 10)])
    path = segment(log_folder(tmp_path, "s"))
    flip(path, path.stat().st_size - 1)
    document = board.document()
    assert document.feeds[0].readers == {"report": Lag(5, 5, None)}
    assert document.readers[0].seconds is None
    # It is repaired, and the log is looked at as it is then.
    flip(path, path.stat().st_size - 1)
    clock.now += 2
    assert board.document().feeds[0].readers == {"report": Lag(5, 5, 2.0)}


def test_feeds_without_log_and_with_damage_are_shown(tmp_path: Path) -> None:
    board = Board()
    with JournalWriter.open(tmp_path, "s", fsync=False) as writer:
        writer.append(BATCH, "r")
    folder = log_folder(tmp_path, "s") / COMMITTED
    folder.mkdir()
    (folder / "reader").write_text("?")
    others = [status(tmp_path, 0, name="none", source="none"), FeedStatus.refused("bad", "why")]
    board.publish([*others, status(tmp_path, 10)])
    found = {feed.name: feed for feed in board.document().feeds}
    assert list(found) == ["a", "bad", "none"]
    assert "forget" in found["a"].problem
    assert found["none"].budget_free is None


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_clock_that_is_set_changes_no_health_and_no_rate(tmp_path: Path, step: float) -> None:
    clock, monotonic = Clock(), Clock()
    board = Board(clock=clock, monotonic=monotonic)
    for position in (100, 120, 140, 160):
        monotonic.now += 2
        board.publish([status(tmp_path, position)])
        clock.now += step
        assert board.healthy()
    assert board._histories[str(tmp_path), "s"].rate() == 10
    monotonic.now += STALE_SECONDS
    clock.now -= 3600
    assert not board.healthy()


def test_loop_that_stopped_publishing_is_unhealthy(tmp_path: Path) -> None:
    clock = Clock()
    board = Board(workers=2, clock=clock, monotonic=clock)
    assert not board.document().ready
    board.publish([status(tmp_path, 0)], 0)
    clock.now += STALE_SECONDS - 1
    board.publish([], 1)
    assert board.healthy()
    assert board.document().ready
    clock.now += 1
    assert not board.healthy()
    clock.now += 1
    assert not board.document().ready


def test_board_is_ready_when_each_feed_was_tried(tmp_path: Path) -> None:
    clock = Clock()
    board = Board(clock=clock, monotonic=clock)
    for state, reason, ready in (
        (FeedState.CONNECTING, "", False),
        (FeedState.CONNECTING, "no server answers", True),
        (FeedState.REFUSED, "no such route", True),
    ):
        board.publish([status(tmp_path, 0, state=state, reason=reason)])
        clock.now += 2
        assert board.document().ready is ready


def test_disk_that_hangs_holds_up_neither_publisher_nor_health(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hangs, reached = threading.Event(), threading.Event()

    def hang(*arguments: object) -> None:
        reached.set()
        hangs.wait(60)

    monkeypatch.setattr(boards, "survey", hang)
    monkeypatch.setattr(boards, "DISK_SECONDS", 0.01)
    board = Board()
    board.publish([status(tmp_path, 0)])
    thread = threading.Thread(target=board.document)
    thread.start()
    try:
        assert reached.wait(60)
        board.publish([status(tmp_path, 7)])
        assert board.healthy()
        assert board.document().feeds[0].position == 7
    finally:
        hangs.set()
        thread.join()


def test_logs_of_feeds_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    board = Board(clock=clock, monotonic=clock)
    for number in range(100):
        board.publish([status(tmp_path, 1, source=f"s{number}")])
        clock.now += 2
        board.document()
    assert len(board._histories) == 1


def test_problem_of_the_file_is_shown_until_it_is_mended() -> None:
    clock = Clock()
    board = Board(clock=clock, monotonic=clock)
    for problem in ("all feeds go on as before", ""):
        board.warn(problem)
        clock.now += 2
        assert board.document().problem == problem
