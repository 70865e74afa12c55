from __future__ import annotations

import pytest

import weirpool
from tests.testing.serving import FAMILY
from tests.waiting import turns
from weirpool.protocols import PROTOCOLS
from weirpool.testing import RULES, SUBSCRIBER_RULES, Subscribing, check_subscriber
from weirpool.testing.ends import PATIENCE
from weirpool.testing.requester import RawRequester

PROMPT = 0.05
"""Seconds to wait for events that never happen."""
TURNS = 5
"""Turns of the loop after which output has arrived over a link in this loop."""


async def consume(url: str, take: int | None) -> list[bytes]:
    """Receive items as a normal user does."""
    taken: list[bytes] = []
    async with weirpool.connect(url) as peer, peer.stream("tests.numbers") as items:
        async for item in items:
            taken.append(item.data)
            if len(taken) == take:
                break
    return taken


async def asks_once(url: str, take: int | None) -> list[bytes]:
    async with weirpool.connect(url) as peer, peer.stream("tests.numbers", credit=4, manual=True) as items:
        return [item.data async for item in items]


async def asks_after_the_end(url: str, take: int | None) -> list[bytes]:
    async with RawRequester(url, PATIENCE) as raw:
        stream = raw.opened("tests.numbers", b"", 4)
        more = stream.request(1)
        await stream.ends()
        raw.write(more)
        await turns(TURNS)
    return [item.data for item in stream.items]


async def cancels_after_the_end(url: str, take: int | None) -> list[bytes]:
    async with RawRequester(url, PATIENCE) as raw:
        stream = raw.opened("tests.numbers", b"", 4)
        cancel = stream.cancel()
        await stream.ends()
        raw.write(cancel)
        await turns(TURNS)
    return [item.data for item in stream.items]


async def leaves_without_a_word(url: str, take: int | None) -> list[bytes]:
    async with RawRequester(url, PATIENCE) as raw:
        stream = raw.opened("tests.numbers", b"", 4)
        await stream.has(1)
    return [item.data for item in stream.items]


async def minds_late_items(url: str, take: int | None) -> list[bytes]:
    async with RawRequester(url, PATIENCE) as raw:
        stream = raw.opened("tests.numbers", b"", 4)
        await stream.has(1)
        stream.leave()
        await stream.has(4)
        raise AssertionError("an item after the cancel")


async def minds_an_empty_stream(url: str, take: int | None) -> list[bytes]:
    taken = await consume(url, take)
    if not taken:
        raise AssertionError("no item")
    return taken


async def swallows_errors(url: str, take: int | None) -> list[bytes]:
    try:
        return await consume(url, take)
    except weirpool.WeirpoolError:
        return []


async def subscribes_twice(url: str, take: int | None) -> list[bytes]:
    async with weirpool.connect(url) as peer, peer.stream("tests.numbers") as items, peer.stream("tests.numbers"):
        return [item.data async for item in items]


async def drops_empty_items(url: str, take: int | None) -> list[bytes]:
    # River's items are JSON, where null stands for an empty one.
    return [item for item in await consume(url, take) if item not in (b"", b"null")]


BROKEN = [
    ("2.1", asks_once),
    ("2.3", asks_after_the_end),
    ("2.3", cancels_after_the_end),
    ("2.4", asks_after_the_end),
    ("2.6", leaves_without_a_word),
    ("2.8", minds_late_items),
    ("2.9", minds_an_empty_stream),
    ("2.10", swallows_errors),
    ("2.12", subscribes_twice),
    ("2.13", drops_empty_items),
]


@pytest.mark.parametrize("rule", SUBSCRIBER_RULES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_our_subscribers_keep_every_rule(protocol: str, rule: str) -> None:
    [result] = await check_subscriber(Subscribing(consume=consume, url=f"{protocol}+memory://rules"), [rule])
    skipped = rule == "2.5" and protocol != "reactive-streams"
    assert result.outcome == ("skipped" if skipped else "kept"), str(result)


class Deaf(RawRequester):
    """Ignores what it has received before."""

    def received(self, data: bytes) -> None:
        if data not in self.known:
            self.known.append(data)
            super().received(data)

    known: list[bytes]


async def takes_a_second_subscription(url: str, take: int | None) -> list[bytes]:
    deaf = Deaf(url, PATIENCE)
    deaf.known = []
    async with deaf as raw:
        stream = raw.opened("tests.numbers", b"", 4)
        await stream.ends()
    return []


async def test_subscriber_that_takes_a_second_subscription_is_caught() -> None:
    url = "reactive-streams+memory://rules"
    subscribing = Subscribing(consume=takes_a_second_subscription, url=url, patience=PROMPT)
    [result] = await check_subscriber(subscribing, ["2.5"])
    assert (result.outcome, result.why) == ("broken", "the subscriber accepts a second subscription")


async def test_they_do_so_over_a_network() -> None:
    results = await check_subscriber(Subscribing(consume=consume, url="rsocket+tcp://127.0.0.1:0"))
    assert [each.rule.number for each in results if each.outcome != "kept"] == ["2.5"]
    assert tuple(each.rule.number for each in results) == SUBSCRIBER_RULES


@pytest.mark.parametrize(
    ("protocol", "rule", "broken"),
    [
        *((protocol, rule, broken) for protocol in FAMILY for rule, broken in BROKEN),
        # River's subscribers have no demand.
        *(("river", rule, broken) for rule, broken in BROKEN if rule not in ("2.1", "2.3", "2.4")),
    ],
)
async def test_a_subscriber_that_breaks_a_rule_is_caught(protocol: str, rule: str, broken: object) -> None:
    patience = PROMPT if rule == "2.1" else PATIENCE
    subscribing = Subscribing(consume=broken, url=f"{protocol}+memory://rules", patience=patience)  # type: ignore[arg-type]
    [result] = await check_subscriber(subscribing, [rule])
    assert result.outcome == "broken", str(result)


async def test_a_client_that_takes_one_by_one_has_nothing_late() -> None:
    async def one_by_one(url: str, take: int | None) -> list[bytes]:
        async with weirpool.connect(url) as peer, peer.stream("tests.numbers", credit=1) as items:
            return [item.data async for item in items]

    [result] = await check_subscriber(Subscribing(consume=one_by_one, url="rsocket+memory://rules"), ["2.8"])
    assert result.outcome == "skipped"


def test_every_subscriber_rule_detects_a_violation() -> None:
    mine = {number for number, rule in RULES.items() if rule.side == "subscriber"}
    assert set(SUBSCRIBER_RULES) == mine == {rule for rule, _ in BROKEN} | {"2.5"}
