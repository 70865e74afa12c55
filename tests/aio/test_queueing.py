"""Calls that wait until the peer admits them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weirpool
from tests.aio.serving import world
from tests.builds import Build
from tests.sim.clockwork import run
from tests.waiting import turns, until
from weirpool import FixedLease, Metrics, Payload, Rejected, Service, SessionClosed, SessionError, Settings
from weirpool.aio.queueing import MAX_FRUITLESS, MAX_LEASES, REST_SECONDS

pytestmark = pytest.mark.usefixtures("tidy")

PROTOCOLS = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "river", "reactive-streams")
SMALL = Settings(max_streams=8)


class Held:
    """A service whose calls are held until they are released, and what has begun in which order."""

    def __init__(self) -> None:
        self.service = Service()
        self.begun: list[int] = []
        self.most = 0
        self.open = 0
        self.released = asyncio.Event()
        self.service.call("demo.held")(self._held)
        self.service.call("demo.echo")(lambda request: request)

    async def _held(self, request: Payload) -> bytes:
        self.begun.append(int(request.data))
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await self.released.wait()
        finally:
            self.open -= 1
        return request.data


@asynccontextmanager
async def service_of(
    protocol: str, server: Settings | None = None, client: Settings | None = None
) -> AsyncIterator[tuple[Held, weirpool.Peer]]:
    held = Held()
    async with weirpool.serve(held.service, f"{protocol}+memory://queue", settings=server) as serving:
        async with weirpool.connect(serving.urls[0], settings=client) as peer:
            yield held, peer


def queue_of(peer: weirpool.Peer) -> Any:
    driver = peer._connector.current
    assert driver is not None
    return driver.exchanges.queue


def link_of(peer: weirpool.Peer) -> Any:
    driver = peer._connector.current
    assert driver is not None
    return driver.link


def pending_futures() -> int:
    return sum(type(each) is asyncio.Future and not each.done() for each in gc.get_objects())


async def gathered(peer: weirpool.Peer, route: str, count: int) -> list[Any]:
    calls = (peer.call(route, b"%d" % number) for number in range(count))
    return await asyncio.gather(*calls, return_exceptions=True)


def refuse(exchanges: Any, stream_id: int) -> None:
    """Let it seem that the peer has refused a call that it has begun."""
    exchanges.session.cancel(stream_id)
    exchanges.end_inbound(stream_id, Rejected(message="more than max_streams (1) streams are open"))


# Answers to all.


@pytest.mark.parametrize("route", ["demo.echo", "demo.held"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_gathered_calls_are_answered_above_the_peers_limit(protocol: str, route: str) -> None:
    async with service_of(protocol, server=SMALL) as (held, peer):
        held.released.set()
        answers = await gathered(peer, route, 500)
    assert [answer.data for answer in answers] == [b"%d" % number for number in range(500)]
    assert held.most <= 8


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_own_limit_alone_keeps_a_client_below_that_of_its_peer(protocol: str) -> None:
    async with service_of(protocol, server=SMALL, client=Settings(max_calls=8)) as (held, peer):
        held.released.set()
        answers = await gathered(peer, "demo.held", 100)
    assert [answer.data for answer in answers] == [b"%d" % number for number in range(100)]
    assert held.begun == list(range(100))


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_many_gathered_calls_are_answered_with_default_settings(protocol: str) -> None:
    async with service_of(protocol) as (held, peer):
        answering = asyncio.ensure_future(gathered(peer, "demo.held", 10_000))
        await until(lambda: held.open == 4_096)
        held.released.set()
        answers = await answering
    assert sum(isinstance(answer, Payload) for answer in answers) == 10_000
    assert held.begun == list(range(10_000)) and held.most == 4_096


async def test_calls_are_sent_in_order_of_arrival() -> None:
    async with service_of("rsocket", server=SMALL) as (held, peer):
        calls = [asyncio.ensure_future(peer.call("demo.held", b"%d" % number)) for number in range(60)]
        await until(lambda: len(held.begun) == 8)
        held.released.set()
        await asyncio.gather(*calls)
    # The calls that were refused precede those that arrived later.
    assert held.begun == list(range(60))


async def test_limit_is_learned_from_one_burst() -> None:
    async with service_of("rsocket", server=Settings(max_streams=40)) as (held, peer):
        calls = [asyncio.ensure_future(peer.call("demo.held", b"%d" % number)) for number in range(1_000)]
        await until(lambda: len(held.begun) == 40)
        queue = queue_of(peer)
        await until(lambda: len(queue) == 960)
        assert queue.limit.value == 36
        held.released.set()
        await asyncio.gather(*calls)


async def test_waiting_and_repeated_requests_are_counted() -> None:
    held, metrics = Held(), Metrics()
    async with weirpool.serve(held.service, "rsocket+memory://counted", settings=Settings(max_streams=10)) as server:
        async with weirpool.connect(server.urls[0], settings=Settings(max_calls=20), taps=[metrics]) as peer:
            calls = [asyncio.ensure_future(peer.call("demo.held", b"%d" % each)) for each in range(50)]
            await until(lambda: len(queue_of(peer)) == 40)
            snapshot = metrics.snapshot()
            assert (snapshot.requests_queued, snapshot.requests_repeated) == (30, 10)
            held.released.set()
            await asyncio.gather(*calls)


async def test_refused_call_precedes_one_whose_turn_was_scheduled_before() -> None:
    # The refusal arrives in a turn of the loop at whose end other calls were to be sent.
    async with service_of("rsocket", client=Settings(max_calls=1)) as (held, peer):
        first, second = (asyncio.ensure_future(peer.call("demo.held", b"%d" % each)) for each in range(2))
        await until(lambda: held.begun == [0])
        exchanges = peer._connector.current.exchanges  # type: ignore[union-attr]
        (stream_id,) = exchanges.calls
        exchanges.queue.schedule()
        refuse(exchanges, stream_id)
        third = asyncio.ensure_future(peer.call("demo.held", b"2"))
        held.released.set()
        assert [(await call).data for call in (first, second, third)] == [b"0", b"1", b"2"]
        assert held.begun == [0, 0, 1, 2]


async def test_new_call_does_not_overtake_one_that_was_just_refused() -> None:
    async with service_of("rsocket") as (held, peer):
        first = asyncio.ensure_future(peer.call("demo.held", b"0"))
        await until(lambda: held.begun == [0])
        exchanges = peer._connector.current.exchanges  # type: ignore[union-attr]
        # Its first step comes before that of the refused call.
        second = asyncio.ensure_future(peer.call("demo.held", b"1"))
        refuse(exchanges, *exchanges.calls)
        held.released.set()
        await asyncio.gather(first, second)
        assert held.begun == [0, 0, 1]


# Waiting.


async def test_canceled_call_leaves_the_queue() -> None:
    async with service_of("rsocket", client=Settings(max_calls=1)) as (held, peer):
        first, second, third = (asyncio.ensure_future(peer.call("demo.held", b"%d" % each)) for each in range(3))
        await until(lambda: held.begun == [0])
        second.cancel()
        await turns(2)
        assert len(queue_of(peer)) == 1
        held.released.set()
        assert (await third).data == b"2"
        assert second.cancelled() and held.begun == [0, 2]
        await first


async def test_canceled_refused_call_is_not_sent_again() -> None:
    async with service_of("rsocket", server=Settings(max_streams=1)) as (held, peer):
        first, second, third = (asyncio.ensure_future(peer.call("demo.held", b"%d" % each)) for each in range(3))
        queue = queue_of(peer)
        await until(lambda: len(queue) == 2)
        second.cancel()
        await turns(2)
        assert len(queue) == 1
        held.released.set()
        assert (await third).data == b"2"
        assert held.begun == [0, 2]
        await first


async def test_call_that_is_canceled_after_it_waited_is_canceled_at_the_peer() -> None:
    async with service_of("rsocket", client=Settings(max_calls=1)) as (held, peer):
        first, second = (asyncio.ensure_future(peer.call("demo.held", b"%d" % each)) for each in range(2))
        await until(lambda: held.begun == [0])
        first.cancel()
        await until(lambda: held.begun == [0, 1] and held.open == 1)
        second.cancel()
        await until(lambda: held.open == 0)


async def test_waiting_calls_fail_when_the_connection_closes() -> None:
    async with service_of("rsocket", client=Settings(max_calls=1)) as (held, peer):
        calls = [asyncio.ensure_future(peer.call("demo.held", b"%d" % each)) for each in range(3)]
        await until(lambda: held.begun == [0])
        await peer.close(0)
        for call in calls:
            with pytest.raises((SessionClosed, SessionError)):
                await call
        assert held.begun == [0]


async def test_waiting_calls_use_the_next_connection() -> None:
    held = Held()
    settings = Settings(max_calls=1)
    policy = weirpool.Reconnect(first_delay=0.0, longest_delay=0.0)
    async with weirpool.serve(held.service, "rsocket+memory://next") as server:
        async with weirpool.connect(server.urls[0], settings=settings, reconnect=policy) as peer:
            calls = [asyncio.ensure_future(peer.call("demo.held", b"%d" % each)) for each in range(4)]
            await until(lambda: held.begun == [0])
            link_of(peer).abort()
            held.released.set()
            with pytest.raises(weirpool.LinkError):
                await calls[0]
            # They were not sent, so it is safe to send them now.
            assert [(await call).data for call in calls[1:]] == [b"1", b"2", b"3"]
            assert held.begun == [0, 1, 2, 3]


async def test_calls_wait_in_order_for_a_link_that_is_full() -> None:
    async with service_of("rsocket", client=Settings(max_calls=2)) as (held, peer):
        held.released.set()
        calls = [asyncio.ensure_future(peer.call("demo.held", b"%d" % each)) for each in range(6)]
        await turns(1)
        flow = peer._connector.current.flow  # type: ignore[union-attr]
        flow.writing_paused()
        await turns(20)
        assert len(held.begun) <= 2
        # Further batches wait for the link only once.
        pending = pending_futures()
        for _ in range(10):
            flow.schedule_write()
            await turns(2)
        assert pending_futures() == pending
        flow.writing_resumed()
        await asyncio.gather(*calls)
        assert held.begun == list(range(6))


# What is not repeated.


async def test_upload_waits_for_its_turn_and_sends_its_items() -> None:
    async with world(client=Settings(max_calls=1)) as w:
        never = asyncio.ensure_future(w.peer.call("never"))
        await w.reached.wait()
        total = asyncio.ensure_future(w.peer.upload("sum", b"1", [b"2", b"3"]))
        await turns(3)
        assert not total.done()
        never.cancel()
        assert (await total).data == b"5"


async def test_streams_and_fires_do_not_wait_for_calls() -> None:
    async with world(client=Settings(max_calls=1)) as w:
        never = asyncio.ensure_future(w.peer.call("never"))
        await w.reached.wait()
        waiting = asyncio.ensure_future(w.peer.call("echo", b"x"))
        await turns(2)
        assert [item.data async for item in w.peer.stream("count", b"2")] == [b"0", b"1"]
        await w.peer.fire("log", b"logged")
        await until(lambda: b"logged" in w.seen)
        assert not waiting.done()
        never.cancel()
        assert (await waiting).data == b"x"


async def test_rejection_by_a_handler_is_not_repeated() -> None:
    service = Service()
    asked: list[bytes] = []

    @service.call("busy")
    def busy(request: Payload) -> bytes:
        asked.append(request.data)
        raise Rejected(message="come back tomorrow")

    async with weirpool.serve(service, "rsocket+memory://busy") as server, weirpool.connect(server.urls[0]) as peer:
        for route, message in (("busy", "tomorrow"), ("nothing", "no call handler")):
            with pytest.raises(Rejected, match=message):
                await peer.call(route)
        assert len(asked) == 1
        assert queue_of(peer).limit.value == 4_096


async def test_call_whose_lease_expired_on_the_way_is_repeated() -> None:
    # The limit of open calls has nothing to do with it.
    service = Service()
    asked: list[bytes] = []

    @service.call("late")
    def late(request: Payload) -> bytes:
        asked.append(request.data)
        if len(asked) == 1 or request.data:
            raise Rejected(message="there is no lease for this request")
        return b"done"

    async with weirpool.serve(service, "rsocket+memory://late") as server, weirpool.connect(server.urls[0]) as peer:
        assert (await peer.call("late")).data == b"done"
        assert len(asked) == 2 and queue_of(peer).limit.value == 4_096
        with pytest.raises(Rejected, match="no lease"):
            await peer.call("late", b"always")
        assert len(asked) == 2 + 2 + MAX_LEASES


def test_peer_that_admits_no_call_is_asked_a_few_times() -> None:
    # Its streams take all places. Another call would be refused for ever, in a busy loop.
    async def main() -> None:
        service = Service()
        asked = 0

        @service.call("full")
        def full(request: Payload) -> bytes:
            nonlocal asked
            asked += 1
            raise Rejected(message="more than max_streams (4) streams are open")

        async with weirpool.serve(service, "rsocket+memory://full") as server, weirpool.connect(server.urls[0]) as peer:
            began = asyncio.get_running_loop().time()
            answers = await gathered(peer, "full", 100)
            assert [str(answer) for answer in answers] == ["[0x202] more than max_streams (4) streams are open"] * 100
            took = asyncio.get_running_loop().time() - began
            assert asked == 99 + MAX_FRUITLESS and took == pytest.approx(REST_SECONDS * (2 ** (MAX_FRUITLESS - 1) - 1))

    run(main())


# The limit.


def test_limit_falls_to_what_the_peer_holds(build: Build) -> None:
    limit = build.module("weirpool.aio.queueing").CallLimit(4_096)
    for still_open in range(4_095, 99, -1):
        limit.refused(still_open)
    assert limit.value == 90
    # It held other streams when it refused.
    limit.refused(1_000)
    assert limit.value == 90
    limit.refused(0)
    assert limit.value == 1


def test_limit_grows_by_one_for_each_window_up_to_its_cap(build: Build) -> None:
    limit = build.module("weirpool.aio.queueing").CallLimit(20)
    limit.sent()
    limit.refused(2)
    seen = []
    for _ in range(16 * 18):
        limit.sent()
        seen.append(limit.value)
    assert (seen[14], seen[15], seen[31]) == (2, 3, 4)
    assert limit.value == 19
    for _ in range(100):
        limit.sent()
    assert limit.value == 20


async def test_refused_calls_use_the_lease_on_both_sides() -> None:
    """Otherwise the client has used up a lease of which the server believes a part is left, and waits for its end."""
    server = Settings(max_streams=8, lease=FixedLease(20, 3600.0))
    async with service_of("rsocket", server=server, client=Settings(lease=True)) as (held, peer):
        held.released.set()
        answers = await gathered(peer, "demo.held", 200)
        assert [getattr(answer, "data", answer) for answer in answers] == [b"%d" % number for number in range(200)]
