from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.testing.faulty import SETTLE, faulty
from tests.testing.strange import STRANGE
from weirpool import ConnectError
from weirpool.protocols import PROTOCOLS
from weirpool.testing.published import misdescribed, silence_of
from weirpool.testing.results import Skipped


async def test_quick_stream_must_be_silent_for_the_least_time() -> None:
    async with faulty("rsocket") as published:
        assert await silence_of(replace(published, settle=0.2), published.finite) == 0.2


async def test_slow_stream_must_be_silent_for_three_of_its_gaps() -> None:
    async with faulty("rsocket", interval=0.02, burst=1) as published:
        assert await silence_of(replace(published, patience=5.0), published.endless) >= 3 * 0.02 > SETTLE


async def test_stream_that_is_too_slow_is_skipped() -> None:
    # A machine that stops for less than the interval does not make it look quick.
    async with faulty("rsocket", interval=0.4, burst=1) as published:
        with pytest.raises(Skipped, match="set a patience of more than that"):
            await silence_of(replace(published, patience=0.8), published.endless)


async def test_missing_stream_is_skipped() -> None:
    async with faulty("rsocket") as published:
        with pytest.raises(Skipped, match="it needs an endless stream, and none is named"):
            replace(published, endless=None).named("endless")
        assert published.named("failing") == published.failing


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_server_is_described_correctly(protocol: str) -> None:
    async with faulty(protocol, interval=0.02) as published:
        assert await misdescribed(replace(published, patience=5.0)) == ""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"finite": ("faulty.nothing", b"")}, "the finite stream 'faulty.nothing' failed before its first item: "),
        ({"count": 7}, "the finite stream 'faulty.finite' has 6 items, not 7"),
        ({"failing": ("faulty.nothing", b"")}, "the failing stream 'faulty.nothing' failed before its first item: "),
        ({"endless": ("faulty.finite", b"")}, "the endless stream 'faulty.finite' ended after 6 items"),
        ({"empty": ("faulty.finite", b"")}, "the empty stream 'faulty.finite' has 6 items, not 0"),
    ],
)
async def test_wrong_description_is_told(protocol: str, wrong: dict[str, Any], fault: str) -> None:
    async with faulty(protocol) as published:
        assert (await misdescribed(replace(published, patience=5.0, **wrong))).startswith(fault)


async def test_stream_that_fails_at_once_is_a_failing_one() -> None:
    async with faulty("rsocket", make=STRANGE["empty fails"]) as published:
        assert await misdescribed(replace(published, failing=published.empty, empty=None)) == ""


@pytest.mark.parametrize("fault", ["1.1", "1.2", "1.3", "1.5", "1.7", "1.9", "late item"])
async def test_wrong_publisher_is_not_a_wrong_description(fault: str) -> None:
    async with faulty("rsocket", fault) as published:
        assert await misdescribed(replace(published, patience=0.2)) == ""


async def test_server_that_answers_nothing_cannot_be_checked() -> None:
    async with faulty("rsocket", make=STRANGE["answers no refusal"]) as published:
        with pytest.raises(ConnectError, match=r"memory://faulty answers no request; does it speak rsocket there\?"):
            await misdescribed(replace(published, patience=0.05))
