from __future__ import annotations

from typing import Any

import pytest

from tests.aio.fakes import FakeLoop, FakeSession, fake_connection
from tests.builds import Build


class Clock(FakeLoop):
    """A loop with a clock that a test sets."""

    now = 0.0

    def time(self) -> float:
        return self.now


class World:
    """The neighbors of a receive buffer.

    Attributes:
        loop: Its clock.
        exchanges: Receives its requests for more items.

    """

    def __init__(self, build: Build, **settings: Any) -> None:
        self.loop = Clock()
        flows, made = build.module("weirpool.aio.flow"), build.module("weirpool.settings").Settings(**settings)
        self.session = FakeSession(build)
        flow = flows.Flow(self.loop, self.session, made, fake_connection(build), list)
        self.exchanges = build.module("weirpool.aio.exchanges").Exchanges(flow)

    @property
    def requests(self) -> list[int]:
        return [count for _, _, count in self.session.verbs("request")]

    @property
    def left(self) -> list[int]:
        return [stream_id for _, stream_id in self.session.verbs("cancel")]


@pytest.fixture
def world(build: Build) -> World:
    return World(build)


def half(build: Build, world: World, window: int, most: int = 0, manual: bool = False) -> Any:
    module = build.module("weirpool.aio.inbound")
    world.exchanges.inbound[1] = made = module.ReceiveBuffer(world.exchanges, 1, window, most, manual)
    return made


def run(build: Build, *items: bytes) -> Any:
    payload = build.module("weirpool.payload")
    return payload.PayloadRun.of([payload.Payload(item) for item in items])


def take(inbound: Any, build: Build, count: int, octets: int = 1) -> None:
    """Let `count` items arrive and be consumed, half a window at a time."""
    while count:
        some = min(count, inbound.threshold)
        inbound.run(run(build, *[bytes(octets)] * some))
        while inbound.prepare():
            list(inbound.ready)
        count -= some


def test_half_a_window_is_requested_at_a_time(build: Build, world: World) -> None:
    inbound = half(build, world, 10)
    for _ in range(4):
        inbound.consume(1)
    assert world.requests == []
    inbound.consume(1)
    assert world.requests == [5]
    inbound.consume(12)
    assert world.requests == [5, 12]


def test_window_of_one_is_requested_item_by_item(build: Build, world: World) -> None:
    inbound = half(build, world, 1)
    inbound.consume(1)
    inbound.consume(1)
    assert world.requests == [1, 1]


def test_manual_or_ended_stream_requests_nothing(build: Build, world: World) -> None:
    half(build, world, 10, manual=True).consume(1000)
    over = half(build, world, 10)
    over.ended(None)
    over.consume(1000)
    assert world.requests == []


def test_explicit_window_does_not_grow(build: Build, world: World) -> None:
    inbound = half(build, world, 10)
    take(inbound, build, 1000)
    assert inbound.window == 10
    assert sum(world.requests) == 1000


def test_window_grows_to_its_limit_for_a_fast_consumer(build: Build, world: World) -> None:
    inbound = half(build, world, 10, most=64)
    take(inbound, build, 5)
    assert (inbound.window, world.requests) == (20, [5 + 10])
    take(inbound, build, 500)
    assert inbound.window == 64
    # The peer's credit always exceeds the consumed items by exactly the window.
    assert 10 + sum(world.requests) == 505 - inbound.consumed + 64


def test_a_window_does_not_grow_for_a_slow_consumer(build: Build, world: World) -> None:
    inbound = half(build, world, 10, most=64)
    for _ in range(20):
        world.loop.now += 0.2
        take(inbound, build, 5)
    assert inbound.window == 10


def test_window_is_limited_by_bytes_and_shrinks(build: Build) -> None:
    world = World(build, max_credit_bytes=4_000)
    inbound = half(build, world, 10, most=64)
    # Only 20 items of 200 bytes fit; 40 would be 8,000 bytes.
    take(inbound, build, 100, octets=200)
    assert inbound.window == 20
    take(inbound, build, 100, octets=1_000)
    assert inbound.window == 10
    assert 10 + sum(world.requests) == 200 - inbound.consumed + 10


def test_items_and_runs_become_ready_in_order(build: Build, world: World) -> None:
    inbound = half(build, world, 100)
    payload = build.module("weirpool.payload").Payload
    inbound.item(payload(b"1"))
    inbound.run(run(build, b"2", b"3"))
    inbound.item(payload(b"4"))
    assert inbound.prepare()
    assert [item.data for item in inbound.ready] == [b"1", b"2", b"3", b"4"]
    assert not inbound.prepare()


def test_prepare_makes_at_most_half_a_window_ready(build: Build, world: World) -> None:
    inbound = half(build, world, 6)
    payload = build.module("weirpool.payload").Payload
    inbound.item(payload(b"1"))
    inbound.run(run(build, b"2", b"3", b"4", b"5"))
    inbound.item(payload(b"6"))
    cuts = []
    while inbound.prepare():
        cuts.append(b"".join(item.data for item in inbound.ready))
        # The last of these counts as consumed only when the next ones are requested.
        assert sum(world.requests) == 3 * (len(cuts) - 1)
    assert cuts == [b"123", b"456"]
    assert world.requests == [3, 3]


def test_rows_go_on_where_single_items_stopped(build: Build, world: World) -> None:
    inbound = half(build, world, 6)
    builder = build.module("weirpool.wire.columns").ColumnBuilder()
    inbound.run(run(build, b"1", b"2", b"3", b"4"))
    inbound.run(run(build, b"5"))
    assert inbound.prepare()
    assert next(inbound.ready).data == b"1"
    assert not inbound.fill(builder, 100, 100)
    assert rows(builder) == [b"2", b"3", b"4", b"5"]
    assert sum(world.requests) + inbound.consumed == 5
    assert not inbound.prepare()


def rows(builder: Any) -> list[bytes]:
    return builder.finish().column("data").to_pylist()


def test_rows_are_filled_up_to_the_limit_and_consumed(build: Build, world: World) -> None:
    inbound = half(build, world, 2)
    builder = build.module("weirpool.wire.columns").ColumnBuilder()
    inbound.run(run(build, b"1", b"2", b"3"))
    inbound.run(run(build, b"4", b"5"))
    # A run is not split while the batch has rows.
    assert inbound.fill(builder, 4, 100)
    assert rows(builder) == [b"1", b"2", b"3"]
    assert not inbound.fill(builder, 4, 100)
    assert rows(builder) == [b"4", b"5"]
    assert sum(world.requests) == 5


def test_a_run_that_is_longer_than_a_batch_is_cut(build: Build, world: World) -> None:
    inbound = half(build, world, 2)
    builder = build.module("weirpool.wire.columns").ColumnBuilder()
    inbound.run(run(build, b"1", b"2", b"3"))
    assert inbound.fill(builder, 2, 100)
    assert rows(builder) == [b"1", b"2"]
    assert not inbound.fill(builder, 2, 100)
    assert rows(builder) == [b"3"]


def test_bytes_make_a_batch_full(build: Build, world: World) -> None:
    inbound = half(build, world, 2)
    builder = build.module("weirpool.wire.columns").ColumnBuilder()
    inbound.run(run(build, b"12345", b"67890"))
    inbound.run(run(build, b"x"))
    assert inbound.fill(builder, 100, 10)
    assert rows(builder) == [b"12345", b"67890"]


def test_items_arriving_during_a_batch_are_added_to_it(build: Build, world: World) -> None:
    inbound = half(build, world, 4)
    payload = build.module("weirpool.payload").Payload
    builder = build.module("weirpool.wire.columns").ColumnBuilder()
    inbound.item(payload(b"0"))
    assert not inbound.fill(builder, 5, 100)
    inbound.gather(builder, 5, 100)
    inbound.run(run(build, b"1", b"2"))
    inbound.item(payload(b"3"))
    # The consumer waits for these, so they are consumed, and more are requested.
    assert (len(builder), inbound.pending) == (4, [])
    assert sum(world.requests) + inbound.consumed == 4
    # An item that does not fit is not consumed, nor are later ones.
    inbound.run(run(build, b"4", b"5"))
    inbound.item(payload(b"6"))
    assert len(inbound.pending) == 2
    assert sum(world.requests) + inbound.consumed == 4
    inbound.stop_gathering(builder)
    assert inbound.fill(builder, 5, 100)
    assert rows(builder) == [b"0", b"1", b"2", b"3"]
    assert not inbound.fill(builder, 5, 100)
    assert rows(builder) == [b"4", b"5", b"6"]
    assert sum(world.requests) + inbound.consumed == 7


def test_too_much_waiting_pushed_metadata_ends_the_stream(build: Build) -> None:
    # THREATS 45: credit does not apply to it.
    world = World(build, max_metadata_bytes=10_000)
    inbound = half(build, world, 10)
    taken: list[bytes] = []
    inbound.on_push = taken.append
    for _ in range(500):
        inbound.push(bytes(100))
        assert not inbound.prepare()
    assert (len(taken), world.left) == (500, [])
    for _ in range(500):
        inbound.push(bytes(100))
    assert world.left == [1]
    assert len(inbound.pending) < 100
    assert "max_metadata_bytes (10000)" in str(inbound.error)
