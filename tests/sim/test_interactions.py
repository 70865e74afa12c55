"""The interactions, between two sessions, with the bytes cut in every way."""

from __future__ import annotations

import pytest

from tests.sim.pair import CUTS, Pair

CUT = pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)


def names(build):
    return build.module("weirpool.kinds").Kind, build.module("weirpool.payload").Payload


@CUT
def test_call(build, cut) -> None:
    kind, payload = names(build)
    pair = Pair(build, cut=cut)
    stream = pair.client.open(kind.CALL, "route", payload(b"question", b""))
    pair.drive()
    (request,) = pair.events("server", "Requested")
    assert (request.kind, request.route, request.payload.data, request.done) == (kind.CALL, "route", b"question", True)
    pair.server.send(stream, payload(b"answer", b"extra"))
    pair.drive()
    (item,) = pair.events("client", "ItemReceived")
    assert (item.payload, item.done) == (payload(b"answer", b"extra"), True)
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


@CUT
def test_fire(build, cut) -> None:
    kind, payload = names(build)
    pair = Pair(build, cut=cut)
    pair.client.open(kind.FIRE, "log", payload(b"x"))
    pair.drive()
    assert [event.route for event in pair.events("server", "Requested")] == ["log"]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


@CUT
def test_stream_under_credit(build, cut) -> None:
    kind, payload = names(build)
    run = build.module("weirpool.payload").PayloadRun
    pair = Pair(build, cut=cut)
    stream = pair.client.open(kind.STREAM, "s", payload(b""), 3)
    pair.drive()
    items = run.of([payload(b"%d" % number) for number in range(10)])
    assert pair.server.send_run(stream, items) == 3
    assert pair.server.credit(stream) == 0
    with pytest.raises(build.module("weirpool.errors").CreditExceeded):
        pair.server.send(stream, payload(b"too many"))
    pair.client.request(stream, 100)
    pair.drive()
    assert [event.count for event in pair.events("server", "CreditGranted")] == [100]
    assert pair.server.send_run(stream, items, 3) == 7
    pair.server.complete(stream)
    pair.drive()
    assert pair.items("client", stream) == [b"%d" % number for number in range(10)]
    assert len(pair.events("client", "Completed")) == 1
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


@CUT
def test_channel_closes_half_by_half(build, cut) -> None:
    kind, payload = names(build)
    pair = Pair(build, cut=cut)
    stream = pair.client.open(kind.CHANNEL, "c", payload(b"first"), 10)
    pair.drive()
    assert pair.client.credit(stream) == 0
    # The payload that opens a channel is one of the items that the responder requests.
    pair.server.request(stream, 3)
    pair.drive()
    assert pair.client.credit(stream) == 2
    pair.client.send(stream, payload(b"second"))
    pair.client.send(stream, payload(b"third"), True)
    pair.drive()
    assert pair.items("server", stream) == [b"second", b"third"]
    assert pair.server.open_streams == 1
    pair.server.send(stream, payload(b"back"), True)
    pair.drive()
    assert pair.items("client", stream) == [b"back"]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


@CUT
def test_cancels_of_either_side(build, cut) -> None:
    kind, payload = names(build)
    pair = Pair(build, cut=cut)
    stream = pair.client.open(kind.STREAM, "s", payload(), 5)
    channel = pair.client.open(kind.CHANNEL, "c", payload(), 5)
    pair.drive()
    pair.client.cancel(stream)
    # The responder's CANCEL ends only the requester's half.
    pair.server.cancel(channel)
    pair.drive()
    assert [(event.stream_id, event.done) for event in pair.events("server", "Canceled")] == [(stream, True)]
    assert [(event.stream_id, event.done) for event in pair.events("client", "Canceled")] == [(channel, False)]
    pair.server.send(channel, payload(b"still"), True)
    pair.drive()
    assert pair.items("client", channel) == [b"still"]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


@CUT
def test_errors_carry_any_application_code(build, cut) -> None:
    kind, payload = names(build)
    errors = build.module("weirpool.errors")
    pair = Pair(build, cut=cut)
    wanted = [
        (errors.ApplicationError(0x301, "boom"), errors.ApplicationError, 0x301, "boom"),
        (errors.ApplicationError(0xFFFFFFFE, "last"), errors.ApplicationError, 0xFFFFFFFE, "last"),
        (errors.Rejected(message="no"), errors.Rejected, 0x202, "no"),
        (errors.Invalid(message="bad"), errors.Invalid, 0x204, "bad"),
        (KeyError("secret"), errors.ApplicationError, 0x201, "the handler failed; see its log"),
    ]
    for raised, _, _, _ in wanted:
        stream = pair.client.open(kind.CALL, "x", payload())
        pair.drive()
        pair.server.fail(stream, raised)
        pair.drive()
    found = [event.error for event in pair.events("client", "Failed")]
    assert [(type(error), error.code, error.message) for error in found] == [case[1:] for case in wanted]


@CUT
def test_requests_and_items_in_fragments(build, cut) -> None:
    kind, payload = names(build)
    pair = Pair(build, cut=cut, client={"fragment_bytes": 64}, server={"fragment_bytes": 64})
    question = payload(bytes(range(256)) * 8, b"m" * 300)
    stream = pair.client.open(kind.CALL, "route", question)
    pair.drive()
    (request,) = pair.events("server", "Requested")
    assert (request.route, request.payload.data) == ("route", question.data)
    assert request.payload.metadata.endswith(question.metadata)
    pair.server.send(stream, question)
    pair.drive()
    assert pair.events("client", "ItemReceived")[0].payload == question


def test_the_server_may_ask_too(build) -> None:
    kind, payload = names(build)
    pair = Pair(build)
    stream = pair.server.open(kind.CALL, "back", payload(b"?"))
    assert stream == 2
    pair.drive()
    pair.client.send(stream, payload(b"!"))
    pair.drive()
    assert pair.items("server", stream) == [b"!"]


def test_keepalive_keeps_a_silent_session_alive_and_death_is_noticed(build) -> None:
    pair = Pair(build, client={"keepalive_interval": 1.0, "keepalive_lifetime": 3.0})
    pair.advance(30.0)
    assert pair.client.link_wanted and pair.server.link_wanted
    # The server's responses are lost from now on.
    pair.client.take_output()
    while pair.client.link_wanted:
        pair.now = pair.client.next_timer()
        pair.client.handle_timer(pair.now)
        pair.client.take_output()
    (closed,) = [event for event in pair.client.take_events() if type(event).__name__ == "Closed"]
    assert type(closed.error).__name__ == "KeepaliveTimeout"


def test_closing_lets_streams_end_and_takes_no_new_ones(build) -> None:
    kind, payload = names(build)
    errors = build.module("weirpool.errors")
    pair = Pair(build)
    stream = pair.client.open(kind.CALL, "x", payload())
    pair.drive()
    pair.server.close(pair.now)
    late = pair.client.open(kind.CALL, "late", payload())
    pair.drive()
    assert [(event.stream_id, type(event.error)) for event in pair.events("client", "Failed")] == [
        (late, errors.Rejected)
    ]
    pair.server.send(stream, payload(b"answer"))
    pair.drive()
    assert pair.items("client", stream) == [b"answer"]
    # The client closes the link. The server keeps it until then; see test_closing.py.
    assert pair.server.link_wanted and not pair.client.link_wanted
    pair.server.link_down(pair.now, None)
    assert not pair.server.link_wanted
    with pytest.raises(errors.SessionClosed):
        pair.client.open(kind.CALL, "x", payload())


def test_a_lost_link_fails_all_streams_once(build) -> None:
    kind, payload = names(build)
    pair = Pair(build)
    for _ in range(3):
        pair.client.open(kind.CALL, "x", payload())
    pair.drive()
    pair.client.link_down(pair.now, None)
    events = pair.client.take_events()
    assert [type(event).__name__ for event in events] == ["Failed", "Failed", "Failed", "Closed"]
    pair.client.link_down(pair.now, None)
    assert pair.client.take_events() == []


def test_metadata_push(build) -> None:
    pair = Pair(build)
    pair.client.push(b"news")
    pair.drive()
    assert [event.metadata for event in pair.events("server", "MetadataPushed")] == [b"news"]
