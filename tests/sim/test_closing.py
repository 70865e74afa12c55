"""A server that closes while its client sends requests, in the RSocket family."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.sim.pair import Pair

DIALECTS = pytest.mark.parametrize("dialect", ["rsocket-1.0", "reactivesocket-0.2", "reactivesocket-0.0"])
KINDS = pytest.mark.parametrize("kind", ["CALL", "STREAM"])
CLOSING = "the connection is closing"


def ask(build: Build, session: Any, kind: str = "CALL") -> int:
    module = build.module
    stream: int = session.open(module("weirpool.kinds").Kind[kind], "r", module("weirpool.payload").Payload(), 1)
    return stream


def refusal(pair: Pair, stream: int) -> Any:
    """Return the error with which the client's stream failed."""
    [failed] = [event for event in pair.events("client", "Failed") if event.stream_id == stream]
    return failed.error


def is_refused(pair: Pair, stream: int) -> bool:
    error = refusal(pair, stream)
    return type(error).__name__ == "Rejected" and error.message == CLOSING and error.closing


@DIALECTS
@KINDS
def test_request_that_crosses_the_close_is_rejected(build: Build, dialect: str, kind: str) -> None:
    pair = Pair(build, dialect=dialect)
    pair.server.close(pair.now)
    # The client has not read CONNECTION_CLOSE yet.
    stream = ask(build, pair.client, kind)
    pair.drive()
    assert is_refused(pair, stream)
    assert pair.events("server", "Requested") == []
    assert [event.error for event in pair.events("client", "Closed")] == [None]
    assert not pair.client.link_wanted
    pair.server.link_down(pair.now, None)
    pair.drive()
    assert [event.error for event in pair.events("server", "Closed")] == [None]


@DIALECTS
def test_server_keeps_the_link_until_the_client_closes(build: Build, dialect: str) -> None:
    pair = Pair(build, dialect=dialect)
    pair.server.close(pair.now)
    sent = b"".join(pair.server.take_output())
    assert pair.server.link_wanted
    assert pair.server.take_events() == []
    pair.client.receive(sent, pair.now)
    assert not pair.client.link_wanted
    pair.server.link_down(pair.now, None)
    assert [type(event).__name__ for event in pair.server.take_events()] == ["Closed"]
    assert not pair.server.link_wanted


@DIALECTS
@pytest.mark.parametrize("lost", ["link", "peer"])
def test_farewell_that_is_not_answered_ends_without_an_error(build: Build, dialect: str, lost: str) -> None:
    pair = Pair(build, dialect=dialect)
    pair.server.close(pair.now)
    pair.server.take_output()
    error = build.module("weirpool.errors").LinkLost("reset")
    if lost == "link":
        pair.server.link_down(pair.now, error)
    else:
        pair.server.close(pair.now, error)
        assert pair.server.take_output() == []
    assert [event.error for event in pair.server.take_events()] == [None]


@DIALECTS
def test_refused_client_drains(build: Build, dialect: str) -> None:
    # The other call keeps the server from sending CONNECTION_CLOSE.
    pair = Pair(build, dialect=dialect)
    first = ask(build, pair.client)
    pair.drive()
    pair.server.close(pair.now)
    second = ask(build, pair.client)
    pair.drive()
    assert is_refused(pair, second)
    assert len(pair.events("client", "Draining")) == 1
    with pytest.raises(build.module("weirpool.errors").SessionClosed):
        ask(build, pair.client)
    [requested] = pair.events("server", "Requested")
    pair.server.send(requested.stream_id, build.module("weirpool.payload").Payload(b"done"), True)
    pair.drive()
    assert pair.items("client", first) == [b"done"]
    text = CLOSING if dialect == "reactivesocket-0.0" else "all streams are done"
    assert [str(event.error) for event in pair.events("client", "Closed")] == [
        f"the peer closed the connection: CONNECTION_CLOSE: {text}"
    ]


@DIALECTS
def test_other_rejections_do_not_drain_a_client(build: Build, dialect: str) -> None:
    pair = Pair(build, dialect=dialect, server={"max_streams": 1})
    ask(build, pair.client)
    refused = ask(build, pair.client)
    pair.drive()
    assert not getattr(refusal(pair, refused), "closing", False)
    assert pair.events("client", "Draining") == []


def test_first_draft_client_closes_without_a_frame(build: Build) -> None:
    # Only servers send SETUP_ERROR.
    pair = Pair(build, dialect="reactivesocket-0.0")
    sent = pair.client_sent
    pair.client.close(pair.now)
    pair.drive()
    assert pair.client_sent == sent
    assert [event.error for event in pair.events("client", "Closed")] == [None]


def test_first_draft_handler_with_another_text_is_not_a_rejection(build: Build) -> None:
    pair = Pair(build, dialect="reactivesocket-0.0")
    stream = ask(build, pair.client)
    pair.drive()
    [requested] = pair.events("server", "Requested")
    error = build.module("weirpool.errors").ApplicationError(message=f"{CLOSING} to the database")
    pair.server.fail(requested.stream_id, error)
    pair.drive()
    assert type(refusal(pair, stream)).__name__ == "ApplicationError"
    assert pair.events("client", "Draining") == []


# reactive-streams-io.


@KINDS
def test_rs0_subscription_that_crosses_goodbye_is_rejected(build: Build, kind: str) -> None:
    pair = Pair(build, dialect="reactive-streams-0")
    pair.server.close(pair.now)
    pair.server.handle_timer(pair.now)
    pair.advance(0.0)
    stream = ask(build, pair.client, kind)
    sent = b"".join(pair.server.take_output())
    assert sent
    pair.client.receive(sent, pair.now)
    pair.drive()
    assert is_refused(pair, stream)
    assert pair.events("server", "Requested") == []


def test_rs0_subscription_that_was_opened_is_not_rejected(build: Build) -> None:
    pair = Pair(build, dialect="reactive-streams-0")
    stream = ask(build, pair.client)
    pair.drive()
    # A server that says that all streams are done, although this one is open.
    codec = build.module("weirpool.wire.reactivestreams.codec")
    pair.client.receive(codec.encode(codec.Message(codec.Type.GOODBYE, 0, 0, b"all streams are done")), pair.now)
    pair.drive()
    assert type(refusal(pair, stream)).__name__ == "PeerClosed"


@pytest.mark.parametrize("reason", [b"a violation", b"all streams are done, but for some"])
def test_rs0_other_goodbyes_reject_no_subscription(build: Build, reason: bytes) -> None:
    pair = Pair(build, dialect="reactive-streams-0")
    stream = ask(build, pair.client)
    codec = build.module("weirpool.wire.reactivestreams.codec")
    pair.client.receive(codec.encode(codec.Message(codec.Type.GOODBYE, 0, 0, reason)), pair.now)
    pair.drive()
    assert type(refusal(pair, stream)).__name__ == "PeerClosed"


def test_rs0_refused_client_drains(build: Build) -> None:
    pair = Pair(build, dialect="reactive-streams-0")
    first = ask(build, pair.client)
    pair.drive()
    pair.server.close(pair.now)
    second = ask(build, pair.client)
    pair.drive()
    assert is_refused(pair, second)
    assert len(pair.events("client", "Draining")) == 1
    with pytest.raises(build.module("weirpool.errors").SessionClosed):
        ask(build, pair.client)
    [requested] = pair.events("server", "Requested")
    pair.server.send(requested.stream_id, build.module("weirpool.payload").Payload(b"done"), True)
    pair.drive()
    pair.advance(0.0)
    assert pair.items("client", first) == [b"done"]
    assert len(pair.events("client", "Closed")) == len(pair.events("server", "Closed")) == 1


def test_rs0_client_without_a_link_closes_at_once(build: Build) -> None:
    payload = build.module("weirpool.payload").Payload()
    settings = build.module("weirpool.settings").Settings()
    client = build.module("weirpool.reactivestreams.session").ReactiveStreamsSession.client(settings, payload)
    client.close(0.0)
    assert [type(event).__name__ for event in client.take_events()] == ["Closed"]
    assert not client.link_wanted
