from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.testing.published import silence_of
from penstock.testing.results import Skipped
from tests.testing.faulty import SETTLE, faulty


async def test_quick_stream_must_be_silent_for_the_least_time() -> None:
    async with faulty("rsocket") as published:
        assert await silence_of(replace(published, settle=0.2), published.finite) == 0.2


async def test_slow_stream_must_be_silent_for_three_of_its_gaps() -> None:
    async with faulty("rsocket", interval=0.02, burst=1) as published:
        assert await silence_of(replace(published, patience=5.0), published.endless) >= 3 * 0.02 > SETTLE


async def test_stream_that_is_too_slow_is_skipped() -> None:
    async with faulty("rsocket", interval=0.05, burst=1) as published:
        with pytest.raises(Skipped, match="set a patience of more than that"):
            await silence_of(replace(published, patience=0.1), published.endless)


async def test_missing_stream_is_skipped() -> None:
    async with faulty("rsocket") as published:
        with pytest.raises(Skipped, match="names no stream"):
            await silence_of(published, None)
