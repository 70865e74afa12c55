"""A balancer whose nodes grant leases, or fail."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import weirpool
from tests.aio.serving import alone
from tests.aio.test_balance import all_up
from tests.waiting import until
from weirpool import ApplicationError, IntervalLease, LeaseMissing, Payload, Service, Settings
from weirpool.leases import LeasePolicy

pytestmark = pytest.mark.usefixtures("tidy")

SMALL = IntervalLease(3, 3600.0)
LARGE = IntervalLease(100_000, 3600.0)
STRATEGIES = pytest.mark.parametrize("strategy", ["round-robin", "least-loaded"])
TIMEOUTS = pytest.mark.parametrize("lease_timeout", [0.0, 5.0])


@asynccontextmanager
async def leased(
    *policies: LeasePolicy | None, lease_timeout: float = 5.0, strategy: str = "round-robin"
) -> AsyncIterator[tuple[weirpool.Balancer, Counter[int]]]:
    """A balancer over a server for each policy, whose first leases have arrived; and the requests of each server."""
    asked: Counter[int] = Counter()
    servers = []
    for number, policy in enumerate(policies):
        service = Service()

        @service.call("number")
        async def tell(request: Payload, number: int = number) -> bytes:
            asked[number] += 1
            await asyncio.sleep(0)
            return b"%d" % number

        @service.call("broken")
        async def fail(request: Payload, number: int = number) -> bytes:
            asked[number] += 1
            if number == 0:
                raise ApplicationError(0x301, "broken")
            await asyncio.sleep(0.001)
            return b""

        @service.stream("numbers")
        def tell_all(request: Payload, number: int = number) -> list[bytes]:
            asked[number] += 1
            return [b"%d" % number] * 3

        settings = Settings() if policy is None else Settings(lease=policy)
        servers.append(await weirpool.serve(service, f"rsocket+memory://leased{number}", settings=settings))
    settings = Settings(lease=True, lease_timeout=lease_timeout)
    urls = [server.urls[0] for server in servers]
    try:
        async with weirpool.balance(urls, settings=settings, strategy=strategy) as balancer:
            await all_up(balancer)
            nodes = balancer._balanced.nodes.values()
            await until(lambda: all(node.leased for node in nodes))
            yield balancer, asked
    finally:
        for server in servers:
            await server.close(0)
    await alone()


@STRATEGIES
@TIMEOUTS
async def test_large_node_takes_what_the_small_one_has_no_lease_for(strategy: str, lease_timeout: float) -> None:
    # The small node's next lease comes after an hour, so a call that waits for it fails.
    async with leased(SMALL, LARGE, strategy=strategy, lease_timeout=lease_timeout) as (balancer, asked):

        async def ask() -> None:
            for _ in range(20):
                await balancer.call("number")

        await asyncio.gather(*(ask() for _ in range(5)))
        assert asked.total() == 100
        assert asked[0] <= 3


@STRATEGIES
@TIMEOUTS
async def test_streams_are_opened_where_there_is_a_lease(strategy: str, lease_timeout: float) -> None:
    async with leased(SMALL, LARGE, strategy=strategy, lease_timeout=lease_timeout) as (balancer, asked):
        for _ in range(10):
            assert len([item async for item in balancer.stream("numbers")]) == 3
        assert asked[0] <= 3
        assert asked.total() == 10


async def test_call_without_any_lease_waits_for_the_first_node_that_grants_one() -> None:
    async with leased(SMALL, IntervalLease(3, 0.05)) as (balancer, asked):
        await asyncio.gather(*(balancer.call("number") for _ in range(12)))
        assert asked == {0: 3, 1: 9}


@pytest.mark.parametrize("lease_timeout", [0.0, 0.02])
async def test_call_fails_when_no_node_grants_a_lease_in_time(lease_timeout: float) -> None:
    async with leased(SMALL, SMALL, lease_timeout=lease_timeout) as (balancer, asked):
        for _ in range(6):
            await balancer.call("number")
        with pytest.raises(LeaseMissing, match="none of 2 nodes"):
            await balancer.call("number")
        with pytest.raises(LeaseMissing, match="none of 2 nodes"):
            await anext(aiter(balancer.stream("numbers")))
        assert asked == {0: 3, 1: 3}


async def test_node_that_fails_fast_gets_few_requests() -> None:
    async with leased(LARGE, LARGE, strategy="least-loaded") as (balancer, asked):
        failed = 0
        for _ in range(100):
            try:
                await balancer.call("broken")
            except ApplicationError:
                failed += 1
        assert failed == asked[0] < 20
        assert asked.total() == 100
