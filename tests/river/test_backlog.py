from __future__ import annotations

from typing import Any

import pytest

from tests.accounts import World
from tests.builds import Build

SIZE = 10_000
PER_PORTION = 7
"""The number of requests in a portion of 65,536 bytes."""


class Held:
    """A backlog of a connection that may hold 50 requests, and whose handlers hold five times their requests."""

    def __init__(self, build: Build) -> None:
        self.events = build.module("weirpool.events")
        self.payload = build.module("weirpool.payload").Payload
        self.kind = build.module("weirpool.kinds").Kind.CALL
        self.world = World(build)
        self.account = self.world.connection(own=50 * SIZE, of_identity=10**9, of_process=10**9, incomplete=10**9)
        self.handlers = self.world.stream(self.account)
        self.backlog = build.module("weirpool.river.backlog").Backlog(self.account)

    def request(self, stream: int) -> Any:
        return self.events.Requested(stream, self.kind, "demo.add", self.payload(bytes(SIZE)), 1, True)

    def requests(self, count: int) -> list[Any]:
        return [self.request(stream) for stream in range(1, count + 1)]

    def begin(self) -> int:
        """Take the next events, and return their number."""
        taken = self.backlog.sift([], False, 0)
        self.handlers.book(5 * SIZE * len(taken))
        return len(taken)


@pytest.fixture
def held(build: Build) -> Held:
    return Held(build)


def test_first_request_and_later_events_wait(held: Held) -> None:
    established = held.events.Established(held.payload(b""), "", "")
    first, second = held.requests(2)
    assert held.backlog.sift([established, first], True, 0) == [established]
    assert held.backlog.sift([established, second], True, 0) == []
    assert held.account.held == held.backlog.size > 2 * SIZE
    assert held.backlog.sift([], False, 0) == [first, established, second]
    assert (held.account.held, held.backlog.size) == (0, 0)


def test_end_of_a_link_does_not_wait(held: Held) -> None:
    lost = held.events.Unlinked(None)
    assert held.backlog.sift([held.request(1), lost], True, 0) == [lost]


def test_new_requests_wait_while_handlers_hold_too_much(held: Held) -> None:
    # THREATS 85
    held.backlog.sift(held.requests(40), True, 0)
    assert [held.begin() for _ in range(3)] == [PER_PORTION, 0, 0]
    assert held.account.paused
    held.world.room.clear()
    held.handlers.release(5 * SIZE * PER_PORTION)
    assert held.account in held.world.room
    assert [held.begin() for _ in range(2)] == [PER_PORTION, 0]


def test_backlog_larger_than_the_limit_is_passed_on(held: Held) -> None:
    # Nothing else could make room.
    held.account.book(SIZE)
    held.backlog.sift(held.requests(100), True, SIZE)
    assert held.account.settle() != held.world.module.FINE
    begun = 0
    while taken := held.backlog.sift([], False, SIZE):
        begun += len(taken)
    assert begun == 100 and held.account.held == SIZE


def test_streams_that_nobody_has_seen_end_without_a_trace(held: Held) -> None:
    held.backlog.sift([*held.requests(10), held.events.Canceled(1, True)], True, 0)
    assert held.begin() == PER_PORTION
    events = [held.events.Canceled(10, True), held.events.Canceled(2, True)]
    held.backlog.end(events)
    assert [event.stream_id for event in events] == [1, 2]
    assert held.backlog.size == 0 and held.account.held == held.handlers.held
