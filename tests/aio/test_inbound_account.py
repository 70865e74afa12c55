"""The account of a receive buffer: it agrees with what the buffer holds, and demand follows from it."""

from __future__ import annotations

from array import array
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.aio.test_inbound import World, half, run
from tests.builds import Build

SIZES = st.lists(st.integers(0, 300), min_size=2, max_size=6)
STEPS = st.one_of(
    st.tuples(st.just("item"), st.integers(0, 300)),
    st.tuples(st.just("run"), SIZES),
    st.tuples(st.just("push"), st.integers(0, 30)),
    st.tuples(st.just("take"), st.integers(1, 5)),
    st.tuples(st.just("fill"), st.integers(1, 5)),
)


def take(inbound: Any, count: int) -> None:
    """Take up to `count` items, as an iteration does."""
    for _ in range(count):
        if next(inbound.ready, None) is None and (not inbound.prepare() or next(inbound.ready, None) is None):
            return


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(STEPS, max_size=30))
def test_consumed_items_are_released(builds: dict[str, Build], steps: list[tuple[str, Any]]) -> None:
    for build in builds.values():
        world = World(build)
        inbound = half(build, world, 8, 8)
        inbound.on_push = lambda metadata: None
        payload, columns = build.module("weirpool.payload"), build.module("weirpool.wire.columns")
        for what, value in steps:
            if what == "item":
                inbound.item(payload.Payload(bytes(value), b"m"))
            elif what == "run":
                inbound.run(run(build, *map(bytes, value)))
            elif what == "push":
                inbound.push(bytes(value))
            elif what == "take":
                take(inbound, value)
            else:
                inbound.fill(columns.ColumnBuilder(), value, 1 << 20)
            assert (inbound.account.held > 0) >= bool(inbound.pending)
            assert world.exchanges.flow.account.held == inbound.account.held >= 0
        take(inbound, 1_000)
        assert (inbound.account.held, inbound.pushed, inbound.pending) == (0, 0, [])


def test_large_items_reduce_the_demand(build: Build) -> None:
    # THREATS 84
    world = World(build, max_stream_bytes=10_000)
    inbound = half(build, world, 100, 100)
    for _ in range(10):
        inbound.item(build.module("weirpool.payload").Payload(bytes(2_000)))
    while inbound.prepare():
        list(inbound.ready)
    assert world.requests == []
    for _ in range(90):
        inbound.item(build.module("weirpool.payload").Payload(bytes(2_000)))
        while inbound.prepare():
            list(inbound.ready)
    # Four items fit. They are requested one by one, as the others are consumed.
    assert sum(world.requests) == 4 and inbound.expected == 4


def test_demand_goes_on_after_everything_was_deferred(build: Build) -> None:
    world = World(build, max_stream_bytes=1_000)
    inbound = half(build, world, 4, 4)
    for _ in range(50):
        while inbound.expected > 0:
            inbound.item(build.module("weirpool.payload").Payload(bytes(5_000)))
        while inbound.prepare():
            list(inbound.ready)
        assert inbound.expected == 1


def test_discarded_items_are_released_and_not_delivered(build: Build) -> None:
    world = World(build)
    inbound = half(build, world, 8, 8)
    for _ in range(6):
        inbound.item(build.module("weirpool.payload").Payload(bytes(10)))
    inbound.prepare()
    assert len(next(inbound.ready).data) == 10
    error = ValueError("too much")
    inbound.discard(error)
    assert (list(inbound.ready), inbound.prepare(), inbound.account.held) == ([], False, 0)
    assert inbound.over and inbound.error is error


def test_small_run_does_not_keep_a_large_read(build: Build) -> None:
    # THREATS 84
    world = World(build)
    inbound = half(build, world, 100, 100)
    payload = build.module("weirpool.payload")
    read = bytes(100_000) + b"abcd" + bytes(100_000)
    offsets = array("i", [-1, 100_000, 100_002, -1, 100_002, 100_004])
    inbound.run(payload.PayloadRun(read, offsets, 4))
    (kept,) = inbound.pending
    assert len(kept.buffer) == 4
    assert [item.data for item in kept] == [b"ab", b"cd"]


def test_run_that_fills_its_read_is_not_copied(build: Build) -> None:
    world = World(build)
    inbound = half(build, world, 100, 100)
    given = build.module("weirpool.payload").PayloadRun(bytes(100_000), array("i", [-1, 0, 50_000]), 50_000)
    inbound.run(given)
    assert inbound.pending == [given]
