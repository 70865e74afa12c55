from __future__ import annotations

import asyncio
import threading

import pytest

from weirpool.sync.loop import loop_thread
from weirpool.sync.pull import Pull


def test_value_that_comes_too_late_is_for_the_next_wait() -> None:
    ready = threading.Event()
    begun: list[int] = []

    async def late(number: int) -> int:
        begun.append(number)
        await asyncio.to_thread(ready.wait)
        return number

    pull: Pull[int] = Pull(loop_thread(), "a test", 0.01)
    with pytest.raises(TimeoutError, match=r"the next item of a test took more than 0\.01 s"):
        pull.wait(late(1))
    assert pull.pending
    ready.set()
    patient: Pull[int] = Pull(loop_thread(), "a test", None)
    patient._future = pull._future
    assert patient.wait(late(2)) == 1
    assert patient.wait(late(3)) == 3
    assert not patient.pending and begun == [1, 3]


def test_canceled_wait_cancels_the_work() -> None:
    canceled = threading.Event()

    async def never() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            canceled.set()

    pull: Pull[None] = Pull(loop_thread(), "a test", 0.01)
    with pytest.raises(TimeoutError):
        pull.wait(never())
    loop_thread().wait(pull.stop())
    assert canceled.is_set()
    loop_thread().wait(pull.stop())
