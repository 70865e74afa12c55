from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

import weirpool
from tests.aio.serving import alone, make_service
from tests.waiting import turns, until
from weirpool import (
    ApplicationError,
    Balancer,
    ConnectError,
    Payload,
    PeerClosed,
    Reconnect,
    Rejected,
    SessionError,
    Settings,
)
from weirpool.aio.strategies import Candidate

pytestmark = pytest.mark.usefixtures("tidy")

AT_ONCE = Reconnect(first_delay=0.0, longest_delay=0.0)
FAIL = replace(AT_ONCE, new_calls="fail")


class Clock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Cluster:
    """Servers that each return their number, and can be killed and restarted.

    Attributes:
        urls: Their URLs.
        asked: The number of requests to each.
        takes: Seconds that each takes to respond, by the clock.
        full: Servers that reject requests.

    """

    def __init__(self, count: int, scheme: str) -> None:
        self.clock = Clock()
        self.urls = [f"rsocket+{scheme}{number if scheme.startswith('memory') else ''}" for number in range(count)]
        self.asked: Counter[int] = Counter()
        self.pushed: Counter[int] = Counter()
        self.takes = [0.0] * count
        self.full: set[int] = set()
        self.seen: list[object] = []
        self.reached = asyncio.Event()
        self._servers: dict[int, weirpool.Server] = {}

    async def start(self, number: int) -> None:
        service = make_service(self.seen, self.reached)

        @service.call("number")
        def tell(request: Payload) -> bytes:
            self.asked[number] += 1
            self.clock.now += self.takes[number]
            if number in self.full:
                raise Rejected(message="full")
            if request.data == b"fail":
                raise ApplicationError(0x301, "boom")
            return b"%d" % number

        @service.stream("numbers")
        def tell_all(request: Payload) -> list[bytes]:
            return [b"%d" % number] * int(request.data)

        @service.push
        def pushed(metadata: bytes) -> None:
            self.pushed[number] += 1

        self._servers[number] = await weirpool.serve(service, self.urls[number])
        self.urls[number] = self._servers[number].urls[0]

    async def kill(self, number: int) -> None:
        await self._servers.pop(number).close(0)

    async def stop(self) -> None:
        for number in list(self._servers):
            await self.kill(number)


@asynccontextmanager
async def cluster(count: int, scheme: str = "memory://node") -> AsyncIterator[Cluster]:
    it = Cluster(count, scheme)
    try:
        for number in range(count):
            await it.start(number)
        yield it
    finally:
        await it.stop()
    await alone()


async def numbers(balancer: Balancer, count: int) -> list[int]:
    return [int((await balancer.call("number")).data) for _ in range(count)]


async def all_up(balancer: Balancer) -> None:
    await until(lambda: states(balancer) == ["up"] * len(balancer.nodes))


def states(balancer: Balancer) -> list[str]:
    return [node.state for node in balancer.nodes]


# Selection.


@pytest.mark.parametrize("scheme", ["memory://node", "tcp://127.0.0.1:0"])
async def test_round_robin_uses_each_node_in_turn(scheme: str) -> None:
    async with cluster(3, scheme) as it, weirpool.balance(it.urls, reconnect=AT_ONCE) as balancer:
        await all_up(balancer)
        found = await numbers(balancer, 6)
        assert found[:3] == found[3:]
        assert sorted(found[:3]) == [0, 1, 2]


async def test_faster_node_is_preferred_and_slow_node_is_tried_again() -> None:
    async with cluster(2) as it:
        it.takes = [1.0, 0.1]
        strategy = {"strategy": "least-loaded", "half_life": 10.0}
        async with weirpool.balance(it.urls, clock=it.clock, **strategy) as balancer:  # type: ignore[arg-type]
            await all_up(balancer)
            await numbers(balancer, 20)
            assert it.asked == {0: 1, 1: 19}
            latencies = [node.latency for node in balancer.nodes]
            assert latencies[1] == pytest.approx(0.1)
            assert 0.8 < latencies[0] < 1.0
            # It has recovered, which is noticed after three half-lives.
            it.takes[0] = 0.01
            it.clock.now += 35.0
            it.asked.clear()
            await numbers(balancer, 1)
            it.takes[1] = 0.1
            await numbers(balancer, 20)
            assert it.asked[0] > it.asked[1]


async def test_outstanding_counts_requests_in_progress() -> None:
    async with cluster(2) as it:
        async with weirpool.balance(it.urls, strategy="least-loaded", clock=it.clock) as balancer:
            await all_up(balancer)
            it.takes = [0.1, 0.1]
            await numbers(balancer, 4)
            calls = [asyncio.create_task(balancer.call("never")) for _ in range(6)]
            await until(lambda: sum(node.outstanding for node in balancer.nodes) == 6)
            assert [node.outstanding for node in balancer.nodes] == [3, 3]
            for call in calls:
                call.cancel()


async def test_canceled_call_raises_the_latency_of_its_node() -> None:
    async with cluster(1) as it, weirpool.balance(it.urls, clock=it.clock) as balancer:
        call = asyncio.create_task(balancer.call("never"))
        await it.reached.wait()
        it.clock.now += 7.0
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert balancer.nodes[0].latency == 7.0


async def test_custom_strategy_is_used() -> None:
    class Last:
        def pick(self, candidates: Sequence[Candidate], now: float) -> int:
            return len(candidates) - 1

    async with cluster(3) as it, weirpool.balance(it.urls, strategy=Last()) as balancer:
        await all_up(balancer)
        assert await numbers(balancer, 3) == [2, 2, 2]


async def test_a_balancer_does_what_a_peer_does() -> None:
    async with cluster(2) as it, weirpool.balance(it.urls) as balancer:
        await all_up(balancer)
        assert (await balancer.upload("sum", b"", [b"1", b"2"])).data == b"3"
        async with balancer.channel("double", b"", [b"4"]) as answers:
            assert [item.data async for item in answers] == [b"8"]
        found = [[item.data async for item in balancer.stream("numbers", b"2")] for _ in range(2)]
        assert sorted(found) == [[b"0", b"0"], [b"1", b"1"]]
        await balancer.fire("log", b"fired")
        await it.reached.wait()
        assert it.seen == [b"fired"]
        with pytest.raises(ApplicationError, match="boom"):
            await balancer.call("fail")
        await balancer.push(b"to all")
        await until(lambda: it.pushed == {0: 1, 1: 1})


# Nodes that disconnect and reconnect.


@pytest.mark.parametrize("scheme", ["memory://node", "tcp://127.0.0.1:0"])
async def test_disconnected_node_gets_no_requests(scheme: str) -> None:
    async with cluster(2, scheme) as it, weirpool.balance(it.urls, reconnect=AT_ONCE) as balancer:
        await all_up(balancer)
        await it.kill(0)
        await until(lambda: states(balancer) == ["away", "up"])
        assert await numbers(balancer, 3) == [1, 1, 1]
        await it.start(0)
        await all_up(balancer)
        assert sorted(await numbers(balancer, 2)) == [0, 1]


async def test_requests_in_flight_fail_and_are_not_retried() -> None:
    async with cluster(2) as it, weirpool.balance(it.urls, reconnect=AT_ONCE, retry_rejected=True) as balancer:
        await all_up(balancer)
        call = asyncio.create_task(balancer.call("never"))
        await it.reached.wait()
        busy = [node.outstanding for node in balancer.nodes].index(1)
        it.reached.clear()
        await it.kill(busy)
        with pytest.raises(PeerClosed):
            await call
        await turns(5)
        assert not it.reached.is_set()


async def test_calls_wait_while_no_node_is_connected() -> None:
    async with cluster(2) as it, weirpool.balance(it.urls, reconnect=AT_ONCE) as balancer:
        await all_up(balancer)
        await it.stop()
        await until(lambda: states(balancer) == ["away", "away"])
        calls = [asyncio.create_task(balancer.call("number")) for _ in range(3)]
        stream = balancer.stream("numbers", b"1")
        items = asyncio.create_task(stream.__aenter__())
        await turns(10)
        calls[0].cancel()
        await it.start(1)
        assert [(await call).data for call in calls[1:]] == [b"1", b"1"]
        assert [item.data async for item in await items] == [b"1"]
        with pytest.raises(asyncio.CancelledError):
            await calls[0]


async def test_calls_fail_at_once_with_the_error_of_each_node() -> None:
    async with cluster(2) as it, weirpool.balance(it.urls, reconnect=FAIL) as balancer:
        await all_up(balancer)
        await it.stop()
        await until(lambda: states(balancer) == ["away", "away"])
        with pytest.raises(ConnectError) as failed:
            await balancer.call("number")
        text = str(failed.value)
        assert text.startswith("none of 2 nodes can be reached: ")
        assert all(url in text for url in it.urls)
        with pytest.raises(ConnectError):
            await balancer.push(b"")


async def test_calls_wait_up_to_the_timeout() -> None:
    policy = replace(AT_ONCE, wait_timeout=0.01)
    async with cluster(1) as it, weirpool.balance(it.urls, reconnect=policy) as balancer:
        await it.kill(0)
        await until(lambda: states(balancer) == ["away"])
        with pytest.raises(ConnectError, match="none of 1 nodes"):
            await balancer.call("number")


async def test_calls_do_not_wait_for_nodes_that_are_gone() -> None:
    async with cluster(1) as it, weirpool.balance(it.urls, reconnect=replace(AT_ONCE, attempts=2)) as balancer:
        await it.kill(0)
        await until(lambda: states(balancer) == ["gone"])
        with pytest.raises(ConnectError, match="none of 1 nodes"):
            await balancer.call("number")


async def test_calls_wait_for_a_node_that_is_resumed() -> None:
    async with cluster(1, "tcp://127.0.0.1:0") as it:
        async with weirpool.balance(it.urls, reconnect=AT_ONCE, settings=Settings(resume=True)) as balancer:
            await numbers(balancer, 1)
            peer = next(iter(balancer._connector.nodes.values())).connector
            assert peer.latest.link is not None
            session = peer.latest.session
            peer.latest.link.abort()
            await until(lambda: not peer.connected)
            assert states(balancer) == ["away"]
            assert await numbers(balancer, 1) == [0]
            assert peer.latest.session is session


async def test_resuming_node_is_skipped_when_others_are_connected() -> None:
    patient = Reconnect(first_delay=1000.0, longest_delay=1000.0)
    async with cluster(2, "tcp://127.0.0.1:0") as it:
        async with weirpool.balance(it.urls, reconnect=patient, settings=Settings(resume=True)) as balancer:
            await all_up(balancer)
            await numbers(balancer, 2)
            peer = balancer._connector.nodes[it.urls[0]].connector
            assert peer.latest.link is not None
            peer.latest.link.abort()
            await until(lambda: not peer.connected)
            assert await numbers(balancer, 4) == [1] * 4


async def test_call_in_the_queue_of_a_node_that_leaves_is_sent_elsewhere() -> None:
    async with cluster(2) as it:
        settings = Settings(max_calls=1)
        async with weirpool.balance(it.urls, reconnect=AT_ONCE, settings=settings) as balancer:
            await all_up(balancer)
            # Two calls for each node: one waits until the other one has its response.
            calls = [asyncio.ensure_future(balancer.call("never")) for _ in range(2)]
            await turns(2)
            waiting = [asyncio.ensure_future(balancer.call("number")) for _ in range(2)]
            await turns(2)
            await it.kill(0)
            await until(lambda: any(call.done() for call in calls))
            await it.kill(1)
            await it.start(0)
            assert [(await call).data for call in waiting] == [b"0", b"0"]
            for result in await asyncio.gather(*calls, return_exceptions=True):
                assert isinstance(result, SessionError)
