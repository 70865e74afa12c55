from __future__ import annotations

import asyncio
from unittest import mock

from weirpool.journal.ticks import Ticks


async def test_all_actions_of_a_tick_share_a_timer() -> None:
    loop, ticks, done = asyncio.get_running_loop(), Ticks(), asyncio.Event()
    called: list[str] = []
    when = loop.time() + 0.01
    with mock.patch.object(loop, "call_at", wraps=loop.call_at) as call_at:
        ticks.add(when, "one", lambda: called.append("one"))
        ticks.add(when, "two", lambda: called.append("two"))
        ticks.add(when, "three", lambda: called.append("three"))
        ticks.add(when, "four", done.set)
        assert call_at.call_count == 1
    ticks.remove(when, "two")
    ticks.remove(when + 1, "two")
    async with asyncio.timeout(10):
        await done.wait()
    assert called == ["one", "three"]


async def test_an_action_may_add_another_one() -> None:
    loop, ticks, done = asyncio.get_running_loop(), Ticks(), asyncio.Event()
    when = loop.time()
    ticks.add(when, "one", lambda: ticks.add(when, "one", done.set))
    async with asyncio.timeout(10):
        await done.wait()
    ticks.remove(when, "one")
    assert done.is_set()
