from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.sim.pair import CUTS
from tests.sim.reactive import Raw, make, opened
from weirpool import (
    Payload,
    PayloadRun,
)
from weirpool.reactivestreams.streams import UNBOUNDED
from weirpool.wire.reactivestreams.codec import Message, Type

# Demand.


def test_demand_of_zero_is_legal_only_in_subscribe() -> None:
    pair = make()
    _stream, there = opened(pair, 0)
    assert (pair.server.credit(there), pair.server.send_run(there, PayloadRun.of([Payload()]))) == (0, 0)
    raw = Raw(False)
    raw.say(Message(Type.SUBSCRIBE, 4, 1, b"x"), Message(Type.REQUEST, 4, 0))
    _subscribed, failed = raw.heard()
    # Reactive Streams 3.9, THREATS 38.
    assert (failed.type, failed.subscriber) == (Type.ON_ERROR, 4) and b"3.9" in failed.data
    assert [type(event).__name__ for event in raw.events()] == ["Requested", "Failed"]
    assert raw.session.open_streams == 0


def test_saturated_demand_is_never_used_up() -> None:
    # Reactive Streams 3.17, THREATS 39.
    raw = Raw(False)
    raw.say(Message(Type.SUBSCRIBE, 0, 5, b"x"), *[Message(Type.REQUEST, 0, UNBOUNDED)] * 1000)
    assert raw.session.credit(-1) == UNBOUNDED
    assert raw.session.send(-1, Payload(b"x")) == UNBOUNDED
    pair = make()
    stream, there = opened(pair, UNBOUNDED + 100)
    pair.client.request(stream, 1 << 70)
    pair.drive()
    assert pair.server.credit(there) == UNBOUNDED


@given(st.lists(st.one_of(st.integers(1, 5), st.just("send")), max_size=40))
def test_no_more_items_arrive_than_requested(steps: list[Any]) -> None:
    pair = make(CUTS["random"])
    stream, there = opened(pair, 0)
    asked = sent = 0
    for step in steps:
        if step == "send":
            sent += pair.server.send_run(there, PayloadRun.of([Payload(b"x")] * 3))
        else:
            asked += step
            pair.client.request(stream, step)
        pair.drive()
        assert pair.server.credit(there) == asked - sent >= 0
    assert len(pair.items("client", stream)) == sent
