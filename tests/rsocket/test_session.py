from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.sim.pair import Pair


class Side:
    """A pair of sessions, and the modules of their build."""

    def __init__(self, build: Build) -> None:
        self.pair = Pair(build)
        self.client: Any = self.pair.client
        self.server: Any = self.pair.server
        self.errors: Any = build.module("weirpool.errors")
        self.kind: Any = build.module("weirpool.kinds").Kind
        self.payload: Any = build.module("weirpool.payload").Payload
        self.run: Any = build.module("weirpool.payload").PayloadRun

    def open(self, kind: str, credit: int = 1, done: bool = True) -> int:
        stream_id: int = self.client.open(self.kind[kind], "route", self.payload(b"x"), credit, done)
        self.pair.drive()
        return stream_id


@pytest.fixture
def side(build: Build) -> Side:
    return Side(build)


def test_stream_ids_have_the_parity_of_their_side(side: Side) -> None:
    assert [side.open("CALL") for _ in range(3)] == [1, 3, 5]
    assert side.server.open(side.kind.FIRE, "", side.payload()) == 2
    assert side.client.open_streams == 3


def test_fire_ends_at_once(side: Side) -> None:
    side.open("FIRE", 0)
    assert side.client.open_streams == side.server.open_streams == 0


@pytest.mark.parametrize("kind", ["STREAM", "CHANNEL"])
def test_stream_requires_initial_credit(side: Side, kind: str) -> None:
    with pytest.raises(side.errors.LocalError, match="credit of at least 1"):
        side.open(kind, 0)
    assert side.client.open_streams == 0


def test_items_beyond_credit_are_refused(side: Side) -> None:
    stream = side.open("STREAM", 2)
    assert [side.server.send(stream, side.payload(b"1")), side.server.send(stream, side.payload(b"2"))] == [1, 0]
    with pytest.raises(side.errors.CreditExceeded, match=f"stream {stream}"):
        side.server.send(stream, side.payload(b"3"))
    assert side.server.send_run(stream, side.run.of([side.payload(b"3")])) == 0
    side.client.request(stream, 3)
    side.pair.drive()
    assert side.server.credit(stream) == 3


def test_items_on_an_ended_half_are_refused(side: Side) -> None:
    stream = side.open("STREAM", 2)
    for closed in (stream, 99):
        with pytest.raises(side.errors.StreamClosed, match=f"stream {closed}"):
            side.client.send(closed, side.payload(b"x"))
    side.server.complete(stream)
    with pytest.raises(side.errors.StreamClosed):
        side.server.send(stream, side.payload(b"x"))
    assert side.server.credit(stream) == 0


def test_ended_streams_ignore_further_verbs(side: Side) -> None:
    stream = side.open("STREAM", 2)
    side.server.complete(stream)
    side.pair.drive()
    before = len(side.pair.client_sent), len(side.pair.server_sent)
    for session in (side.client, side.server):
        session.complete(stream)
        session.cancel(stream)
        session.request(stream, 1)
        session.fail(stream, ValueError())
    side.pair.drive()
    assert (len(side.pair.client_sent), len(side.pair.server_sent)) == before


@pytest.mark.parametrize("count", [0, -1])
def test_request_requires_at_least_one_item(side: Side, count: int) -> None:
    stream = side.open("STREAM", 2)
    with pytest.raises(side.errors.LocalError, match="at least 1 item"):
        side.client.request(stream, count)


def test_requester_that_fails_after_its_request_can_only_cancel(side: Side) -> None:
    stream = side.open("STREAM", 2)
    side.client.fail(stream, ValueError())
    side.pair.drive()
    assert [event.done for event in side.pair.events("server", "Canceled")] == [True]


def test_closed_session_opens_no_streams(side: Side) -> None:
    side.client.close(side.pair.now)
    side.pair.drive()
    with pytest.raises(side.errors.SessionClosed):
        side.open("CALL")
    assert not side.client.link_wanted


def test_texts_of_internal_errors_are_not_sent(side: Side) -> None:
    stream = side.open("CALL")
    side.server.fail(stream, ValueError("password"))
    side.pair.drive()
    assert b"password" not in side.pair.server_sent
    (failed,) = side.pair.events("client", "Failed")
    assert failed.error.code == 0x201
