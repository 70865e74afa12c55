from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import weirpool
from tests.aio.serving import alone
from tests.aio.test_balance import AT_ONCE, all_up, cluster, numbers, states
from tests.waiting import turns, until
from weirpool import (
    ApplicationError,
    ConnectError,
    LocalError,
    Payload,
    Rejected,
    Service,
    SessionClosed,
    UrlError,
)

pytestmark = pytest.mark.usefixtures("tidy")


# Nodes that reject.


async def test_node_rests_after_too_many_rejections() -> None:
    policy = replace(AT_ONCE, first_delay=1000.0, longest_delay=1000.0)
    async with cluster(2) as it, weirpool.balance(it.urls, reconnect=policy, rejections=2) as balancer:
        await all_up(balancer)
        it.full = {0}
        refused = 0
        for _ in range(20):
            try:
                await balancer.call("number")
            except Rejected:
                refused += 1
        assert refused == 2
        assert it.asked == {0: 2, 1: 18}
        assert sorted(states(balancer)) == ["resting", "up"]
        # A resting node is used if there is no other.
        await it.kill(1)
        await until(lambda: "away" in states(balancer))
        it.full = set()
        assert await numbers(balancer, 1) == [0]


async def test_rested_node_gets_requests_again() -> None:
    async with cluster(2) as it, weirpool.balance(it.urls, reconnect=AT_ONCE, rejections=1) as balancer:
        await all_up(balancer)
        it.full = {0}
        for _ in range(2):
            with pytest.raises(Rejected):
                while True:
                    await balancer.call("number")
            assert states(balancer) == ["resting", "up"]
            await all_up(balancer)
        it.full = set()
        assert sorted(await numbers(balancer, 2)) == [0, 1]


async def test_rejected_call_is_retried_on_another_node_when_enabled() -> None:
    async with cluster(3) as it, weirpool.balance(it.urls, retry_rejected=True) as balancer:
        await all_up(balancer)
        it.full = {0, 1}
        assert await numbers(balancer, 3) == [2, 2, 2]
        it.full = {0, 1, 2}
        it.asked.clear()
        with pytest.raises(Rejected, match="full"):
            await balancer.call("number")
        assert it.asked == {0: 1, 1: 1, 2: 1}


@pytest.mark.parametrize("protocol", ["rsocket", "river", "reactive-streams"])
async def test_what_handlers_reject_is_retried_over_every_protocol(protocol: str) -> None:
    asked: list[str] = []

    def service(name: str) -> Service:
        made = Service()

        @made.call("test.full")
        async def full(request: Payload) -> bytes:
            asked.append(name)
            if len(asked) == 1:
                raise Rejected(message="full today")
            return b'"served"'

        @made.stream("test.items")
        async def items(request: Payload) -> AsyncIterator[bytes]:
            raise Rejected(message="full today")
            yield b""

        return made

    urls = [f"{protocol}+memory://rejects-{name}" for name in "ab"]
    async with weirpool.serve(service("a"), urls[0]), weirpool.serve(service("b"), urls[1]):
        async with weirpool.balance(urls, retry_rejected=True) as balancer:
            await all_up(balancer)
            assert (await balancer.call("test.full")).data == b'"served"'
            assert sorted(asked) == ["a", "b"]
            with pytest.raises(Rejected, match="full today"):
                await anext(aiter(balancer.stream("test.items")))
            with pytest.raises(Rejected, match="handler is named"):
                await balancer.call("test.nothing")


async def test_failed_call_is_not_retried() -> None:
    async with cluster(2) as it, weirpool.balance(it.urls, retry_rejected=True, rejections=1) as balancer:
        await all_up(balancer)
        with pytest.raises(ApplicationError, match="boom"):
            await balancer.call("number", b"fail")
        assert it.asked.total() == 1
        assert states(balancer) == ["up", "up"]


async def test_unknown_route_does_not_make_nodes_unavailable() -> None:
    async with cluster(2) as it, weirpool.balance(it.urls, rejections=1) as balancer:
        await all_up(balancer)
        for _ in range(4):
            with pytest.raises(Rejected, match="nobody"):
                await balancer.call("nobody")
        assert states(balancer) == ["resting", "resting"]
        assert sorted(await numbers(balancer, 2)) == [0, 1]


# Nodes that are added and removed.


async def test_added_node_gets_requests() -> None:
    async with cluster(2) as it, weirpool.balance(it.urls[:1]) as balancer:
        balancer.add(it.urls[1])
        await all_up(balancer)
        assert sorted(await numbers(balancer, 2)) == [0, 1]
        with pytest.raises(LocalError, match="already a node"):
            balancer.add(it.urls[1])


async def test_removed_node_finishes_its_requests_and_gets_no_more() -> None:
    async with cluster(2) as it, weirpool.balance(it.urls) as balancer:
        await all_up(balancer)
        async with balancer.stream("count", b"100", credit=4) as items:
            taken = [await anext(aiter(items))]
            busy = [node.outstanding for node in balancer.nodes].index(1)
            removing = asyncio.create_task(balancer.remove(it.urls[busy]))
            await until(lambda: "leaving" in states(balancer))
            assert set(await numbers(balancer, 3)) == {1 - busy}
            taken += [item async for item in items]
            assert len(taken) == 100
        await removing
        assert [node.url for node in balancer.nodes] == [it.urls[1 - busy]]
        with pytest.raises(LocalError, match="is not a node; the nodes are: rsocket"):
            await balancer.remove(it.urls[busy])
        await balancer.remove(it.urls[1 - busy])
        with pytest.raises(ConnectError, match="add"):
            await balancer.call("number")


# Beginning and end.


async def test_balancer_opens_with_one_connected_node() -> None:
    async with cluster(2) as it:
        await it.kill(0)
        async with weirpool.balance(it.urls, reconnect=AT_ONCE) as balancer:
            assert await numbers(balancer, 2) == [1, 1]
            await it.start(0)
            await all_up(balancer)


async def test_balancer_does_not_open_without_a_node() -> None:
    with pytest.raises(ConnectError, match=r"none of 2 nodes can be reached: rsocket.*a: .*; rsocket.*b: "):
        async with weirpool.balance(["rsocket+memory://a", "rsocket+memory://b"]):
            pass
    await alone()


async def test_first_connection_is_awaited_with_initial() -> None:
    async with cluster(1) as it:
        await it.kill(0)
        opening = asyncio.ensure_future(
            weirpool.balance(it.urls, reconnect=replace(AT_ONCE, initial=True)).__aenter__()
        )
        await turns(10)
        assert not opening.done()
        await it.start(0)
        balancer = await opening
        assert await numbers(balancer, 1) == [0]
        await balancer.close()


async def test_opening_can_be_canceled() -> None:
    policy = replace(AT_ONCE, initial=True)
    opening = asyncio.ensure_future(weirpool.balance(["rsocket+memory://a"], reconnect=policy).__aenter__())
    await turns(5)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await alone()


async def test_close_stops_retries_and_fails_waiting_calls() -> None:
    async with cluster(2) as it:
        balancer = await weirpool.balance(it.urls, reconnect=AT_ONCE)
        await all_up(balancer)
        await it.stop()
        await until(lambda: states(balancer) == ["away", "away"])
        call = asyncio.create_task(balancer.call("number"))
        await turns(5)
        await balancer.close()
        with pytest.raises(SessionClosed, match="closed the balancer"):
            await call
        with pytest.raises(SessionClosed):
            balancer.add("rsocket+memory://other")
        assert balancer.closed
        await alone()


async def test_a_balancer_must_be_opened() -> None:
    with pytest.raises(LocalError, match="not open"):
        await weirpool.balance(["rsocket+memory://a"]).call("number")


@pytest.mark.parametrize(
    ("urls", "options", "error", "part"),
    [
        ([], {}, LocalError, "at least one URL"),
        (["rsocket+memory://a", "rsocket+memory://a"], {}, LocalError, "more than once"),
        (["rsockt+memory://a"], {}, UrlError, "did you mean"),
        (["rsocket+memory://a"], {"strategy": "best"}, LocalError, "unknown strategy 'best'"),
        (["rsocket+memory://a"], {"rejections": 0}, LocalError, "rejections is 0"),
        (["rsocket+memory://a"], {"half_life": 0}, LocalError, "half_life is 0"),
    ],
)
def test_wrong_arguments_raise_at_once(
    urls: list[str], options: dict[str, Any], error: type[Exception], part: str
) -> None:
    with pytest.raises(error, match=part):
        weirpool.balance(urls, **options)


def test_connection_is_replaced_if_no_node_uses_it_any_more() -> None:
    balanced: Any = weirpool.balance(["rsocket+memory://a", "rsocket+memory://b"])._balanced
    mine, other = (SimpleNamespace(exchanges=object()) for _ in range(2))
    balanced.nodes = {
        str(driver): SimpleNamespace(connector=SimpleNamespace(current=driver)) for driver in (None, mine, other)
    }
    assert not balanced.replaced(mine.exchanges)
    assert balanced.replaced(object())
    balanced._closed = True
    assert not balanced.replaced(object())
