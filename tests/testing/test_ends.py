from __future__ import annotations

import pytest

from tests.testing.serving import counting
from weirpool.testing.ends import PATIENCE
from weirpool.testing.requester import RawRequester
from weirpool.testing.results import Broken


async def test_one_stray_frame_too_many_ends_it() -> None:
    async with counting() as url, RawRequester(url, PATIENCE, strays=2) as raw:
        await raw.hidden_fence()
        assert not raw.open
        with pytest.raises(Broken, match="nothing came: the connection ended"):
            await raw.until(lambda: False, "nothing came")


async def test_patience_ends() -> None:
    async with counting() as url, RawRequester(url, 0.01) as raw:
        stream = raw.opened("tests.count", b"5", 1)
        with pytest.raises(Broken, match="has not ended its stream"):
            await stream.ends()
        # Items that have just arrived on a slow machine would be waited for.
        stream.last_at -= 3_600
        with pytest.raises(Broken, match="has not sent 3 items"):
            await stream.has(3)


async def test_missing_end_names_the_items_that_arrived() -> None:
    async with counting() as url, RawRequester(url, 0.01) as raw:
        stream = raw.opened("tests.count", b"5", 2)
        await stream.has(2)
        with pytest.raises(Broken, match="after 2 items the publisher has not ended its stream within"):
            await stream.ends()


async def test_passing_time_ends_early_with_its_condition_or_the_connection() -> None:
    async with counting() as url, RawRequester(url, PATIENCE) as raw:
        stream = raw.opened("tests.count", b"5", 1)
        await raw.passes(60, lambda: len(stream.items) == 1)
        raw.abort()
        await raw.passes(60)
        assert not raw.open
