from __future__ import annotations

import pytest

import weirpool
from tests.aio.serving import world
from tests.reactive.probe import IDLE_TURNS, subscribed
from tests.testing.serving import FAMILY, assert_kept
from tests.waiting import turns, until
from weirpool import ApplicationError, LocalError, Next, Reconnect, Request, WeirpoolError
from weirpool.protocols import PROTOCOLS
from weirpool.reactive import publisher_of, to_aiter
from weirpool.reactive.interfaces import UNBOUNDED
from weirpool.testing import SUBSCRIBER_RULES, Subscribing, check_subscriber
from weirpool.testing.ends import PATIENCE
from weirpool.testing.responder import RawPublisher


async def consume(url: str, take: int | None) -> list[bytes]:
    taken: list[bytes] = []
    async with weirpool.connect(url) as peer:
        items = to_aiter(publisher_of(peer, "tests.numbers"), window=8)
        async for item in items:
            taken.append(item.data)
            if len(taken) == take:
                break
        await items.aclose()
    return taken


@pytest.mark.parametrize("rule", SUBSCRIBER_RULES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_it_keeps_every_rule_of_a_subscriber(protocol: str, rule: str) -> None:
    [result] = await check_subscriber(Subscribing(consume=consume, url=f"{protocol}+memory://reactive"), [rule])
    assert_kept(result, protocol)


@pytest.mark.parametrize("protocol", FAMILY)
async def test_the_demand_on_the_wire_is_that_of_the_subscriber(protocol: str) -> None:
    async with RawPublisher(f"{protocol}+memory://reactive", PATIENCE) as publisher:
        async with weirpool.connect(publisher.url) as peer:
            probe = subscribed(publisher_of(peer, "tests.numbers"))
            await turns(IDLE_TURNS)
            assert publisher.streams == []
            probe.subscription.request(3)
            probe.subscription.request(2)
            await publisher.subscribed()
            probe.subscription.request(4)
            await until(lambda: len(publisher.granted) == 2)
            assert publisher.granted == [5, 4]
            probe.subscription.cancel()
            await until(lambda: publisher.canceled)


async def test_large_demand_is_sent_in_parts() -> None:
    async with RawPublisher("rsocket+memory://reactive", PATIENCE) as publisher:
        async with weirpool.connect(publisher.url) as peer:
            probe = subscribed(publisher_of(peer, "tests.numbers"), first=UNBOUNDED)
            await publisher.subscribed()
            probe.subscription.request(UNBOUNDED)
            await turns(IDLE_TURNS)
            assert publisher.granted == [0x7FFF_FFFF]
            probe.subscription.cancel()


async def test_items_and_completion_arrive() -> None:
    async with world() as w:
        probe = subscribed(publisher_of(w.peer, "count", b"5"), first=2, each=1)
        assert await probe.ended() == "complete"
        assert [item.data for item in probe.items] == [b"0", b"1", b"2", b"3", b"4"]


async def test_each_subscription_is_a_stream_of_its_own() -> None:
    async with world() as w:
        publisher = publisher_of(w.peer, "count", b"3")
        probes = [subscribed(publisher, first=3) for _ in range(2)]
        for probe in probes:
            assert await probe.ended() == "complete"
            assert len(probe.items) == 3


async def test_demand_passes_interceptors_and_reconnecting_peers() -> None:
    async def plain(request: Request, next: Next) -> object:
        return await next(request)

    async with world() as w:
        url = w.server.urls[0]
        async with weirpool.connect(url, interceptors=[plain], reconnect=Reconnect()) as peer:
            probe = subscribed(publisher_of(peer, "count", b"9"), first=2)
            await until(lambda: len(probe.items) == 2)
            await turns(IDLE_TURNS)
            # One of the handler's items waits for demand.
            assert (len(probe.items), len(w.seen)) == (2, 3)
            probe.subscription.request(7)
            assert await probe.ended() == "complete"


async def test_error_is_passed_to_the_subscriber() -> None:
    async with world() as w:
        probe = subscribed(publisher_of(w.peer, "nobody"), first=1)
        assert isinstance(await probe.ended(), ApplicationError)


async def test_a_closed_connection_is_an_error() -> None:
    async with world() as w:
        await w.peer.close()
        probe = subscribed(publisher_of(w.peer, "count", b"5"), first=1)
        assert isinstance(await probe.ended(), WeirpoolError)


async def test_cancel_stops_the_handler() -> None:
    async with world() as w:
        probe = subscribed(publisher_of(w.peer, "acount", b"1000000"), first=4)
        await until(lambda: len(probe.items) == 4)
        probe.subscription.cancel()
        await w.reached.wait()
        assert (len(probe.items), probe.ends, w.peer.outstanding) == (4, [], 0)


async def test_no_subscriber_is_refused() -> None:
    async with world() as w:
        with pytest.raises(LocalError, match="on_subscribe"):
            publisher_of(w.peer, "count").subscribe(None)  # type: ignore[arg-type]
