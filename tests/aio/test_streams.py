from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import weirpool
from tests.aio.serving import world
from tests.waiting import turns
from weirpool import ConnectError, Kind, LocalError, MetadataPush, Payload, Settings, UnsupportedKind
from weirpool.aio.connectors import Connector
from weirpool.aio.driver import Driver
from weirpool.aio.holds import GATHER
from weirpool.aio.streams import Stream, StreamRequest


async def test_the_producer_is_never_ahead_of_credit() -> None:
    async with world() as w, w.peer.stream("count", b"1000000", credit=10) as items:
        taken = 0
        async for _ in items:
            taken += 1
            # One item is taken ahead of credit, so that a stream of exactly as many items ends at once.
            assert len(w.seen) <= taken + 10 + 1
            if taken == 100:
                break


async def test_exiting_the_block_cancels_the_handler() -> None:
    async with world() as w:
        async with w.peer.stream("acount", b"1000000", credit=4) as items:
            async for _ in items:
                break
        await w.reached.wait()
        assert w.seen[-1] == "closed"


async def test_manual_stream_waits_for_grant() -> None:
    async with world() as w, w.peer.stream("count", b"100", credit=5, manual=True) as items:
        found = 0
        async for _ in items:
            found += 1
            if found == 5:
                assert len(w.seen) <= 6
                items.grant(95)
        assert found == 100


async def test_manual_channel_waits_for_grant() -> None:
    service, made = weirpool.Service(), [0]

    @service.channel("numbers")
    def numbers(request: Payload, items: weirpool.Items) -> Iterator[bytes]:
        while True:
            made[0] += 1
            yield b"%d" % made[0]

    async with weirpool.serve(service, "rsocket+memory://manual"), weirpool.connect("rsocket+memory://manual") as peer:
        async with peer.channel("numbers", b"", [], credit=3, manual=True) as stream:
            items = aiter(stream)
            for expected in (3, 5):
                while (await anext(items)).data != b"%d" % expected:
                    pass
                await turns(100)
                # One more is taken ahead of credit.
                assert made[0] == expected + 1
                stream.grant(2)


@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2", "river"])
async def test_a_window_of_one_item_carries_an_upload(protocol: str) -> None:
    """The request, which is the first item in some protocols, must not use it up."""
    service = weirpool.Service()

    @service.upload("t.count")
    async def count(request: Payload, items: weirpool.Items) -> bytes:
        return b"%d" % len([item async for item in items])

    url = f"{protocol}+memory://one"
    async with weirpool.serve(service, url, settings=Settings(credit=1)), weirpool.connect(url) as peer:
        assert (await peer.upload("t.count", b"0", [b"1", b"2", b"3"])).data == b"3"


async def test_a_paused_stream_arrives_after_it_is_resumed() -> None:
    async with world() as w, w.peer.stream("count", b"100", credit=5, manual=True) as items:
        await items.arrival()
        items.pause()
        flow = w.peer._driver.flow
        assert flow.holds == GATHER
        items.grant(5)
        items.resume()
        assert not flow.holds
        assert [int((await anext(aiter(items))).data) for _ in range(10)] == list(range(10))
    # A stream that is not open has no link.
    stream = Stream(items._connector, StreamRequest(Kind.STREAM, "count", Payload()))
    stream.pause()
    stream.resume()


async def test_credit_of_zero_is_rejected() -> None:
    async with world() as w:
        with pytest.raises(LocalError, match="at least 1"):
            w.peer.stream("count", b"1", credit=0)


async def test_failing_stream_yields_its_items_first() -> None:
    async with world() as w:
        with pytest.raises(Exception, match="handler failed"):
            async with w.peer.stream("count", b"no number") as items:
                async for _ in items:
                    pass


class Late(Connector):
    """A connector that has no driver before it is awaited."""

    def __init__(self, peer: weirpool.Peer, *errors: Exception) -> None:
        super().__init__(Settings())
        self.peer = peer
        self.errors = list(errors)
        self.asked = 0

    async def driver(self) -> Driver:
        self.asked += 1
        if self.errors:
            raise self.errors.pop()
        return self.peer._driver


async def test_stream_gets_its_driver_when_it_is_opened() -> None:
    async with world() as w:
        connector = Late(w.peer)
        stream = Stream(connector, StreamRequest(Kind.STREAM, "count", Payload(b"3")))
        stream.cancel()
        assert (stream.stream_id, stream.over, stream.error, stream.ready) == (0, False, None, False)
        assert connector.asked == 0
        async with stream:
            assert [item.data async for item in stream] == [b"0", b"1", b"2"]
        assert connector.asked == 1


async def test_a_stream_whose_connector_fails_can_be_opened_later() -> None:
    async with world() as w:
        connector = Late(w.peer, ConnectError("away"))
        stream = Stream(connector, StreamRequest(Kind.STREAM, "count", Payload(b"1")))
        with pytest.raises(ConnectError):
            await stream.__aenter__()
        assert [item.data async for item in stream] == [b"0"]


def test_a_stream_checks_its_credit_at_once() -> None:
    with pytest.raises(LocalError, match="credit is 0"):
        Stream(Connector(Settings()), StreamRequest(Kind.STREAM, "count", Payload(), credit=0))


def old_service(told: list[object], reached: asyncio.Event) -> weirpool.Service:
    """Features of ReactiveSocket 0.0 and 0.2 only."""
    service = weirpool.Service()

    @service.stream("pushes")
    def pushes(request: Payload) -> Iterator[bytes | MetadataPush]:
        yield b"1"
        yield MetadataPush(b"one")
        yield MetadataPush(b"two")
        yield b"2"
        yield b"3"
        yield MetadataPush(b"last")

    @service.stream("apushes")
    async def apushes(request: Payload) -> AsyncIterator[bytes | MetadataPush]:
        for item in pushes(request):
            yield item

    @service.stream("endless")
    async def endless(request: Payload) -> AsyncIterator[bytes]:
        try:
            yield b"x"
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError as error:
            told.extend(error.args)
            reached.set()
            raise

    @service.push
    def pushed(metadata: bytes) -> None:
        told.append(metadata)
        reached.set()

    return service


@pytest.mark.parametrize("route", ["pushes", "apushes"])
@pytest.mark.parametrize("credit", [1, 2, 100])
async def test_pushed_metadata_is_delivered_in_order(route: str, credit: int) -> None:
    place = "reactivesocket-0.0+memory://old"
    async with weirpool.serve(old_service([], asyncio.Event()), place), weirpool.connect(place) as peer:
        seen: list[bytes] = []

        def pushed(metadata: bytes) -> None:
            seen.append(b"+" + metadata)

        async for item in peer.stream(route, credit=credit, on_push=pushed):
            seen += [item.data]
        assert seen == [b"1", b"+one", b"+two", b"2", b"3", b"+last"]
        # Without on_push it is dropped.
        assert [item.data async for item in peer.stream(route, endless=True)] == [b"1", b"2", b"3"]


async def test_batches_end_where_metadata_was_pushed() -> None:
    place = "reactivesocket-0.0+memory://old"
    async with weirpool.serve(old_service([], asyncio.Event()), place), weirpool.connect(place) as peer:
        seen: list[object] = []
        async with peer.stream("pushes", on_push=seen.append) as items:
            async for batch in items.batches():
                seen.extend(batch.column("data").to_pylist())
        assert seen == [b"1", b"one", b"two", b"2", b"3", b"last"]


async def test_stream_receives_pushed_metadata_when_supported() -> None:
    told: list[object] = []
    reached = asyncio.Event()
    place = "reactivesocket-0.0+memory://old"
    async with weirpool.serve(old_service(told, reached), place), weirpool.connect(place) as peer:
        async with peer.stream("endless", credit=1) as items:
            items.push(b"for this stream")
            await reached.wait()
        assert told[:1] == [b"for this stream"]
        closed = peer.stream("endless")
        with pytest.raises(LocalError, match="not open"):
            closed.push(b"too early")
    async with world() as w, w.peer.stream("count", b"1") as items:
        with pytest.raises(UnsupportedKind):
            items.push(b"no")


@pytest.mark.parametrize("protocol", ["reactivesocket-0.0", "reactivesocket-0.2"])
async def test_cancel_carries_metadata_when_supported(protocol: str) -> None:
    told: list[object] = []
    reached = asyncio.Event()
    place = f"{protocol}+memory://old"
    async with weirpool.serve(old_service(told, reached), place), weirpool.connect(place) as peer:
        async with peer.stream("endless", credit=2) as items:
            assert (await anext(aiter(items))).data == b"x"
            items.cancel(b"enough")
            await reached.wait()
    assert told == [b"enough"]
    async with world() as w, w.peer.stream("acount", b"1000000", credit=1) as items:
        with pytest.raises(LocalError, match="cannot carry metadata"):
            items.cancel(b"enough")
