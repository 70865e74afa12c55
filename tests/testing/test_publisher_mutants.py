"""Wrong publishers, each of which the kit must find: a fault that no check detects is a blind spot of the kit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.testing import PUBLISHER_RULES, check_publisher
from penstock.testing.ends import PATIENCE
from tests.testing.faulty import faulty
from tests.testing.serving import FAMILY

TICKER_1 = {"interval": 0.001, "burst": 1}
TICKER_5 = {"interval": 0.005, "burst": 1}
TICKER_50 = {"interval": 0.05, "burst": 1}
BURSTS = {"interval": 0.001, "burst": 20}
PAUSES = {"interval": 0.03, "burst": 20}

IGNORES: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("ignores cancel", TICKER_1, ("1.8", "3.6", "3.12")),
    ("ignores cancel", TICKER_5, ("1.8", "3.6", "3.12")),
    ("ignores cancel", TICKER_50, ("1.8", "3.6", "3.12")),
    ("ignores cancel", BURSTS, ("1.8", "3.6", "3.12")),
    ("ignores cancel", PAUSES, ("1.8", "3.6", "3.12")),
]
OTHERS: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("late item", TICKER_1, ("1.7",)),
    ("late item", TICKER_5, ("1.6",)),
    ("stalls", TICKER_1, ("3.17",)),
    ("stalls", BURSTS, ("3.17",)),
    ("1.5 empty", TICKER_1, ("1.5",)),
]


@pytest.mark.parametrize(("fault", "pace", "rules"), IGNORES + OTHERS)
@pytest.mark.parametrize("protocol", FAMILY)
async def test_wrong_publisher_is_found(
    protocol: str, fault: str, pace: dict[str, Any], rules: tuple[str, ...]
) -> None:
    async with faulty(protocol, fault, **pace) as published:
        results = await check_publisher(replace(published, patience=1.0), rules)
        assert {each.rule.number: each.outcome for each in results} == dict.fromkeys(rules, "broken"), results


@pytest.mark.parametrize("pace", [TICKER_1, TICKER_5, TICKER_50, BURSTS, PAUSES])
@pytest.mark.parametrize("protocol", ["rsocket", "reactive-streams"])
async def test_correct_publisher_of_the_same_pace_is_kept(protocol: str, pace: dict[str, Any]) -> None:
    rules = ("1.7", "1.8", "3.6", "3.7", "3.12", "3.17")
    async with faulty(protocol, **pace) as published:
        results = await check_publisher(replace(published, patience=PATIENCE), rules)
        assert {each.rule.number: each.outcome for each in results} == dict.fromkeys(rules, "kept"), results


async def test_publisher_too_slow_for_the_patience_is_skipped() -> None:
    async with faulty("rsocket", "ignores cancel", **TICKER_50) as published:
        [result] = await check_publisher(replace(published, patience=0.1), ["3.12"])
    assert result.outcome == "skipped"
    assert "set a patience of more than that (it is 0.1 s)" in result.why


def test_more_than_twenty_three_wrong_publishers_are_found() -> None:
    # Those that break a single rule are in test_publisher.py.
    assert len(PUBLISHER_RULES) + len(IGNORES + OTHERS) >= 23
