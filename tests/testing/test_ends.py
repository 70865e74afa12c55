from __future__ import annotations

import pytest

from penstock.testing.ends import PATIENCE
from penstock.testing.requester import RawRequester
from penstock.testing.results import Broken
from tests.testing.serving import counting


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
        with pytest.raises(Broken, match="has not sent 3 items"):
            await stream.has(3)
