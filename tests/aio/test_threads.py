from __future__ import annotations

import asyncio
import threading

import pytest

from weirpool.aio.threads import in_thread


async def test_result_and_errors_are_those_of_the_function() -> None:
    assert await in_thread(int, "7") == 7
    with pytest.raises(ValueError, match="seven"):
        await in_thread(int, "seven")


async def test_canceled_call_ends_after_its_function() -> None:
    loop, started = asyncio.get_running_loop(), asyncio.Event()
    go, done = threading.Event(), threading.Event()

    def work() -> None:
        loop.call_soon_threadsafe(started.set)
        assert go.wait(20)
        done.set()

    task = asyncio.create_task(in_thread(work))
    await started.wait()
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()
