"""Requests above a limit or without a lease, at full speed: each is answered, accepted ones go on (THREATS 107)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.river.peers import Raw as RiverRaw
from tests.sim.reactive import Raw as ReactiveRaw
from tests.sim.target import DIALECTS, V00, Target
from weirpool import Settings
from weirpool.wire.reactivestreams.codec import Message, Type

MANY = 120_000
"""In a few seconds of virtual time, and before there were limits for them: more than 100,000 ended the connection."""
STEP = 1_000
REJECTED = 0x202


@pytest.mark.parametrize("why", ["max_streams", "lease"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_refused_request_is_answered(build: Build, dialect: str, why: str) -> None:
    limits: dict[str, Any] = {"max_streams": 1}
    if why == "lease":
        limits = {"lease": build.module("weirpool.leases").FixedLease(1, 3_600.0)}
    target = Target(build, dialect, set_up=False, **limits)
    target.session.receive(target.setup(flags=target.frames.LEASE if why == "lease" else 0), target.now)
    target.told()
    target.say(target.request("REQUEST_RESPONSE", 1))
    code = 0 if dialect == V00 else REJECTED
    for first in range(3, 2 * MANY, 2 * STEP):
        streams = range(first, first + 2 * STEP, 2)
        errors, events = target.say(*(target.request("REQUEST_RESPONSE", stream) for stream in streams))
        assert [stream for stream, _ in errors] == list(streams) and events == []
        assert dialect == V00 or {each for _, each in errors} == {code}
        target.now += 0.05
    assert target.session.link_wanted and target.session.refused >= MANY
    target.session.send(target.number(1), target.payload(b"done"), True)
    assert b"done" in b"".join(target.session.take_output())


def test_fires_are_not_refused_while_all_streams_are_open(build: Build) -> None:
    # Nobody would learn of it.
    target = Target(build, max_streams=1)
    target.say(target.request("REQUEST_STREAM", 1))
    assert target.say(target.request("REQUEST_FNF", 3) * 5) == ([], ["Requested"] * 5)


def test_each_refused_subscription_is_answered() -> None:
    raw = ReactiveRaw(is_client=False, max_streams=1)
    raw.say(Message(Type.SUBSCRIBE, 1, 1, b"x"))
    raw.events()
    for _ in range(MANY // STEP):
        raw.heard()
        raw.say(*[Message(Type.SUBSCRIBE, 2, 1, b"x")] * STEP)
        assert [each.type for each in raw.heard()] == [Type.SUBSCRIBED, Type.ON_ERROR] * STEP
    assert raw.session.link_wanted and raw.events() == []
    assert raw.session.refused == MANY


def test_each_refused_river_stream_is_answered() -> None:
    raw = RiverRaw(settings=Settings(max_streams=1))
    raw.shake()
    raw.say("kept", 2, {}, serviceName="demo", procedureName="count")
    for number in range(2_000):
        fields = {"serviceName": "demo", "procedureName": "count", "ack": raw.session.sequence.seq}
        answers = raw.say(f"s{number}", 2, {}, **fields)
        assert [each.stream_id for each in answers if each.stream_id != "heartbeat"] == [f"s{number}"]
    assert raw.session.link_wanted and raw.session.refused == 2_000
