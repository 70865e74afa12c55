from __future__ import annotations

import pytest

from penstock.testing.ends import PATIENCE
from penstock.testing.requester import RawRequester
from penstock.testing.results import Broken
from tests.testing.serving import FAMILY, counting


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


async def test_a_stream_that_ends_early_has_too_few() -> None:
    async with counting() as url, RawRequester(url, PATIENCE) as raw:
        with pytest.raises(Broken, match="ended after 2"):
            await raw.opened("tests.count", b"2", 5).has(3)
