from __future__ import annotations

import asyncio

from tests.aio.test_driver import World
from tests.builds import Build
from tests.waiting import turns
from weirpool import Settings
from weirpool.aio.connectors import Connector


async def test_direct_connector_always_has_the_same_driver(build: Build) -> None:
    world = World(build)
    connector = build.module("weirpool.aio.connectors").Direct(world.driver)
    assert (connector.current, connector.latest, connector.settings) == (world.driver, world.driver, world.settings)
    world.session.open_streams = 3  # type: ignore[attr-defined]
    assert (connector.closed, connector.outstanding) == (False, 3)
    connector.detach()
    assert connector.closed and connector.current is world.driver


async def test_direct_connector_waits_for_a_writable_link(build: Build) -> None:
    world = World(build)
    connector = build.module("weirpool.aio.connectors").Direct(world.driver)
    assert await connector.driver() is world.driver
    world.driver.writing_paused()
    waiting = asyncio.ensure_future(connector.driver())
    await turns(5)
    assert not waiting.done()
    world.driver.writing_resumed()
    assert await waiting is world.driver


async def test_balanced_connector_has_no_session() -> None:
    connector = Connector(Settings())
    assert (connector.closed, connector.outstanding, connector.latest) == (False, 0, None)
