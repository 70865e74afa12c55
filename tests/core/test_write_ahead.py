"""The write-ahead log of a session; the consequences of a killed process are tested with the families."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weirpool.core.write_ahead import Logged, WriteAhead, digest, without_requests
from weirpool.events import Event, ItemReceived, Requested
from weirpool.kinds import Kind
from weirpool.payload import Payload


class Log:
    """A log in memory."""

    def __init__(self) -> None:
        self.size = 0
        self.done: list[str] = []

    def append(self, record: bytes) -> None:
        self.done.append(f"append {record.decode()}")

    def rewrite(self, record: bytes) -> None:
        self.done.append(f"rewrite {record.decode()}")

    def remove(self) -> None:
        self.done.append("remove")

    def close(self) -> None:
        self.done.append("close")


class Books:
    """An outbox with a log whose writes the test completes."""

    def __init__(self, high_bytes: int = 1_000) -> None:
        self.log = Log()
        self.now = Logged(0, 0, {})
        self.failed: list[Exception] = []
        self.told: list[bool] = []
        self.started: list[tuple[Callable[[], None], Callable[[Exception | None], None]]] = []
        self.outbox = WriteAhead(lambda: self.now, self.encode, self.failed.append, lambda: True, high_bytes)
        self.outbox.watch(self.told.append)
        self.outbox.begin(self.log, lambda work, done: self.started.append((work, done)))

    def encode(self, now: Logged, before: Logged | None) -> bytes:
        return f"{now.sent} after {before.sent if before else 'nothing'}".encode()

    def sync(self, error: Exception | None = None) -> None:
        work, done = self.started.pop()
        work()
        done(error)


def test_output_is_released_when_durable() -> None:
    books = Books()
    books.outbox.write(b"a")
    assert books.outbox.take() == [] and not books.outbox.settled and not books.outbox.begun
    books.sync()
    assert books.outbox.take() == [b"a"] and books.outbox.settled and books.outbox.begun
    books.now = Logged(1, 0, {})
    books.outbox.write(b"b")
    books.outbox.take()
    books.now = Logged(2, 0, {})
    books.outbox.write(b"c")
    assert books.outbox.take() == [] and len(books.started) == 1
    books.sync()
    assert books.log.done == ["rewrite 0 after nothing", "append 1 after 0"]
    assert books.outbox.take() == [b"b"]
    assert books.told == [False, False]


def test_requests_wait_and_later_events_keep_the_order() -> None:
    books = Books()
    item, request = ItemReceived(1, Payload(b"i"), False), Requested(2, Kind.CALL, "r", Payload(), 1, True)
    events: list[Event] = [item, request, item]
    assert books.outbox.sift(events) == [item]
    assert books.outbox.sift([item]) == [] and books.outbox.withheld == {1, 2}
    books.sync()
    assert books.outbox.sift([]) == [request, item]


def test_watcher_is_called_when_the_storage_is_full() -> None:
    books = Books(high_bytes=2)
    books.outbox.write(b"a")
    books.outbox.take()
    books.outbox.write(b"abc")
    books.outbox.take()
    assert books.told == [True]


@pytest.mark.parametrize("how", ["detach", "end"])
def test_log_is_released_when_no_write_is_in_progress(how: str) -> None:
    books = Books()
    books.outbox.write(b"a")
    books.outbox.take()
    if how == "detach":
        books.outbox.detach()
    else:
        events, remove = books.outbox.end()
        remove()
        assert events == [] and books.outbox.take() == [b"a"]
    assert books.log.done == []
    books.sync()
    assert books.log.done[1:] == ["close" if how == "detach" else "remove"]
    assert books.outbox.log is None and books.outbox.take() == []


def test_events_that_are_not_durable_keep_their_order_at_the_end() -> None:
    # The item of a stream would otherwise come before the request that opens it.
    books = Books()
    request, item = Requested(2, Kind.CHANNEL, "r", Payload(), 1, False), ItemReceived(2, Payload(b"i"), True)
    assert books.outbox.sift([request]) == [] and len(books.started) == 1
    assert books.outbox.sift([item]) == []
    events, _ = books.outbox.end()
    assert events == [request, item]
    books.outbox.ready(events)
    assert books.outbox.sift([]) == [request, item] and books.outbox.settled


def test_output_keeps_its_order_at_the_end() -> None:
    books = Books()
    books.outbox.write(b"a")
    books.outbox.take()
    books.sync()
    books.now = Logged(1, 0, {})
    books.outbox.write(b"b")
    # A request starts the next record.
    books.outbox.sift([Requested(2, Kind.CALL, "r", Payload(), 1, True)])
    books.outbox.write(b"c")
    books.outbox.end()
    assert books.outbox.take() == [b"a", b"b", b"c"]


def test_output_is_discarded_when_a_write_fails() -> None:
    books = Books()
    books.outbox.write(b"a")
    books.outbox.take()
    error = OSError("full")
    books.sync(error)
    assert books.failed == [error] and books.outbox.take() == []


def test_unchanged_state_is_not_written() -> None:
    books = Books()
    books.outbox.begin(books.log, lambda work, done: books.started.append((work, done)), books.now)
    books.outbox.write(b"a")
    books.outbox.take()
    # The last records may not have been synced.
    books.sync()
    books.outbox.write(b"b")
    assert books.outbox.take() == [b"a", b"b"] and books.log.done == ["append 0 after 0"]


def test_opened_and_ended_streams_are_found() -> None:
    before, now = Logged(0, 0, {"a": 1, "b": 3}), Logged(0, 0, {"b": 1, "c": 3})
    assert now.opened_since(before) == {"b": 1, "c": 3} and now.ended_since(before) == ["a"]
    assert now.opened_since(None) == now.streams and now.ended_since(None) == []


def test_requests_are_removed_with_their_streams() -> None:
    item, request = ItemReceived(1, Payload(b"i"), False), Requested(2, Kind.CALL, "r", Payload(), 1, True)
    assert without_requests([item, request, ItemReceived(2, Payload(), True)]) == [item]
    assert digest(b"a") != digest(b"b")
