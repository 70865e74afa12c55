from __future__ import annotations

import asyncio

from weirpool.journal.renewal import Renewal


async def test_a_renewal_is_due_at_its_time() -> None:
    renewal = Renewal()
    assert not renewal.is_due()
    renewal.after(1_000.0)
    assert renewal.at is not None and renewal.at > asyncio.get_running_loop().time()
    assert not renewal.is_due()
    renewal.after(0.0)
    assert renewal.is_due()
    renewal.after(None)
    assert (renewal.at, renewal.is_due()) == (None, False)


async def test_a_wait_ends_when_the_renewal_is_due() -> None:
    loop, renewal = asyncio.get_running_loop(), Renewal()
    renewal.after(1_000.0)
    renewal.at = loop.time()
    async with asyncio.timeout(10):
        await renewal.wait(loop.create_future())
        # An earlier time replaces the timer.
        renewal.after(1_000.0)
        waiting = asyncio.ensure_future(renewal.wait(loop.create_future()))
        await asyncio.sleep(0)
        renewal.after(0.0)
        waiting.cancel()
        await asyncio.wait([waiting])
        await renewal.wait(loop.create_future())
    assert renewal.is_due()
    renewal.stop()


async def test_a_timer_that_rings_early_is_set_again() -> None:
    loop, renewal = asyncio.get_running_loop(), Renewal()
    renewal.after(0.01)
    arrived: asyncio.Future[None] = loop.create_future()
    loop.call_soon(arrived.set_result, None)
    await renewal.wait(arrived)
    renewal.after(0.05)
    waiter: asyncio.Future[None] = loop.create_future()
    async with asyncio.timeout(10):
        await renewal.wait(waiter)
    assert renewal.is_due()
    renewal.stop()
    renewal.stop()


async def test_without_a_checkpoint_nothing_is_renewed() -> None:
    loop, renewal = asyncio.get_running_loop(), Renewal()
    arrived: asyncio.Future[None] = loop.create_future()
    loop.call_soon(arrived.set_result, None)
    await renewal.wait(arrived)
    assert renewal._timer is None
