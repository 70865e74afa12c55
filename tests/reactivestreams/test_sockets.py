"""Clients and servers of reactive-streams-io over real links, with all layers above the sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

import weirpool
from tests.aio.serving import make_service, noted_drivers
from tests.missing import need_module
from tests.waiting import turns, until
from weirpool import ApplicationError, Payload, PayloadRun, Rejected, Service, Settings, SetupRejected, UnsupportedKind
from weirpool.aio.connectors import Direct
from weirpool.aio.peer import Peer
from weirpool.errors import LocalError
from weirpool.journal import Journal
from weirpool.journal.collect import Collector
from weirpool.wire.reactivestreams.codec import Items, Type
from weirpool.wire.reactivestreams.decoder import Decoder

MIB = 1024 * 1024
PLACES = {
    "tcp": "reactive-streams+tcp://localhost:0",
    "unix": "reactive-streams+unix://{folder}/socket",
    "ws": "reactive-streams+ws://localhost:0/feed",
    "memory": "reactive-streams+memory://rs0",
    "h2c": "reactive-streams+h2c://localhost:0/feed",
}


@pytest.fixture(params=PLACES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a URL for each of some transports."""
    return PLACES[request.param].format(folder=tmp_path)


async def test_calls_and_streams(url: str) -> None:
    seen: list[object] = []
    async with weirpool.serve(make_service(seen, asyncio.Event()), url) as server:
        async with weirpool.connect(server.urls[0], confirm=True) as peer:
            assert await peer.call("echo", b"hello") == Payload(b"hello")
            answers = await asyncio.gather(*(peer.call("later", b"%d" % number) for number in range(200)))
            assert [answer.data for answer in answers] == [b"%d" % number for number in range(200)]
            for route in ("count", "acount"):
                async with peer.stream(route, b"5000", credit=64) as items:
                    assert [item.data async for item in items] == [b"%d" % number for number in range(5000)]
            with pytest.raises(ApplicationError, match="boom"):
                await peer.call("fail")
            with pytest.raises(ApplicationError, match="no stream handler is named 'nothing'"):
                await peer.call("nothing")
            with pytest.raises(UnsupportedKind):
                await peer.fire("log")
            with pytest.raises(LocalError, match=r"Settings\.extensions"):
                await peer.call("echo", b"x", metadata=b"m")
            assert (await peer.call("echo")).data == b""
            assert peer.outstanding == 0
        await until(lambda: server.connections == 0)


async def test_large_response_is_sent_in_parts(url: str) -> None:
    data = bytes(range(256)) * (8 * MIB // 256)
    service = Service()
    service.call("large")(lambda request: data)

    @service.call("later")
    async def later(request: Payload) -> bytes:
        await asyncio.sleep(0)
        return data

    async with weirpool.serve(service, url) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            assert (await peer.call("large")).data == data
            assert (await peer.call("later")).data == data


async def test_canceled_call_ends_its_handler(url: str) -> None:
    seen: list[object] = []
    reached = asyncio.Event()
    async with weirpool.serve(make_service(seen, reached), url) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            call = asyncio.create_task(peer.call("never"))
            await reached.wait()
            call.cancel()
            await until(lambda: seen == ["never ended"])
            reached.clear()
            async with peer.stream("acount", b"1000000", credit=10) as items:
                await anext(aiter(items))
            await reached.wait()


async def test_server_can_subscribe(url: str) -> None:
    answering = Service()
    answering.call("name")(lambda request: b"client")
    async with weirpool.serve(make_service([], asyncio.Event()), url) as server:
        async with weirpool.connect(server.urls[0], service=answering) as peer:
            await peer.call("echo")
            [driver] = server._drivers.values()
            answers = await asyncio.gather(Peer(Direct(driver)).call("name"), peer.call("echo", b"server"))
            assert [answer.data for answer in answers] == [b"client", b"server"]


async def test_packed_items_become_arrow_columns(url: str) -> None:
    pyarrow = need_module("pyarrow")
    count = 100_000
    ticks = pyarrow.array([b"%08d" % number for number in range(count)], pyarrow.binary(8))
    service = Service()
    service.stream("ticks")(lambda request: iter([pyarrow.record_batch({"data": ticks})]))
    settings = Settings(element_sizes=(("ticks", 8),))
    async with weirpool.serve(service, url, settings=settings) as server:
        taken: list[bytes] = []
        async with weirpool.connect(server.urls[0]) as peer:
            async with peer.stream("ticks") as items:
                async for batch in items.batches():
                    taken += batch.column("data").to_pylist()
    assert taken == ticks.to_pylist()


def buffers_of(batch: Any) -> bytes:
    """Return the bytes of all its data, in order."""
    column = batch.column("data")
    return bytes(column.buffers()[2])[: 8 * len(column)]


async def test_numbers_are_sent_as_they_are_in_memory(url: str) -> None:
    pyarrow = need_module("pyarrow")
    numpy = need_module("numpy")
    count = 70_000
    numbers = numpy.arange(count, dtype="<i8")
    column = pyarrow.array(numbers)
    many = {
        "batch": pyarrow.record_batch({"number": column}),
        "column": column,
        "numpy": PayloadRun.fixed(numbers, 8),
        "buffer": PayloadRun.fixed(column.buffers()[1], 8),
    }
    service = Service()

    @service.stream("numbers")
    async def send(request: Payload) -> AsyncIterator[Any]:
        yield many[request.data.decode()]
        yield many["column"].slice(5, 5)

    settings = Settings(element_sizes=(("numbers", 8),))
    async with weirpool.serve(service, url, settings=settings) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            for way in many:
                async with peer.stream("numbers", way.encode(), credit=1 << 20) as items:
                    data = b"".join([buffers_of(batch) async for batch in items.batches()])
                got = numpy.frombuffer(data, "<i8")
                assert got.tolist() == [*range(count), 5, 6, 7, 8, 9]


async def test_long_run_of_numbers_is_sent_in_bursts() -> None:
    count = 1_000_000
    run = PayloadRun.fixed(bytes(8 * count), 8)
    service = Service()
    service.stream("numbers")(lambda request: iter([run]))
    settings = Settings(element_sizes=(("numbers", 8),))
    got = 0
    async with weirpool.serve(service, PLACES["tcp"], settings=settings) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            async with peer.stream("numbers", credit=2 * count) as items:
                async for batch in items.batches(max_rows=1000):
                    if not got:
                        [driver] = server._drivers.values()
                        waiting = driver.link.get_write_buffer_size()  # type: ignore[union-attr]
                        # The limit that pauses the pump, and the bursts that it sends before it checks.
                        assert waiting < settings.output_high_bytes + 8 * 61_000
                    assert batch.num_rows <= 1000
                    got += batch.num_rows
    assert got == count


async def test_metadata_is_sent_if_both_sides_offer_it(url: str) -> None:
    service = Service()

    @service.stream("echo")
    def echo(request: Payload) -> Iterator[Payload]:
        yield Payload(request.data, request.metadata)
        yield Payload(b"none")

    settings = Settings(extensions=("metadata",))
    async with weirpool.serve(service, url, settings=settings) as server:
        async with weirpool.connect(server.urls[0], settings=settings, confirm=True) as peer:
            async with peer.stream("echo", b"data", metadata=b"about") as items:
                assert [item async for item in items] == [Payload(b"data", b"about"), Payload(b"none")]


async def test_rejected_client_reports_the_reason(url: str) -> None:
    def nobody(setup: Any) -> None:
        raise SetupRejected("nobody today")

    async with weirpool.serve(Service(), url, acceptor=nobody) as server:
        with pytest.raises(SetupRejected, match="nobody today"):
            await weirpool.connect(server.urls[0], confirm=True)


async def test_closing_server_lets_open_streams_end() -> None:
    async with weirpool.serve(make_service([], asyncio.Event()), PLACES["tcp"]) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            await peer.call("echo")
            call = asyncio.create_task(peer.call("later", b"in flight"))
            await turns(1)
            await server.close()
            assert (await call).data == b"in flight"
            await until(lambda: peer.closed)


async def test_interceptors_see_calls_as_calls() -> None:
    service = make_service([], asyncio.Event())
    kinds: list[str] = []

    @service.intercept
    async def look(request: Any, next: Any) -> Any:
        kinds.append(request.kind.name)
        if request.payload.data == b"no":
            raise Rejected(message="no")
        return await next(request)

    async with weirpool.serve(service, PLACES["memory"]) as server:
        async with weirpool.connect(server.urls[0], interceptors=[]) as peer:
            assert (await peer.call("echo", b"yes")).data == b"yes"
            with pytest.raises(ApplicationError, match="no"):
                await peer.call("echo", b"no")
            async with peer.stream("count", b"3") as items:
                assert len([item async for item in items]) == 3
    assert kinds == ["CALL", "CALL", "STREAM"]


class Watched:
    """The receiver of a link, which records whether parts or whole elements arrive."""

    def __init__(self, driver: Any, arrivals: list[str]) -> None:
        self.driver = driver
        self.arrivals = arrivals
        self.decoder = Decoder()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def received(self, data: bytes) -> None:
        self.decoder.feed(data)
        while (message := self.decoder.next()) is not None:
            if isinstance(message, Items) or message.type == Type.ON_NEXT:
                self.arrivals.append("ticks")
            elif message.type in (Type.ON_NEXT_PART, Type.ON_NEXT_LAST_PART):
                self.arrivals.append("part")
                assert len(message.data) == MIB
        self.driver.received(data)


@pytest.mark.parametrize("place", ["tcp", "ws"])
async def test_ticker_is_not_delayed_by_64_mib(place: str) -> None:
    """Items of another stream arrive between the parts of a large item. They are counted, not timed."""
    service = Service()
    large = bytes(64 * MIB)

    @service.stream("large")
    def one(request: Payload) -> Iterator[bytes]:
        yield large

    @service.stream("ticks")
    async def ticks(request: Payload) -> AsyncIterator[bytes]:
        while True:
            yield b"tick"

    async with weirpool.serve(service, PLACES[place]) as server:
        with noted_drivers() as drivers:
            connecting = weirpool.connect(server.urls[0])
            await connecting
        async with connecting as peer:
            arrivals: list[str] = []
            drivers[0].link.receiver = Watched(drivers[0], arrivals)
            async with peer.stream("ticks", credit=64) as ticking, peer.stream("large", credit=1) as items:
                arrived = asyncio.ensure_future(anext(aiter(items)))
                async for _ in ticking:
                    if arrived.done():
                        break
                assert len((await arrived).data) == 64 * MIB
    assert arrivals.count("part") == 64
    # The sockets hold a number of consecutive parts, because credit for more ticks crosses them.
    longest = max(len(list(group)) for what, group in groupby(arrivals) if what == "part")
    assert longest <= 20


async def test_collector_records_a_gap_for_each_link(tmp_path: Path) -> None:
    service = Service()
    begun = 0
    held = asyncio.Event()

    @service.stream("numbers")
    async def numbers(request: Payload) -> AsyncIterator[bytes]:
        nonlocal begun
        begun += 1
        yield b"%d" % begun
        if begun == 1:
            await held.wait()

    async with weirpool.serve(service, PLACES["memory"]) as server:
        collector = Collector(server.urls[0], "numbers", tmp_path)
        collecting = asyncio.create_task(collector.run())
        await until(lambda: collector.progress.rows == 1)
        [driver] = server._drivers.values()
        driver.link.abort()  # type: ignore[union-attr]
        await collecting
    assert (begun, collector.progress.rows, collector.progress.gaps) == (2, 2, 1)
    ((position, reason),) = [(gap.position, gap.reason) for gap in Journal(tmp_path).reader("numbers").gaps()]
    assert position == 1 and "broke" in reason


@pytest.mark.parametrize("words", [b"\x09\x01\x04oops", b"\x07\x01\x01a\x08\x01"], ids=["onError", "onNext"])
async def test_call_answered_before_subscribed_fails(words: bytes) -> None:
    # THREATS 101
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def publisher(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x02\x00\x00")
        await reader.readuntil(b"\x01\x01")  # clientHello, and subscribe with subscriber 1 and a demand of 1
        writer.write(words)
        heard.set_result(await reader.read())
        writer.transport.abort()

    server = await asyncio.start_server(publisher, "127.0.0.1", 0)
    async with weirpool.connect(f"reactive-streams+tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}") as peer:
        with pytest.raises(weirpool.ProtocolError, match="before subscribed, which must be first"):
            await peer.call("x")
    assert b"before subscribed, which must be first" in await heard
    server.close()


@pytest.mark.parametrize("by_client", [True, False])
async def test_half_close_of_tcp_is_a_close(by_client: bool) -> None:
    # docs/reference/rs-0.md, Goodbye: open streams have failed, and nothing more is sent.
    seen: list[object] = []
    reached = asyncio.Event()
    if by_client:
        async with weirpool.serve(make_service(seen, reached), "reactive-streams+tcp://127.0.0.1:0") as server:
            port = int(server.urls[0].rpartition(":")[2])
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"\x01\x00\x00\x03\x05never\x01\x01")
            await reached.wait()
            writer.write_eof()
            await until(lambda: server.connections == 0)
            await reader.read()
            assert "never ended" in seen
            writer.transport.abort()
        return

    async def publisher(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"\x02\x00\x00")
        await reader.readuntil(b"\x01\x01")
        writer.write_eof()
        await reader.read()
        writer.transport.abort()

    listener = await asyncio.start_server(publisher, "127.0.0.1", 0)
    async with weirpool.connect(f"reactive-streams+tcp://127.0.0.1:{listener.sockets[0].getsockname()[1]}") as peer:
        with pytest.raises(weirpool.LinkLost, match="without goodbye"):
            await peer.call("x")
    listener.close()


@pytest.mark.parametrize("made", ["list", "iterator", "coroutine", "arrow"])
async def test_items_of_one_size_are_packed_however_they_are_made(made: str) -> None:
    items = [b"%08d" % number for number in range(10_000)]
    service = Service()

    if made == "coroutine":

        @service.stream("ticks")
        async def slowly(request: Payload) -> AsyncIterator[bytes]:
            for item in items:
                yield item
    else:

        @service.stream("ticks")
        def ticks(request: Payload) -> Any:
            run = PayloadRun.of([Payload(item) for item in items])
            return {"list": items, "iterator": iter(items), "arrow": [run]}[made]

    metrics = weirpool.Metrics()
    settings = Settings(element_sizes=(("ticks", 8),))
    async with weirpool.serve(service, "reactive-streams+memory://packed", settings=settings) as server:
        async with weirpool.connect(
            server.urls[0], settings=Settings(credit=20_000, max_credit=20_000), taps=[metrics]
        ) as peer:
            async with peer.stream("ticks") as stream:
                assert [item.data async for item in stream] == items
    # A head for each turn of the stream, not for each item.
    assert metrics.snapshot().received_bytes < 8 * 10_000 + 4_000
