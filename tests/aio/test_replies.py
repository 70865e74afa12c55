"""Replies: what tasks that await one see, which is what a future shows them, and that a batch wakes them together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import pytest

from tests.aio.fakes import FakeSession, fake_connection
from tests.builds import Build
from weirpool.settings import Settings


class World:
    """The replies of a connection whose flushes are counted."""

    def __init__(self, build: Build) -> None:
        self.flushes = 0
        loop = asyncio.get_running_loop()
        session = FakeSession(build)
        flow = build.module("weirpool.aio.flow").Flow(loop, session, Settings(), fake_connection(build), self._flush)
        self.flow = flow
        self.replies = build.module("weirpool.aio.replies").Replies(flow)

    def _flush(self) -> None:
        self.flow.batching = False
        self.flushes += 1

    async def task(self, reply: Any, then: Callable[[Any], object] = lambda value: None) -> asyncio.Task[Any]:
        """Return a task that awaits `reply` and returns its value."""

        async def wait() -> Any:
            await reply
            then(reply.value)
            return reply.value

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        return task


async def test_a_task_continues_with_the_result(build: Build) -> None:
    world = World(build)
    reply = world.replies.new()
    task = await world.task(reply)
    assert (reply.done(), task.done()) == (False, False)
    reply.set_result("x")
    assert (await task, reply.done(), reply.result()) == ("x", True, "x")


async def test_a_reply_that_is_done_does_not_wait(build: Build) -> None:
    world = World(build)
    reply = world.replies.new()
    reply.set_result("x")
    assert (await world.task(reply)).done()
    assert world.flushes == 0


async def test_a_reply_that_ends_before_its_task_waits_wakes_it(build: Build) -> None:
    reply = World(build).replies.new()
    reply.set_result("x")
    woken: list[Any] = []
    reply.add_done_callback(woken.append, context=copy_context())
    await asyncio.sleep(0)
    assert woken == [reply]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_an_error_is_raised_in_the_task(build: Build, when: str) -> None:
    world = World(build)
    reply = world.replies.new()
    error = ValueError("no")
    task = None if when == "before" else await world.task(reply)
    reply.set_exception(error)
    with pytest.raises(ValueError, match="no") as raised:
        await (task or await world.task(reply))
    assert raised.value is error


async def test_tasks_of_a_batch_continue_in_order_and_their_output_is_written_once(build: Build) -> None:
    world = World(build)
    order: list[int] = []

    def send(number: int) -> None:
        order.append(number)
        world.flow.schedule_write()

    replies = [world.replies.new() for _ in range(5)]
    tasks = [await world.task(reply, send) for reply in replies]
    for number, reply in enumerate(replies):
        reply.set_result(number)
    await asyncio.sleep(0)
    assert (order, world.flushes) == ([0, 1, 2, 3, 4], 1)
    assert await asyncio.gather(*tasks) == order
    assert world.flushes == 1


async def test_a_reply_that_arrives_while_others_are_woken_is_woken_later(build: Build) -> None:
    world = World(build)
    first, second = world.replies.new(), world.replies.new()
    await world.task(first, second.set_result)
    task = await world.task(second)
    first.set_result("x")
    assert await asyncio.wait_for(task, 5) == "x"
    assert world.flushes == 2


@pytest.mark.parametrize("message", [None, "enough"])
async def test_canceling_the_task_cancels_the_reply(build: Build, message: str | None) -> None:
    world = World(build)
    reply = world.replies.new()
    task = await world.task(reply)
    task.cancel(message)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (task.cancelled(), reply.done(), reply.cancel()) == (True, True, False)


async def test_a_canceled_task_that_was_answered_is_still_canceled(build: Build) -> None:
    world = World(build)
    reply = world.replies.new()
    task = await world.task(reply)
    reply.set_result("x")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_timeouts_and_the_current_task_work_around_a_reply(build: Build) -> None:
    world = World(build)
    reply = world.replies.new()

    async def wait() -> asyncio.Task[Any] | None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await reply
        return asyncio.current_task()

    task = asyncio.create_task(wait())
    assert await task is task


async def test_an_exception_that_ends_the_process_leaves_no_task_asleep(build: Build) -> None:
    world = World(build)
    woken: list[int] = []

    def stop(reply: Any) -> None:
        raise KeyboardInterrupt

    context = copy_context()
    failing, other = world.replies.new(), world.replies.new()
    failing.add_done_callback(stop, context=context)
    other.add_done_callback(lambda reply: woken.append(1), context=context)
    failing.set_result(None)
    other.set_result(None)
    with pytest.raises(KeyboardInterrupt):
        world.replies._wake()
    assert (woken, world.flushes) == ([], 1)
    world.replies._wake()
    assert woken == [1]
