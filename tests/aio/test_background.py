from __future__ import annotations

import asyncio
import threading

from weirpool.aio.background import Background


async def test_work_runs_in_a_thread_and_done_in_the_loop() -> None:
    background = Background()
    here = threading.get_ident()
    there: list[int] = []
    told: asyncio.Future[tuple[Exception | None, int]] = asyncio.get_running_loop().create_future()
    background.run(
        lambda: there.append(threading.get_ident()), lambda error: told.set_result((error, threading.get_ident()))
    )
    assert await told == (None, here)
    assert there != [here]
    await background.ended()


async def test_errors_of_work_are_passed_to_done() -> None:
    background = Background()
    told: list[Exception | None] = []

    def fail() -> None:
        raise OSError("full")

    background.run(fail, told.append)
    await background.ended()
    assert [str(error) for error in told] == ["full"]


async def test_ended_waits_for_work_and_its_callbacks() -> None:
    background = Background()
    free = threading.Event()
    done: list[str] = []

    def then(error: Exception | None) -> None:
        done.append("first")
        background.run(lambda: None, lambda error: done.append("second"))

    background.run(lambda: assert_set(free), then)
    ending = asyncio.create_task(background.ended())
    await asyncio.sleep(0)
    assert not ending.done() and done == []
    free.set()
    await ending
    assert done == ["first", "second"]


def assert_set(event: threading.Event) -> None:
    assert event.wait(30)
