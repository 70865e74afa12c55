"""Output that waits in a link, and bytes that it has not passed on, are counted."""

from __future__ import annotations

from tests.aio.test_driver import World
from tests.builds import Build
from tests.waiting import until


def write(world: World, *chunks: bytes) -> None:
    world.session.output += chunks
    world.driver.flush()


async def test_waiting_output_is_counted_while_there_is_some(build: Build) -> None:
    world = World(build)
    flow = world.driver.flow
    write(world, bytes(20_000))
    world.link.waiting = 20_000
    assert flow.account.waiting == 0
    # Soon, because most output does not wait.
    write(world, bytes(20_000))
    await until(lambda: flow.account.waiting == 20_000)
    assert flow.account.retained == flow.account.held == 20_000
    world.link.waiting = 5
    await until(lambda: flow.account.waiting == 5)
    world.link.waiting = 0
    await until(lambda: flow.account.held == 0)


async def test_link_that_has_failed_gets_no_more_output(build: Build) -> None:
    world = World(build)
    flow = world.driver.flow
    world.link.closing = True
    large = bytes(flow.look_after + 1)
    write(world, large, b"second")
    write(world, b"third")
    assert world.link.written == [large]
    world.link.closing = False
    newer = type(world.link)()
    flow.attach(newer)
    write(world, b"fourth")
    assert newer.written == [b"fourth"]


async def test_unread_bytes_of_the_link_are_counted(build: Build) -> None:
    # THREATS 84
    world = World(build)
    world.link.unread = 700
    world.driver.received(b"")
    account = world.driver.flow.account
    assert (account.unread, account.held, account.incomplete) == (700, 700, 0)
    world.link.unread = 0
    world.driver.received(b"x")
    assert (account.unread, account.held) == (0, 0)
    world.link.unread = 10
    world.driver.received(b"")
    world.driver.flow.drop_link()
    assert account.held == 0
