from __future__ import annotations

import asyncio

import pytest

import penstock
from penstock import IntervalLease, LeaseMissing, SessionClosed, Settings
from tests.aio.serving import world

HOURLY = Settings(lease=IntervalLease(2, 3600.0))


async def test_requests_wait_for_the_next_lease_in_order() -> None:
    # Nine requests are more than two leases give leave for.
    async with world(server=Settings(lease=IntervalLease(4, 0.05)), client=Settings(lease=True)) as w:
        done: list[int] = []

        async def ask(number: int) -> None:
            await w.peer.call("echo", b"%d" % number)
            done.append(number)

        await asyncio.gather(*map(ask, range(9)))
        assert done == list(range(9))


async def test_whoever_wants_no_waiting_learns_at_once() -> None:
    async with world(server=HOURLY, client=Settings(lease=True, lease_timeout=0)) as w:
        while True:
            try:
                await w.peer.call("echo")
                break
            except LeaseMissing:
                # The first lease is under way.
                await asyncio.sleep(0)
        await w.peer.call("echo")
        for ask in (w.peer.call("echo"), w.peer.fire("log"), w.peer.upload("sum", b"", [])):
            with pytest.raises(LeaseMissing, match="no leave"):
                await ask
        with pytest.raises(LeaseMissing):
            async with w.peer.stream("count", b"3"):
                pass


async def test_waiting_ends_after_a_while() -> None:
    async with world(server=HOURLY, client=Settings(lease=True, lease_timeout=0.05)) as w:
        await w.peer.call("echo")
        await w.peer.call("echo")
        with pytest.raises(LeaseMissing, match=r"within 0\.05 s"):
            await w.peer.call("echo")


async def test_all_kinds_wait() -> None:
    async with world(server=Settings(lease=IntervalLease(1, 0.02)), client=Settings(lease=True)) as w:
        assert (await w.peer.call("echo", b"x")).data == b"x"
        await w.peer.fire("log", b"logged")
        assert [item.data async for item in w.peer.stream("count", b"2")] == [b"0", b"1"]
        assert (await w.peer.upload("sum", b"0", [b"1", b"2"])).data == b"3"
        doubled = w.peer.channel("double", b"0", [b"4"])
        assert [item.data async for item in doubled] == [b"8"]
        await w.reached.wait()
        assert b"logged" in w.seen


async def test_who_is_canceled_while_waiting_leaves_no_trace() -> None:
    async with world(server=Settings(lease=IntervalLease(1, 0.1)), client=Settings(lease=True)) as w:
        await w.peer.call("echo")
        waiting = [asyncio.ensure_future(w.peer.call("echo", b"%d" % number)) for number in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        assert (await waiting[1]).data == b"1"
        assert (await waiting[2]).data == b"2"
        assert waiting[0].cancelled()


async def test_who_waits_learns_that_the_connection_is_closed() -> None:
    async with world(server=HOURLY, client=Settings(lease=True)) as w:
        await w.peer.call("echo")
        await w.peer.call("echo")
        waiting = asyncio.ensure_future(w.peer.call("echo"))
        await asyncio.sleep(0)
        await w.peer.close(0)
        with pytest.raises((SessionClosed, penstock.SessionError)):
            await waiting
