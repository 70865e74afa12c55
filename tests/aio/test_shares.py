"""Shares of clients: what one of them takes, and what is left for others."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.waiting import turns
from weirpool import Connection
from weirpool.aio.shares import Shares, client_of
from weirpool.errors import Rejected


def test_clients_are_those_that_limits_count() -> None:
    one, other = Connection("rsocket", "192.0.2.1", False), Connection("rsocket", "192.0.2.1", False)
    assert client_of(one) == client_of(other) == "192.0.2.1"
    one.principal = "spark"
    assert client_of(one) == "principal spark" != client_of(other)
    # Without an address, as in memory, each connection is a client.
    one, other = Connection("rsocket", "", False), Connection("rsocket", "", False)
    assert client_of(one) is one and client_of(other) is other


def test_a_client_takes_no_more_than_it_leaves() -> None:
    pool = Shares("places", 16)
    taken = {client: sum(pool.take(client) for _ in range(20)) for client in "abcdef"}
    assert taken == {"a": 8, "b": 4, "c": 2, "d": 1, "e": 1, "f": 0}
    assert (pool.used, pool.peak) == (16, 16)


def test_what_is_given_back_can_be_taken() -> None:
    pool = Shares("places", 2)
    assert pool.take("a") and not pool.take("a") and pool.take("b") and not pool.take("c")
    pool.give_back("a")
    assert (pool.own("a"), pool.own("b"), pool.used) == (0, 1, 1)
    assert pool.take("c") and pool.used == 2
    pool.give_back("b")
    pool.give_back("c")
    assert pool.used == 0 and pool.peak == 2


def test_sizes_count() -> None:
    pool = Shares("bytes", 100)
    assert pool.take("a", 50) and not pool.take("a", 1) and pool.take("b", 25) and not pool.take("b", 1)
    # A client without anything may have all the rest.
    assert not pool.take("c", 26) and pool.take("c", 25)
    assert (pool.fitting(7), pool.fitting(1_000), Shares("one", 1).fitting(9)) == (7, 50, 1)


def test_a_share_is_given_back_when_its_block_ends() -> None:
    pool = Shares("names held here", 4)
    with pool.taken("a"), pool.taken("a"):
        with pytest.raises(Rejected, match="has 2 of 4 names held here, and all others have 0") as refused:
            with pool.taken("a"):
                pass
        assert refused.value.temporary
        with pytest.raises(RuntimeError), pool.taken("b"):
            raise RuntimeError
    assert pool.used == 0


async def test_requests_of_one_client_wait_for_each_other_only() -> None:
    pool = Shares("threads", 4)
    order: list[str] = []
    gate = asyncio.Event()

    async def work(client: str) -> None:
        async with pool.turn(client):
            order.append(client)
            await gate.wait()

    greedy = [asyncio.create_task(work("greedy")) for _ in range(100)]
    await turns(5)
    assert order == ["greedy"] * 2 and pool.wanted
    honest = asyncio.create_task(work("honest"))
    await turns(5)
    assert order == ["greedy", "greedy", "honest"]
    gate.set()
    await asyncio.gather(*greedy, honest)
    assert pool.used == 0 and not pool.wanted and pool.peak <= 4


async def test_clients_that_wait_are_served_in_turn() -> None:
    pool = Shares("threads", 1)
    order: list[str] = []

    async def work(client: str) -> None:
        async with pool.turn(client):
            order.append(client)
            await asyncio.sleep(0)

    await asyncio.gather(*(work(client) for client in "aaaabbc"))
    assert order == ["a", "b", "c", "a", "b", "a", "a"] or order[:4] == ["a", "a", "b", "c"]
    assert sorted(order) == sorted("aaaabbc") and pool.used == 0


async def test_a_large_request_is_not_passed_by_small_ones() -> None:
    pool = Shares("bytes", 100)
    for client in "abcd":
        assert pool.take(client, 20)
    large = asyncio.create_task(pool.wait("large", 50))
    await turns(5)
    # Others would always leave less than it needs.
    assert not pool.take("e", 1)
    later = asyncio.create_task(pool.wait("e", 1))
    pool.give_back("a", 20)
    await turns(5)
    assert not large.done() and not later.done()
    pool.give_back("b", 20)
    await turns(5)
    assert large.done() and later.done() and pool.used == 91


async def test_requests_that_are_canceled_leave_nothing() -> None:
    pool = Shares("places", 1)
    assert pool.take("a")
    waiting = [asyncio.create_task(pool.wait(client)) for client in "bbc"]
    await turns(5)
    waiting[0].cancel()
    await turns(5)
    # One that has its place already, and is canceled before it runs.
    pool.give_back("a")
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert (pool.used, pool.wanted) == (0, False)
    assert pool.take("d")


async def test_any_order_keeps_the_account() -> None:
    chance = random.Random(7)
    pool = Shares("bytes", 64)

    async def work(client: int) -> None:
        size = pool.fitting(chance.choice((1, 5, 31, 200)))
        try:
            async with asyncio.timeout(None if chance.random() < 0.8 else 0):
                await pool.wait(client, size)
        except TimeoutError:
            return
        await asyncio.sleep(0)
        assert 0 < pool.own(client) and pool.used <= 64
        pool.give_back(client, size)

    await asyncio.gather(*(work(chance.randrange(5)) for _ in range(2_000)))
    assert (pool.used, pool.wanted) == (0, False) and pool.peak <= 64
