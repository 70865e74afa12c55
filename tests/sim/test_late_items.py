"""Items that were under way when this side ended their stream, in whatever way: ignored, in whatever number.

THREATS 106: all granted items arrive after the end, on several streams. The session goes on, and answers a call.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tests.builds import Build
from tests.river.peers import Raw as RiverRaw
from tests.sim.reactive import Raw as ReactiveRaw
from tests.sim.target import DIALECTS, V00, V02, V1, Target
from weirpool import ApplicationError, LimitExceeded, Payload, Rejected, Settings
from weirpool.kinds import Kind
from weirpool.wire.reactivestreams.codec import Message, Type

GRANTED = 16_384
STREAMS = 3
NEXT, COMPLETE, FOLLOWS = 0x20, 0x40, 0x80
LIMITS = {"max_metadata_bytes": 100, "max_payload_bytes": 1_000}

Way = Callable[[Target, int], None]


def failure(target: Target) -> Exception:
    made: Exception = target.build.module("weirpool.errors").ApplicationError(0x301, "the database is gone")
    return made


def fails(target: Target, stream: int) -> None:
    """Let the handler, or the source of the requester, fail."""
    target.session.fail(target.number(stream), failure(target))


def rejects(target: Target, stream: int) -> None:
    """Find no handler."""
    target.session.fail(target.number(stream), target.build.module("weirpool.errors").Rejected(message="no handler"))


def cancels(target: Target, stream: int) -> None:
    target.session.cancel(target.number(stream))


def completes(target: Target, stream: int) -> None:
    """End the own half. Without half-close that ends the stream; otherwise a handler that has ended also cancels."""
    target.session.complete(target.number(stream))
    target.session.cancel(target.number(stream))


def refuses_an_item(target: Target, stream: int) -> None:
    """Receive an item with too much metadata."""
    frame = target.frame("PAYLOAD", stream, NEXT, metadata=bytes(101), data=b"x")
    target.session.receive(frame, target.now)


def drops_an_item(target: Target, stream: int) -> None:
    """Receive fragments of an item that becomes too large."""
    target.session.receive(target.item(stream, bytes(600), NEXT | FOLLOWS) * 2, target.now)


def is_overrun(target: Target, stream: int) -> None:
    """Receive more items than were requested, and then as many again."""
    target.session.receive(target.item(stream) * (GRANTED + 1), target.now)


def times_out(target: Target, stream: int) -> None:
    """Wait for too long for the last fragment of an item."""
    target.session.receive(target.item(stream, b"x", NEXT | FOLLOWS), target.now)
    target.now += 61.0
    target.session.handle_timer(target.now)


WAYS = (fails, rejects, cancels, completes, refuses_an_item, drops_an_item, is_overrun, times_out)


def goes_on(target: Target, side: str) -> None:
    """Check that the session is alive, and that a call is still answered."""
    errors, _ = target.told()
    assert all(stream for stream, _ in errors), errors
    assert target.session.link_wanted
    if side == "server":
        assert target.say(target.request("REQUEST_RESPONSE", 1_001)) == ([], ["Requested"])
    else:
        call = target.open("CALL")
        assert "ItemReceived" in target.say(target.item(call, flags=NEXT | COMPLETE))[1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dialect", (V1, V02))
def test_items_of_a_requester_after_its_responder_has_ended(build: Build, dialect: str, way: Way) -> None:
    target = Target(build, dialect, **LIMITS)
    for stream in range(1, 2 * STREAMS + 1, 2):
        target.say(target.request("REQUEST_CHANNEL", stream))
        # The request is the first of the requested items.
        target.session.request(stream, GRANTED + 1)
        target.session.take_output()
        way(target, stream)
        target.told()
        target.session.receive(target.item(stream) * GRANTED + target.item(stream, b"", COMPLETE), target.now)
        assert target.session.take_events() == []
    goes_on(target, "server")
    assert target.session.ignored >= STREAMS * GRANTED


@pytest.mark.parametrize(
    ("dialect", "kind", "way"),
    [
        *product((V1, V02), ("STREAM", "CHANNEL"), WAYS),
        # It has neither channels nor metadata headers of another length.
        *product((V00,), ("STREAM",), (way for way in WAYS if way not in {refuses_an_item, times_out})),
    ],
)
def test_items_of_a_responder_after_its_requester_has_ended(build: Build, dialect: str, kind: str, way: Way) -> None:
    target = Target(build, dialect, "client", **LIMITS)
    target.number = lambda stream: stream  # type: ignore[method-assign]  # They are the session's own.
    call = target.open("CALL")
    target.say(target.item(call, flags=NEXT | COMPLETE))
    for _ in range(STREAMS):
        stream = target.open(kind, GRANTED)
        way(target, stream)
        target.told()
        target.session.receive(target.item(stream) * GRANTED + target.item(stream, b"", COMPLETE), target.now)
        assert target.session.take_events() == []
    goes_on(target, "client")
    assert target.session.ignored >= STREAMS * GRANTED


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_requester_sends_after_a_draining_responder_has_ended(build: Build, dialect: str) -> None:
    target = Target(build, dialect)
    target.say(*(target.request("REQUEST_STREAM", stream) for stream in (1, 3)))
    target.session.close(target.now)
    target.session.complete(target.number(1))
    target.session.take_output()
    late = target.request_n(1, 5) * GRANTED + bytes(target.codec.cancel_frame(1))
    assert target.say(late) == ([], [])
    assert target.session.credit(target.number(3)) == 5


@pytest.mark.parametrize("why", ["max_streams", "max_open_rate", "lease", "draining"])
@pytest.mark.parametrize("type", ["REQUEST_RESPONSE", "REQUEST_CHANNEL"])
@pytest.mark.parametrize("dialect", (V1, V02))
def test_fragments_of_a_refused_request(build: Build, dialect: str, type: str, why: str) -> None:
    limits: dict[str, Any] = {why: 1} if why.startswith("max") else {}
    if why == "lease":
        limits["lease"] = build.module("weirpool.leases").FixedLease(1, 60.0)
    target = Target(build, dialect, set_up=False, **limits)
    target.session.receive(target.setup(flags=target.frames.LEASE if why == "lease" else 0), target.now)
    target.say(target.request("REQUEST_STREAM", 1), *[target.request("REQUEST_FNF", 3)] * (why == "max_open_rate"))
    if why == "draining":
        target.session.close(target.now)
    assert target.say(target.request(type, 5, flags=FOLLOWS))[0] == [(5, 0x202)]
    fragments = target.item(5, bytes(64), NEXT | FOLLOWS) * GRANTED
    assert target.say(fragments, target.item(5, b"last", NEXT)) == ([], [])
    assert target.session.link_wanted and target.held == 0


def test_fragments_of_a_refused_channel_open_no_stream(build: Build) -> None:
    # ReactiveSocket 0.2, Request Channel: its fragments may be REQUEST_CHANNEL frames.
    target = Target(build, V02, max_streams=1)
    target.say(target.request("REQUEST_STREAM", 1))
    follows = target.request("REQUEST_CHANNEL", 5, flags=FOLLOWS)
    assert target.say(follows)[0] == [(5, 0x202)]
    # A slot becomes free before the rest arrives.
    target.say(bytes(target.codec.cancel_frame(1)))
    assert target.say(follows * 100, target.request("REQUEST_CHANNEL", 5)) == ([], [])
    # That was the last fragment.
    assert target.say(target.request("REQUEST_CHANNEL", 5)) == ([], ["Requested"])


@pytest.mark.parametrize("how", ["too large", "interrupted"])
def test_fragments_of_a_dropped_channel_open_no_stream(build: Build, how: str) -> None:
    target = Target(build, V02, **LIMITS)
    follows = target.request("REQUEST_CHANNEL", 5, data=bytes(600), flags=FOLLOWS)
    interruption = target.request_n(5, 1) if how == "interrupted" else follows
    assert target.say(follows, interruption)[0] == [(5, 0x202)]
    assert target.say(follows, target.request("REQUEST_CHANNEL", 5)) == ([], [])
    assert target.say(target.request("REQUEST_CHANNEL", 5)) == ([], ["Requested"])


def test_last_fragment_that_is_too_large_ends_the_refusal(build: Build) -> None:
    target = Target(build, V02, **LIMITS)
    follows = target.request("REQUEST_CHANNEL", 5, data=bytes(600), flags=FOLLOWS)
    assert target.say(follows, target.request("REQUEST_CHANNEL", 5, data=bytes(600)))[0] == [(5, 0x202)]
    assert target.say(target.request("REQUEST_CHANNEL", 5)) == ([], ["Requested"])


def test_refused_requests_without_an_end_are_forgotten(build: Build) -> None:
    target = Target(build, V02, max_streams=10)
    target.say(*(target.request("REQUEST_STREAM", stream) for stream in range(1, 21, 2)))
    for stream in range(101, 1_101, 2):
        target.say(target.request("REQUEST_CHANNEL", stream, flags=FOLLOWS))
    assert target.session.link_wanted
    if build.name == "plain":
        assert len(target.session._strays.refused) == 10


# reactive-streams-io.


ITEM = Message(Type.ON_NEXT, 1, 0, b"x")


@pytest.mark.parametrize("how", ["cancels", "fails", "is overrun", "has its answer"])
def test_items_of_a_publisher_after_its_subscriber_has_ended(how: str) -> None:
    raw = ReactiveRaw()
    for _ in range(STREAMS):
        stream = raw.session.open(Kind.CALL if how == "has its answer" else Kind.STREAM, "x", Payload(), GRANTED)
        # The number of the stream before is free again.
        raw.say(Message(Type.SUBSCRIBED, 1))
        if how == "cancels":
            raw.session.cancel(stream)
        elif how == "fails":
            raw.session.fail(stream, ApplicationError(0x301, "the consumer fails"))
        else:
            raw.say(*[ITEM] * (1 if how == "has its answer" else GRANTED + 1))
        raw.events()
        raw.heard()
        raw.say(*[ITEM] * GRANTED, Message(Type.ON_NEXT_PART, 1, 1, b"x"))
        assert raw.events() == [] and raw.heard() == []
    assert raw.session.link_wanted


@pytest.mark.parametrize("how", ["completes", "fails", "refuses"])
def test_what_a_subscriber_sends_after_its_publisher_has_ended(how: str) -> None:
    raw = ReactiveRaw(is_client=False, max_streams=1)
    raw.say(Message(Type.SUBSCRIBE, 1, 1, b"x"))
    (event,) = raw.events()
    number = 2 if how == "refuses" else 1
    if how == "completes":
        raw.session.complete(event.stream_id)
    elif how == "fails":
        raw.session.fail(event.stream_id, ApplicationError(0x301, "no"))
    else:
        raw.say(Message(Type.SUBSCRIBE, 2, 1, b"x"))
    raw.heard()
    raw.say(*[Message(Type.REQUEST, number, 1)] * GRANTED, Message(Type.CANCEL, number))
    assert raw.events() == [] and raw.heard() == []
    assert raw.session.link_wanted


# River.


def river_fails(raw: RiverRaw, name: str, stream: int) -> None:
    raw.session.fail(stream, ApplicationError("GONE", "no"))


def river_rejects(raw: RiverRaw, name: str, stream: int) -> None:
    raw.session.fail(stream, Rejected(message="no"))


def river_stops_reading(raw: RiverRaw, name: str, stream: int) -> None:
    raw.session.cancel(stream)


def river_completes(raw: RiverRaw, name: str, stream: int) -> None:
    """Answer before the upload ends; its handler then reads no more."""
    raw.session.send(stream, Payload(b"{}"), True)
    raw.session.cancel(stream)


def river_sheds(raw: RiverRaw, name: str, stream: int) -> None:
    """Drop items that were not consumed."""
    raw.say(name, 0, {"n": 1})
    assert raw.session.shed(raw.now, LimitExceeded("too much"))


def river_cannot_read(raw: RiverRaw, name: str, stream: int) -> None:
    """Receive a message that opens a stream which is open."""
    raw.say(name, 2, {}, serviceName="demo", procedureName="sum")


RIVER_WAYS = (river_fails, river_rejects, river_stops_reading, river_completes, river_sheds, river_cannot_read)


@pytest.mark.parametrize("way", RIVER_WAYS)
def test_items_of_a_river_client_after_its_server_has_ended(way: Callable[[RiverRaw, str, int], None]) -> None:
    raw = RiverRaw()
    raw.shake()
    for number in range(STREAMS):
        name = f"late{number}"
        raw.say(name, 2, {}, serviceName="demo", procedureName="sum")
        way(raw, name, raw.events[-1].stream_id)
        raw.said()
        raw.events.clear()
        for _ in range(300):
            raw.say(name, 0, {"n": 1})
        assert raw.events == []
    raw.say("call", 10, {}, serviceName="demo", procedureName="add")
    assert raw.session.link_wanted and len(raw.events) == 1


def test_items_of_refused_river_streams() -> None:
    raw = RiverRaw(settings=Settings(max_streams=1))
    raw.shake()
    raw.say("kept", 2, {}, serviceName="demo", procedureName="sum")
    # The ids of refused streams are remembered, but not all of them: others are refused again.
    for number in range(5):
        raw.say(f"late{number}", 2, {}, serviceName="demo", procedureName="sum")
    for _ in range(100):
        for number in range(5):
            raw.say(f"late{number}", 0, {"n": 1})
    raw.say("kept", 0, {"n": 1})
    raw.session.request(raw.events[-1].stream_id, 1)
    raw.said()
    assert raw.session.link_wanted
    assert [type(event).__name__ for event in raw.events] == ["Established", "Requested", "ItemReceived"]
