"""The server that is tried comes and goes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

import weirpool
from tests.reflection.quotes import KINDS, service
from weirpool import LocalError, Settings
from weirpool.tryit import target as module
from weirpool.tryit.target import State, Target

URL = "rsocket+memory://target"
ON = Settings(reflection=True)


@asynccontextmanager
async def watched(url: str = URL) -> AsyncIterator[tuple[Target, Callable[[State], asyncio.Task[None]]]]:
    """Run a target; yield it, and a function that waits for a state."""
    found = Target(lambda hook: weirpool.connect(url, on_connection=hook, reconnect=False))
    changed = asyncio.Condition()
    tasks = set()

    async def notify() -> None:
        async with changed:
            changed.notify_all()

    def note() -> None:
        task = asyncio.create_task(notify())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def until(state: State) -> None:
        async with changed:
            await changed.wait_for(lambda: found.state is state)

    found.changed = note
    running = asyncio.create_task(found.run())
    try:
        yield found, lambda state: asyncio.create_task(until(state))
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


def told(target: Target) -> tuple[bool, int | None]:
    """Return whether a target has a problem, and how many routes it has described."""
    return bool(target.problem), None if target.description is None else len(target.description.routes)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once."""
    monkeypatch.setattr(module, "DELAYS", (0.01,))


async def test_comes_goes_and_returns() -> None:
    async with watched() as (target, until):
        await until(State.AWAY)
        assert told(target) == (True, None) and target.peer is None
        async with weirpool.serve(service, URL, settings=ON):
            await until(State.CONNECTED)
            assert told(target) == (False, len(KINDS))
        await until(State.AWAY)
        # What it offered is still known.
        assert told(target) == (True, len(KINDS))
        async with weirpool.serve(service, URL):
            await until(State.CONNECTED)
            assert told(target) == (False, None) and "--reflection" in target.undescribed


async def test_asks_again() -> None:
    growing = weirpool.Service()
    async with weirpool.serve(growing, URL, settings=ON), watched() as (target, until):
        await target.describe()
        await until(State.CONNECTED)
        assert told(target) == (False, 0)
        growing.call("new")(lambda request: request)
        await target.describe()
        assert told(target) == (False, 1)


async def test_options_that_do_not_fit_are_not_tried_again() -> None:
    wrong = Target(lambda hook: weirpool.connect("rsocket+tcp://127.0.0.1:1", ssl=ssl.create_default_context()))
    with pytest.raises(LocalError):
        await wrong.run()
