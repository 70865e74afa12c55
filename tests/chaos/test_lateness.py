"""A late process of the chaos laboratory does what it would do else, only later."""

from __future__ import annotations

import asyncio
from asyncio import Task
from typing import Any

import pytest
from chaos import lateness
from chaos.lateness import LATE, late_main


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lateness, "OFTEN", 1.0)
    monkeypatch.setattr(lateness, "SELDOM", 0.001)


async def adds() -> int:
    total = 0
    for number in range(5):
        await asyncio.sleep(0)
        total += await asyncio.create_task(asyncio.sleep(0, number))
    return total


@pytest.mark.parametrize("late", [late.partition(":")[0] for late in LATE])
def test_late_processes_return_what_others_do(late: str) -> None:
    assert asyncio.run(late_main(f"{late}:0.001", adds())) == 10


def test_late_task_raises_what_it_awaits() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)
        raise ValueError("so")

    async def main() -> str:
        with pytest.raises(ValueError, match="so"):
            await asyncio.create_task(fails())
        return "after"

    assert asyncio.run(late_main("tasks:0.001", main())) == "after"


def test_late_task_is_canceled_at_once() -> None:
    async def main() -> list[str]:
        heard = []

        async def waits() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                heard.append("canceled")
                raise

        task: Task[Any] = asyncio.create_task(waits())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return [*heard, str(task.cancelled())]

    assert asyncio.run(late_main("tasks:0.001", main())) == ["canceled", "True"]


def test_late_task_that_is_canceled_before_it_begins_is_not_forgotten() -> None:
    async def main() -> bool:
        task = asyncio.create_task(adds())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return task.cancelled()

    # That a coroutine was never awaited would be a warning, and warnings are errors here.
    assert asyncio.run(late_main("tasks:0.001", main()))


def test_late_task_lets_the_others_go_first() -> None:
    order = []

    async def says(what: str) -> None:
        await asyncio.sleep(0)
        order.append(what)

    async def main() -> None:
        late = asyncio.create_task(says("late"))
        asyncio.get_running_loop().set_task_factory(None)
        await asyncio.gather(late, says("in time"))

    asyncio.run(late_main("tasks:0.001", main()))
    assert order == ["in time", "late"]
