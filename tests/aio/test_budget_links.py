"""Messages that are incomplete in a link. THREATS 86"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from tests.aio.test_budget import World
from tests.builds import Build
from tests.sim.clockwork import run


def watched(build: Build) -> tuple[World, list[Exception]]:
    """Return a connection with 10 seconds for each message, and the errors because of which it loses its link."""
    world = World(build, frame_timeout=10.0)
    lost: list[Exception] = []
    world.link.receiver = SimpleNamespace(link_lost=lost.append)
    return world, lost


async def test_incomplete_message_of_the_link_is_counted(build: Build) -> None:
    # THREATS 86
    world = World(build)
    world.link.unfinished = 300
    world.budget.count_link()
    assert (world.account.incomplete, world.account.held) == (300, 300)
    world.link.unfinished = 0
    world.budget.count_link()
    assert world.account.held == 0
    world.ledger.leave(world.account)


def test_message_may_grow_slowly(build: Build) -> None:
    async def main() -> None:
        world, lost = watched(build)
        for size in range(1, 6):
            world.link.unfinished = size
            world.budget.count_link()
            await asyncio.sleep(9.0)
        assert not lost
        await asyncio.sleep(2.0)
        assert len(lost) == 1
        world.ledger.leave(world.account)

    run(main())


def test_each_message_is_watched_while_it_is_incomplete(build: Build) -> None:
    async def main() -> None:
        world, lost = watched(build)
        for size in (300, 0):
            world.link.unfinished = size
            world.budget.count_link()
        await asyncio.sleep(30.0)
        assert not lost
        world.link.unfinished = 300
        world.budget.count_link()
        await asyncio.sleep(11.0)
        assert len(lost) == 1
        world.ledger.leave(world.account)

    run(main())


def test_time_without_reading_does_not_count_for_a_message(build: Build) -> None:
    async def main() -> None:
        world, lost = watched(build)
        world.link.unfinished = 300
        world.budget.count_link()
        world.account.paused = True
        await asyncio.sleep(35.0)
        world.account.paused = False
        await asyncio.sleep(4.0)
        assert not lost
        await asyncio.sleep(7.0)
        assert len(lost) == 1
        world.ledger.leave(world.account)

    run(main())


def test_message_of_a_lost_link_is_not_watched(build: Build) -> None:
    async def main() -> None:
        world, lost = watched(build)
        world.link.unfinished, world.link.unread = 300, 70
        world.budget.count_link()
        assert (world.account.incomplete, world.account.unread) == (300, 70)
        world.flow.link = None
        world.budget.count_link()
        assert (world.account.incomplete, world.account.unread) == (0, 0)
        await asyncio.sleep(30.0)
        world.budget.close()
        assert not lost

    run(main())
