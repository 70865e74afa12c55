from __future__ import annotations

import asyncio

from weirpool.dedup.turns import Turns


async def test_equal_things_take_turns_and_others_do_not_wait() -> None:
    turns, log = Turns(), list[str]()
    go = asyncio.Event()

    async def take(thing: str, name: str) -> None:
        async with turns.of(thing):
            log.append(name)
            if name == "first":
                await go.wait()

    tasks = [
        asyncio.create_task(take(thing, name)) for thing, name in (("a", "first"), ("a", "second"), ("b", "other"))
    ]
    await asyncio.wait([tasks[2]])
    assert log == ["first", "other"] and len(turns) == 1
    tasks[1].cancel()
    go.set()
    await asyncio.wait(tasks)
    assert log == ["first", "other"] and len(turns) == 0
