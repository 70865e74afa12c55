"""What every transport must carry, with a real client and a real server. A new transport is a line in PLACES."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

import weirpool
from tests.transports.every import KIB, MIB, PLACES, Place, make_place, world
from tests.waiting import turns, until
from weirpool import ApplicationError, LinkLost, Payload, PeerClosed, Service, Settings
from weirpool.aio.connectors import Direct
from weirpool.aio.peer import Peer
from weirpool.transports import MODULES

HELD = 1 << 20
"""A reason of these tests not to read. A link that is only paused is read again when its turn has ended."""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each transport in turn."""
    return make_place(request.param, "rsocket", tmp_path)


@pytest.fixture(params=[f"{protocol}+{name}" for protocol in ("rsocket", "reactive-streams") for name in PLACES])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each transport in turn, with two protocols: for what both of them can."""
    protocol, _, name = request.param.partition("+")
    return make_place(name, protocol, tmp_path)


def test_every_transport_is_here() -> None:
    assert sorted(PLACES) == sorted(MODULES)


# Interactions.


async def test_all_kinds_of_interactions(place: Place) -> None:
    async with world(place) as w:
        answer = await w.peer.call("echo", b"data", metadata=None)
        assert answer.data == b"data"
        await w.peer.fire("log", b"fired")
        await w.reached.wait()
        assert w.seen == [b"fired"]
        async with w.peer.stream("count", b"1000") as items:
            assert [item.data async for item in items] == [b"%d" % number for number in range(1_000)]
        assert (await w.peer.upload("sum", b"", [b"1", b"2", b"3"])).data == b"6"
        async with w.peer.channel("double", b"", [b"1", b"2", b"3"]) as items:
            assert [item.data async for item in items] == [b"2", b"4", b"6"]
        w.reached.clear()
        await w.peer.push(b"pushed")
        await w.reached.wait()
        assert w.seen[-1] == b"pushed"


async def test_many_calls_at_once(either: Place) -> None:
    async with world(either) as w:
        data = [b"%d" % number for number in range(1_000)]
        answers = await asyncio.gather(*(w.peer.call("later", each) for each in data))
        assert [answer.data for answer in answers] == data


async def test_an_error_of_a_handler_arrives_as_it_was(either: Place) -> None:
    async with world(either) as w:
        with pytest.raises(ApplicationError, match=r"\[0x301\] boom"):
            await w.peer.call("fail")
        assert (await w.peer.call("echo", b"still here")).data == b"still here"


async def test_a_server_calls_its_client_back(either: Place) -> None:
    answering = Service()

    @answering.call("name")
    def name(request: Payload) -> bytes:
        return b"client"

    @answering.stream("count")
    def count(request: Payload) -> Iterator[bytes]:
        return (b"%d" % number for number in range(int(request.data)))

    async with world(either, service=answering) as w:
        await w.peer.call("echo")
        back = Peer(Direct(w.there))
        assert (await back.call("name")).data == b"client"
        async with back.stream("count", b"1000") as items:
            assert len([item async for item in items]) == 1_000


# Much.


@pytest.mark.slow
async def test_a_channel_of_200000_items_each_way(place: Place) -> None:
    count = 200_000
    async with world(place) as w:
        taken = 0
        async with w.peer.channel("mirror", b"", (b"%06d" % number for number in range(count))) as items:
            async for item in items:
                assert item.data == b"%06d" % taken
                taken += 1
        assert taken == count


@pytest.mark.slow
async def test_a_large_payload_travels_both_ways_in_fragments(place: Place) -> None:
    data = bytes(range(256)) * (place.large // 256)
    async with world(place) as w:
        assert (await w.peer.call("echo", data)).data == data


async def test_a_large_answer_is_whole(either: Place) -> None:
    async with world(either) as w:
        assert (await w.peer.call("large", b"%d" % either.large)).data == bytes(range(256)) * (either.large // 256)
        async with w.peer.stream("count", b"1000") as items:
            assert [item.data async for item in items] == [b"%d" % number for number in range(1_000)]


@pytest.mark.slow
async def test_a_very_large_payload_travels_both_ways(place: Place) -> None:
    data = bytes(range(256)) * (6 * place.large // 256)
    settings = Settings(max_payload_bytes=101 * MIB, max_output_bytes=128 * MIB)
    async with world(place, settings) as w:
        assert (await w.peer.call("echo", data)).data == data


@pytest.mark.slow
async def test_others_are_served_while_a_large_payload_travels(place: Place) -> None:
    async with world(place) as w:
        large = asyncio.create_task(w.peer.call("echo", bytes(place.large)))
        for number in range(20):
            assert (await w.peer.call("echo", b"%d" % number)).data == b"%d" % number
        assert len((await large).data) == place.large


@pytest.mark.slow
async def test_a_peer_that_does_not_read_costs_no_memory(either: Place) -> None:
    count = 5_000
    async with world(either) as w:
        async with w.peer.stream("heavy", b"%d" % count, credit=count) as items:
            first = await anext(aiter(items))
            w.here.flow.stop_reading(HELD)
            tracemalloc.start()
            try:
                await until(lambda: w.there.flow.paused)
                await turns(100)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            # What was produced lies in the network's own buffers, which hold some MiB, and no more is.
            waiting = w.there.flow.link.get_write_buffer_size()
            assert waiting < 4 * w.there.settings.output_high_bytes
            assert peak < 8 * MIB
            assert len(w.seen) * 10 * KIB < 32 * MIB < count * 10 * KIB
            w.here.flow.resume_reading(HELD)
            rest = [len(item.data) async for item in items]
        assert [len(first.data), *rest] == [10 * KIB] * count


@pytest.mark.slow
async def test_link_reports_bytes_taken_by_the_peers_system(place: Place) -> None:
    # THREATS 91
    async with world(place) as w:
        async with w.peer.stream("heavy", b"2000", credit=2_000) as items:
            taking = aiter(items)
            await anext(taking)
            w.here.flow.stop_reading(HELD)
            await until(lambda: w.there.flow.paused)
            await turns(100)
            waiting, before = w.there.flow.link.progress()
            assert waiting > 100_000
            w.here.flow.resume_reading(HELD)
            assert len([item async for item in taking]) == 1_999
            waiting, after = w.there.flow.link.progress()
            assert after > before


# Ends of streams.


async def test_closed_half_keeps_the_other_open(place: Place) -> None:
    async with world(place) as w:
        async with w.peer.channel("last", b"", [b"x"] * 1_000) as items:
            taken = [item.data async for item in items]
        assert w.seen == ["their half is closed"]
        assert taken == [b"%d" % number for number in range(1_000)]


async def test_a_server_that_has_enough_ends_both_halves(place: Place) -> None:
    asked = 0

    def endless() -> Iterator[bytes]:
        nonlocal asked
        while True:
            asked += 1
            yield b"x"

    async with world(place) as w:
        async with w.peer.channel("enough", b"", endless()) as items:
            assert [item.data async for item in items] == [b"x"]
        await w.peer.call("echo")
        before = asked
        await turns(20)
        assert asked == before


async def test_a_stream_that_is_canceled_ends_its_handler(either: Place) -> None:
    async with world(either) as w:
        async with w.peer.stream("acount", b"1000000", credit=10) as items:
            await anext(aiter(items))
        await w.reached.wait()
        assert w.seen == ["closed"]


async def test_a_call_that_is_canceled_ends_its_handler(either: Place) -> None:
    async with world(either) as w:
        call = asyncio.create_task(w.peer.call("never"))
        await w.reached.wait()
        call.cancel()
        await until(lambda: w.seen == ["never ended"])


# Ends of links.


async def test_a_client_that_closes_is_gone_in_order(either: Place) -> None:
    async with world(either) as w:
        await w.peer.call("echo")
        driver = w.there
        call = asyncio.create_task(w.peer.call("later", b"in flight"))
        await turns(1)
        await w.peer.close()
        # What was in flight has come back, and each side closed in order.
        assert (await call).data == b"in flight"
        assert (w.peer.closed, w.here.error) == (True, None)
        await until(lambda: w.server.connections == 0)
        assert isinstance(driver.error, PeerClosed)
        async with w.connect() as other:
            assert (await other.call("echo", b"x")).data == b"x"


async def test_closing_server_finishes_calls_and_closes_clients(either: Place) -> None:
    async with world(either) as w:
        call = asyncio.create_task(w.peer.call("later", b"in flight"))
        await w.peer.call("echo")
        driver = w.there
        await w.server.close()
        assert (await call).data == b"in flight"
        await until(lambda: w.peer.closed)
        assert driver.error is None and w.server.connections == 0
        with pytest.raises(weirpool.WeirpoolError):
            await w.peer.call("echo")


@pytest.mark.parametrize("by", ["client", "server"])
async def test_abort_fails_open_streams(either: Place, by: str) -> None:
    async with world(either) as w:
        call = asyncio.create_task(w.peer.call("never"))
        await w.reached.wait()
        driver = w.there
        (w.here if by == "client" else driver).link.abort()
        with pytest.raises(LinkLost):
            await call
        await until(lambda: w.server.connections == 0)
        await until(lambda: w.seen == ["never ended"])
        assert isinstance(driver.error, LinkLost)


async def test_a_session_is_resumed_when_its_link_is_cut(place: Place) -> None:
    count = 3_000
    async with world(place, Settings(resume=True)) as w:
        taken = 0
        async with w.peer.stream("count", b"%d" % count, credit=50) as items:
            async for item in items:
                assert int(item.data) == taken
                taken += 1
                if taken in (100, 700, 1_500):
                    await until(lambda: w.here.flow.link is not None and w.there.flow.link is not None)
                    (w.here if taken == 700 else w.there).link.abort()
        assert taken == count
        assert w.server.connections == 1
