from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import cast

import pytest

from tests.testing.faulty import faulty
from tests.testing.serving import FAMILY, counting
from weirpool import Payload
from weirpool.testing.ends import PATIENCE
from weirpool.testing.requester import RawRequester
from weirpool.testing.results import Broken, Skipped


@pytest.mark.parametrize("protocol", FAMILY)
async def test_canceled_stream_is_still_observed(protocol: str) -> None:
    async with counting(protocol) as url, RawRequester(url, PATIENCE) as raw:
        stream = raw.opened("tests.count", b"3", 10)
        # Not written: the stream is closed for the sender, but not for the server.
        assert stream.cancel() != []
        await stream.ends()
        assert [item.data for item in stream.items] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("protocol", FAMILY)
async def test_a_fence_is_a_round_trip(protocol: str) -> None:
    async with counting(protocol) as url, RawRequester(url, PATIENCE) as raw:
        stream = raw.opened("tests.count", b"5", 2)
        await raw.fence()
        assert len(stream.items) == 2


async def test_gap_of_many_items_is_not_a_single_stall() -> None:
    async with counting() as url, RawRequester(url, PATIENCE) as raw:
        stream = raw.opened("tests.count", b"0", 1)
        # Differences of whole numbers are exact, at any time of the machine's clock.
        now = stream.last_at = 0.0
        raw.loop = cast(asyncio.AbstractEventLoop, SimpleNamespace(time=lambda: now))
        for gap, longest in [(5.0, 5.0), (1.0, 5.0), *[(2.0, 5.0)] * 5, (1.0, 2.0), (4.0, 4.0), (6.0, 5.0)]:
            now += gap
            stream.arrived([Payload(b"x")])
            assert stream.gap == longest
        raw.loop = asyncio.get_running_loop()


async def test_stream_that_is_too_slow_is_skipped_and_not_broken() -> None:
    async with faulty("rsocket", interval=0.05, burst=1) as published:
        async with RawRequester(published.url, 0.5) as raw:
            stream = raw.opened("faulty.endless", b"", 1000)
            with pytest.raises(Skipped, match=r"only [0-9]+ of 1000 have arrived within 0.5 s; set a greater patience"):
                await stream.has(1000)


async def test_stream_that_stalls_is_broken() -> None:
    async with counting() as url, RawRequester(url, 0.1) as raw:
        stream = raw.opened("tests.count", b"5", 2)
        with pytest.raises(Broken, match=r"has not sent 3 items that were requested within 0.1 s"):
            await stream.has(3)


async def test_a_stream_that_ends_early_has_too_few() -> None:
    async with counting() as url, RawRequester(url, PATIENCE) as raw:
        with pytest.raises(Broken, match="ended after 2"):
            await raw.opened("tests.count", b"2", 5).has(3)
