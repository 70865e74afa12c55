"""Wrong publishers, each of which the kit must find: a fault that no check detects is a blind spot of the kit."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.testing.faulty import FaultyServer, faulty
from tests.testing.serving import FAMILY
from tests.testing.strange import STRANGE
from weirpool.protocols import PROTOCOLS
from weirpool.testing import PUBLISHER_RULES, check_publisher
from weirpool.testing.ends import PATIENCE

TICKER_1 = {"interval": 0.001, "burst": 1}
TICKER_5 = {"interval": 0.005, "burst": 1}
TICKER_50 = {"interval": 0.05, "burst": 1}
BURSTS = {"interval": 0.001, "burst": 20}
PAUSES = {"interval": 0.03, "burst": 20}
PACES = (TICKER_1, TICKER_5, TICKER_50, BURSTS, PAUSES)
QUIET = 0.1
"""Seconds of silence after which a stream has stopped: more than a busy machine stops a process."""


@dataclass(frozen=True)
class Wrong:
    """A wrong publisher.

    Attributes:
        fault: What `FaultyServer` or `STRANGE` calls its fault.
        rules: The rules that it breaks.
        why: A part of the reason for the first of them, over all protocols.
        pace: The pace of its endless stream.
        protocols: Those over which it breaks them.

    """

    fault: str
    rules: tuple[str, ...]
    why: str = ""
    pace: dict[str, Any] = field(default_factory=lambda: BURSTS)
    protocols: tuple[str, ...] = FAMILY

    def __str__(self) -> str:
        return f"{self.fault}, {self.pace['burst']} each {self.pace['interval'] * 1000:g} ms"


WITHOUT_DEMAND = ("1.2", "1.4", "1.8", "1.9", "3.12")
"""Rules that are also checked over River, which has no demand, and numbers its messages."""
ENGINES = ("rsocket", "reactive-streams")
"""The other protocols with demand share the engine of RSocket."""
WRONG = (
    *(Wrong(rule, (rule,), protocols=PROTOCOLS if rule in WITHOUT_DEMAND else FAMILY) for rule in PUBLISHER_RULES),
    *(Wrong("ignores cancel", ("1.8", "3.6", "3.12"), "items still arrive", pace) for pace in PACES),
    *(Wrong("ignores cancel", ("1.8", "3.12"), "items still arrive", pace, ("river",)) for pace in PACES),
    Wrong("late item", ("1.7",), "a frame arrived on a stream after its end", TICKER_1),
    Wrong("late item", ("1.6",), "request and cancel after the end were answered", TICKER_5),
    Wrong("stalls", ("3.17",), "the publisher has not", TICKER_1),
    Wrong("stalls", ("3.17",), "the publisher has not"),
    Wrong("1.5 empty", ("1.5",), "after 0 items the publisher has not ended its stream", TICKER_1, PROTOCOLS),
    Wrong("answers no refusal", ("1.9",), "has not ended its stream", BURSTS, (*ENGINES, "river")),
    Wrong("another loop", ("1.5",), "items arrived instead of 6", BURSTS, ENGINES),
    Wrong("cancels all", ("1.11",), "has not sent", BURSTS, ENGINES),
    Wrong("closes instead of failing", ("1.4",), "the connection ended", BURSTS, (*ENGINES, "river")),
    Wrong("empty fails", ("1.5",), "the empty stream failed", BURSTS, (*ENGINES, "river")),
    Wrong("ends twice", ("1.7",), "a frame arrived on a stream after its end", BURSTS, ENGINES),
    Wrong("item after error", ("1.7",), "a frame arrived on a stream after its end", BURSTS, ENGINES),
    Wrong("late onSubscribe", ("1.9",), "", BURSTS, ("reactive-streams",)),
    Wrong("no onSubscribe", ("1.9",), "", BURSTS, ("reactive-streams",)),
    Wrong("null item", ("1.3",), "the items or their order are different", BURSTS, ENGINES),
    Wrong("recurses", ("3.16",), "it ended after", BURSTS, ENGINES),
    Wrong("replaces demand", ("3.8",), "3 items that were requested", BURSTS, ENGINES),
    Wrong("two threads", ("1.3",), "the items or their order are different", BURSTS, ENGINES),
    Wrong("wraps demand", ("3.17",), "the publisher has not", BURSTS, ENGINES),
)


@pytest.mark.parametrize("wrong", WRONG, ids=str)
async def test_wrong_publisher_is_found(wrong: Wrong) -> None:
    # Most of this is waiting, so all protocols wait together.
    async with asyncio.TaskGroup() as together:
        for protocol in wrong.protocols:
            together.create_task(find(protocol, wrong), name=protocol)


async def find(protocol: str, wrong: Wrong) -> None:
    make = STRANGE.get(wrong.fault, FaultyServer)
    async with faulty(protocol, wrong.fault, make=make, place=f"memory://{protocol}", **wrong.pace) as published:
        # The others may have to be waited for. This one shows itself, on a busy machine after a while.
        patience = PATIENCE if wrong.fault == "ignores cancel" else 1.0
        results = await check_publisher(replace(published, patience=patience, settle=QUIET), wrong.rules)
        while patience < 4 * PATIENCE and any("set a patience of more" in each.why for each in results):
            # The machine stopped between two items, and the kit will not call that a stop of the publisher.
            patience *= 2
            results = await check_publisher(replace(published, patience=patience, settle=QUIET), wrong.rules)
        outcomes = {each.rule.number: each.outcome for each in results}
        assert outcomes == dict.fromkeys(wrong.rules, "broken"), (protocol, results)
        assert wrong.why in results[0].why, protocol


@pytest.mark.parametrize("pace", PACES)
async def test_correct_publisher_of_the_same_pace_is_kept(pace: dict[str, Any]) -> None:
    async with asyncio.TaskGroup() as together:
        for protocol in ("rsocket", "reactive-streams", "river"):
            together.create_task(keep(protocol, pace), name=protocol)


async def keep(protocol: str, pace: dict[str, Any]) -> None:
    rules = ("1.8", "3.12") if protocol == "river" else ("1.7", "1.8", "3.6", "3.7", "3.12", "3.17")
    async with faulty(protocol, place=f"memory://{protocol}", **pace) as published:
        results = await check_publisher(replace(published, patience=PATIENCE), rules)
        outcomes = {each.rule.number: each.outcome for each in results}
        assert outcomes == dict.fromkeys(rules, "kept"), (protocol, results)


async def test_publisher_too_slow_for_the_patience_is_skipped() -> None:
    async with faulty("rsocket", "ignores cancel", **TICKER_50) as published:
        [result] = await check_publisher(replace(published, patience=0.1), ["3.12"])
    assert result.outcome == "skipped"
    assert "set a patience of more than that (it is 0.1 s)" in result.why


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_each_protocol_has_wrong_publishers(protocol: str) -> None:
    found = [wrong for wrong in WRONG if protocol in wrong.protocols]
    assert any(wrong.fault == "ignores cancel" for wrong in found)
    assert len(found) >= (14 if protocol == "river" else 40 if protocol in ENGINES else 27)


def test_each_strange_publisher_is_used() -> None:
    assert STRANGE.keys() <= {wrong.fault for wrong in WRONG}


async def test_rules_that_a_protocol_does_not_show_are_skipped_not_kept() -> None:
    async with faulty("river") as published:
        results = await check_publisher(published)
    kept = {each.rule.number for each in results if each.outcome == "kept"}
    assert kept == {*WITHOUT_DEMAND, "1.5"}
    assert {each.outcome for each in results if each.rule.number not in kept} == {"skipped"}
