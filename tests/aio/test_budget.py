from __future__ import annotations

import asyncio
import gc
from types import SimpleNamespace
from typing import Any

import pytest

from tests.aio.fakes import FakeLink, FakeSession, fake_connection
from tests.builds import Build
from tests.sim.clockwork import run
from tests.waiting import turns, until


class World:
    """A connection whose account may hold 1,000 bytes, with a link.

    Attributes:
        account: Its account.
        exchanges: Its streams.
        link: Its link.
        session: Its session.
        budget: What is tested.

    """

    def __init__(self, build: Build, **settings: Any) -> None:
        self.build = build
        limits = {"max_identity_bytes": 10_000, "max_process_bytes": 20_000, "max_stream_bytes": 500, **settings}
        made = build.module("weirpool.settings").Settings(max_connection_bytes=1_000, **limits)
        self.ledger = build.module("weirpool.ledger").LEDGER
        self.session = FakeSession(build)
        self.account = self.session.account = build.module("weirpool.account").Account(1_000)
        self.flow = build.module("weirpool.aio.flow").Flow(
            asyncio.get_running_loop(), self.session, made, fake_connection(build), self.settle
        )
        self.flow.link = self.link = FakeLink()
        self.exchanges = build.module("weirpool.aio.exchanges").Exchanges(self.flow)
        self.budget = build.module("weirpool.aio.budget").Budget(self.exchanges)

    def settle(self) -> None:
        self.budget.settle()

    def stream(self, stream_id: int, *sizes: int) -> Any:
        """Return the receive buffer of a stream with items of some sizes."""
        module = self.build.module("weirpool.aio.inbound")
        self.exchanges.inbound[stream_id] = made = module.ReceiveBuffer(self.exchanges, stream_id, 100, 100, False)
        for size in sizes:
            made.item(self.build.module("weirpool.payload").Payload(bytes(size)))
        return made


async def test_reading_stops_while_too_much_is_not_consumed(build: Build) -> None:
    # THREATS 84
    world = World(build)
    for number in (1, 2):
        items = world.stream(number, 700, 700)
        world.settle()
        assert world.link.told[-1] == "pause_reading"
        while items.prepare():
            list(items.ready)
        await turns(2)
        assert world.link.told == ["pause_reading", "resume_reading"] * number
        assert world.account.held == 0
    world.ledger.leave(world.account)


async def test_largest_stream_fails_when_nothing_is_consumed(build: Build) -> None:
    # THREATS 84
    world = World(build, unread_timeout=0.001)
    small, large = world.stream(1, 300), world.stream(3, 400, 400)
    world.settle()
    await until(lambda: large.over)
    assert type(large.error).__name__ == "LimitExceeded"
    assert "unread_timeout (0.001 s)" in str(large.error)
    assert not small.over and world.account.held == small.account.held
    assert [(verb[0], verb[1]) for verb in world.session.verbs("fail")] == [("fail", 3)]
    assert world.link.told == ["pause_reading", "resume_reading"]
    world.ledger.leave(world.account)


async def test_stream_that_has_ended_pays_as_well(build: Build) -> None:
    world = World(build, unread_timeout=0.001)
    ended = world.stream(1, 700, 700)
    assert world.exchanges.end_inbound(1, None)
    world.settle()
    await until(lambda: not ended.pending)
    assert world.account.held == 0
    world.ledger.leave(world.account)


async def test_connection_ends_if_its_streams_hold_nothing(build: Build) -> None:
    world = World(build, unread_timeout=0.001)
    world.account.book(1_001)
    world.settle()
    await until(lambda: bool(world.session.verbs("close")))
    assert type(world.session.verbs("close")[0][1]).__name__ == "LimitExceeded"
    world.ledger.leave(world.account)


async def test_full_process_takes_from_the_largest_at_once(build: Build) -> None:
    # THREATS 87
    greedy, modest = (World(build, max_process_bytes=900) for _ in range(2))
    before = greedy.ledger.payments_by_limit["max_process_bytes"]
    hoard, item = greedy.stream(1, 600), modest.stream(1, 300)
    greedy.settle()
    modest.settle()
    await until(lambda: hoard.over)
    assert "max_process_bytes (900)" in str(hoard.error)
    assert greedy.ledger.payments_by_limit["max_process_bytes"] == before + 1
    assert not item.over
    for world in (greedy, modest):
        world.ledger.leave(world.account)


async def test_ended_connection_is_counted_until_its_items_are_consumed(build: Build) -> None:
    world = World(build)
    items = world.stream(1, 300)
    world.settle()
    before = world.ledger.process.held
    world.flow.link = None
    world.budget.close()
    assert world.ledger.process.held == before > 0
    while items.prepare():
        list(items.ready)
    assert world.account.group is None


async def test_connection_that_nobody_closes_is_not_kept(build: Build) -> None:
    world = World(build)
    account = world.account
    items = world.stream(1, 300)
    world.settle()
    items.waiters.clear()
    del world, items
    gc.collect()
    assert account.group is None


async def test_link_is_given_up_if_its_message_does_not_grow(build: Build) -> None:
    # THREATS 86
    world = World(build, frame_timeout=0.001)
    lost: list[Exception] = []
    world.link.receiver = SimpleNamespace(link_lost=lost.append)
    world.link.unfinished = 300
    world.budget.count_link()
    await until(lambda: bool(lost))
    assert "frame_timeout (0.001 s)" in str(lost[0])
    assert world.link.told == ["abort"]
    assert world.account.held == 0
    world.ledger.leave(world.account)


async def test_link_that_is_not_read_is_not_given_up(build: Build) -> None:
    world = World(build, frame_timeout=0.001)
    world.link.unfinished = 300
    world.flow.stop_reading(1)
    world.budget.count_link()
    await asyncio.sleep(0.01)
    assert world.link.told == ["pause_reading"]
    world.budget.close()


async def test_output_that_nobody_reads_is_counted(build: Build) -> None:
    # THREATS 40
    world = World(build)
    world.flow.writing_paused()
    world.link.waiting = 5_000
    world.flow.write()
    assert (world.account.retained, world.account.held) == (5_000, 5_000)
    assert world.account.settle() == 0
    world.link.waiting = 0
    world.flow.writing_resumed()
    assert world.account.held == 0
    world.ledger.leave(world.account)


async def test_connection_ends_whose_peer_does_not_read(build: Build) -> None:
    # THREATS 40, 87
    world = World(build, max_identity_bytes=4_000, unread_timeout=0.001)
    world.flow.writing_paused()
    world.link.waiting = 5_000
    world.flow.write()
    world.settle()
    await until(lambda: "abort" in world.link.told)
    assert "max_identity_bytes (4000)" in str(world.session.verbs("close")[0][1])
    world.ledger.leave(world.account)


async def test_output_of_a_closing_link_is_counted(build: Build) -> None:
    # THREATS 40
    world = World(build)
    world.budget.close()
    world.link.waiting = 5_000
    world.flow.close_link()
    world.budget.settle()
    group = world.account.group
    assert group is not None and group.held == 5_000
    world.link.waiting = 0
    world.flow.count_output()
    assert group.held == 0
    world.flow.link = None
    world.budget.settle()
    assert world.account.group is None


async def test_closing_link_is_aborted_when_others_need_its_memory(build: Build) -> None:
    # THREATS 40, 87
    world, other = (World(build, max_identity_bytes=4_000) for _ in range(2))
    world.budget.close()
    world.link.waiting = 5_000
    world.flow.close_link()
    world.budget.settle()
    other.stream(1, 100)
    other.settle()
    await until(lambda: "abort" in world.link.told)
    assert world.account.held == 0
    await until(lambda: other.link.told == ["pause_reading", "resume_reading"])
    for each in (world, other):
        each.ledger.leave(each.account)


async def test_another_connection_pays_when_one_has_ended(build: Build) -> None:
    # THREATS 87
    worlds = [World(build, max_process_bytes=500) for _ in range(3)]
    for world in worlds:
        # Nothing that a session could drop.
        world.account.book_incomplete(450)
    real = [world.session.close for world in worlds]
    for world, close in zip(worlds, real, strict=True):

        def end(now: float, error: Any = None, world: World = world, close: Any = close) -> None:
            close(now, error)
            world.budget.close()

        world.session.close = end
    for world in worlds:
        world.settle()
    await until(lambda: sum(bool(world.session.verbs("close")) for world in worlds) == 2)
    await turns(5)
    assert sum(bool(world.session.verbs("close")) for world in worlds) == 2
    for world in worlds:
        world.ledger.leave(world.account)


async def test_unfinished_items_above_the_limit_are_not_waited_for(build: Build) -> None:
    # THREATS 86
    world = World(build)
    ended: list[Exception] = []

    def end(now: float, error: Exception) -> None:
        ended.append(error)
        world.budget.close()

    world.session.close = end  # type: ignore[method-assign, assignment]
    before = world.ledger.payments_by_limit["max_connection_bytes"]
    world.account.book_incomplete(1_001)
    world.settle()
    await until(lambda: bool(ended))
    await turns(3)
    assert ["max_connection_bytes (1000)" in str(error) for error in ended] == [True]
    assert world.ledger.payments_by_limit["max_connection_bytes"] == before + 1


async def test_small_unfinished_item_does_not_pay_for_a_large_neighbor(build: Build) -> None:
    # THREATS 86, 87
    greedy, modest = (World(build, max_process_bytes=900) for _ in range(2))
    hoard = greedy.stream(1, 700)
    greedy.settle()
    modest.account.book_incomplete(300)
    modest.settle()
    await until(lambda: hoard.over)
    await turns(3)
    assert modest.session.verbs("close", "shed", "fail") == []
    for world in (greedy, modest):
        world.ledger.leave(world.account)


def test_time_in_which_reading_went_on_does_not_count(build: Build) -> None:
    # THREATS 84
    async def main() -> None:
        world = World(build, unread_timeout=10.0)
        first = world.stream(1, 700, 700)
        world.settle()
        while first.prepare():
            list(first.ready)
        world.settle()
        second = world.stream(3, 700)
        world.settle()
        await asyncio.sleep(100.0)
        assert not second.over
        world.ledger.leave(world.account)

    run(main())


def test_connection_above_its_share_pays_when_it_has_waited_each_time(build: Build) -> None:
    # THREATS 84, 87
    async def main() -> None:
        world = World(build, max_identity_bytes=800, unread_timeout=10.0)
        for number in (1, 2):
            items = world.stream(number, 750)
            world.settle()
            await asyncio.sleep(9.0)
            assert not items.over
            await asyncio.sleep(2.0)
            assert "max_identity_bytes (800)" in str(items.error)
        assert world.account.held == 0
        world.ledger.leave(world.account)

    run(main())


def test_consumer_that_is_slow_is_not_failed(build: Build) -> None:
    # THREATS 84
    async def main() -> None:
        world = World(build, unread_timeout=10.0)
        items = world.stream(1, 2_000)
        world.settle()
        for _ in range(5):
            await asyncio.sleep(8.0)
            items.account.release(10)
            world.settle()
            assert not items.over
        await asyncio.sleep(21.0)
        assert items.over
        world.ledger.leave(world.account)

    run(main())


async def test_identity_is_joined_once_and_never_after_the_end(build: Build) -> None:
    world = World(build)
    group = world.account.group
    world.budget.identify()
    assert world.account.group is group
    world.flow.connection.principal = "alice"
    world.budget.identify()
    assert "alice" in "".join(world.ledger.identities)
    world.budget.close()
    world.flow.link = None
    world.budget.settle()
    world.flow.connection.principal = "bob"
    world.budget.identify()
    assert world.account.group is None


def test_items_of_an_ended_connection_are_not_dropped(build: Build) -> None:
    async def main() -> None:
        world = World(build, unread_timeout=10.0)
        items = world.stream(1, 700, 700)
        world.settle()
        world.budget.close()
        await asyncio.sleep(100.0)
        assert not items.over
        world.settle()
        await asyncio.sleep(100.0)
        assert not items.over
        world.ledger.leave(world.account)

    run(main())


async def test_what_only_a_detached_session_holds_is_forgotten(build: Build) -> None:
    world = World(build)
    items = world.stream(1, 300)
    of_stream = world.account.held
    world.account.book(50)
    world.account.book_incomplete(20)
    world.account.book_retained(10)
    world.settle()
    world.budget.detach()
    assert world.account.held == world.account.group.held == of_stream
    world.flow.link = None
    world.budget.settle()
    while items.prepare():
        list(items.ready)
    assert world.account.group is None


@pytest.mark.parametrize("told_before", [True, False])
def test_connection_of_a_closed_loop_pays_by_leaving(build: Build, told_before: bool) -> None:
    # THREATS 87
    async def make() -> World:
        return World(build)

    loop = asyncio.new_event_loop()
    world = loop.run_until_complete(make())
    world.account.book(800)
    world.settle()
    if told_before:
        world.account.on_debt()
        assert world.account.group is not None
    loop.close()
    world.account.on_debt()
    assert world.account.group is None
