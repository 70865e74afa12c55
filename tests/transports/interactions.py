"""Checks for every transport: all kinds of interaction between our client and server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import count

import pytest

import weirpool
from tests.aio.serving import World, make_service
from tests.transports.recording import Place, Recorder, connected
from tests.waiting import until
from weirpool import ConnectError, Settings

MANY = 200_000


@asynccontextmanager
async def serving(
    url: str, to_client: Callable[[str], str] = str, settings: Settings | None = None
) -> AsyncIterator[World]:
    """Give a client and its server over the transport of `url`; `to_client` makes the client's URL of the server's."""
    seen: list[object] = []
    reached = asyncio.Event()
    service = make_service(seen, reached)
    service.push(seen.append)

    @service.stream("endless")
    def endless(request: weirpool.Payload) -> AsyncIterator[bytes] | object:
        for number in count():
            seen.append(number)
            yield bytes(10_000)

    async with weirpool.serve(service, url, settings=settings) as server:
        async with weirpool.connect(to_client(server.urls[0]), settings=settings) as peer:
            yield World(peer, server, seen, reached)


async def check_every_kind(world: World) -> None:
    """Call, fire, stream, upload, channel and push."""
    peer = world.peer
    assert (await peer.call("echo", b"hello")).data == b"hello"
    await peer.fire("log", b"fired")
    async with peer.stream("count", b"1000") as items:
        assert [int(item.data) async for item in items] == list(range(1000))
    assert (await peer.upload("sum", b"0", (b"%d" % number for number in range(1000)))).data == b"499500"
    async with peer.channel("double", b"0", (b"%d" % number for number in range(1, 100))) as items:
        assert [int(item.data) async for item in items] == list(range(2, 200, 2))
    await peer.push(b"pushed")
    await until(lambda: b"pushed" in world.seen)
    assert b"fired" in world.seen


async def check_a_large_channel(world: World) -> None:
    """Send `MANY` items in both directions at once."""
    total = items = 0
    async with world.peer.channel("double", b"0", (b"%d" % number for number in range(MANY))) as channel:
        async for item in channel:
            items += 1
            total += int(item.data)
    assert (items, total) == (MANY, MANY * (MANY - 1))


async def check_a_large_payload(world: World) -> None:
    """Send 16 MiB in both directions."""
    data = os.urandom(16 * 1024 * 1024)
    assert (await world.peer.call("echo", data)).data == data


async def check_a_cancel(world: World) -> None:
    """Cancel a call and a stream, and continue to use the connection."""
    task = asyncio.create_task(world.peer.call("never"))
    await world.reached.wait()
    task.cancel()
    await until(lambda: "never ended" in world.seen)
    async with world.peer.stream("acount", b"1000000000") as items:
        async for _ in items:
            break
    await until(lambda: "closed" in world.seen)
    assert (await world.peer.call("echo", b"still here")).data == b"still here"


async def check_a_slow_consumer(world: World) -> None:
    """Check that no more items are sent than a consumer requests."""
    async with world.peer.stream("endless", credit=4) as items:
        await anext(aiter(items))
        assert (await world.peer.call("echo", b"meanwhile")).data == b"meanwhile"
        assert len(world.seen) < 20


async def check_another_link(world: World) -> None:
    """Break the link of a resumable session, and continue over the next one."""
    assert (await world.peer.call("echo", b"once")).data == b"once"
    (driver,) = world.server._drivers.values()
    first = driver.flow.link
    assert first is not None
    first.abort()
    await until(lambda: driver.flow.link not in (None, first))
    assert (await world.peer.call("echo", b"again")).data == b"again"


async def check_last_words(client: Recorder, server: Recorder) -> None:
    """Close a link after a large write: all of it arrives, and both ends close in order."""
    data = bytes(5_000_000)
    client.link.write(data)
    client.link.close()
    client.link.close()
    await server.has(data)
    assert await server.lost() is None
    assert await client.lost() is None


async def check_bytes_both_ways(client: Recorder, server: Recorder) -> None:
    """Check that simultaneous output of both ends arrives in order, without other events."""
    for number in range(10):
        client.link.write(b"%d" % number)
        server.link.write(b"%d" % (9 - number))
    await server.has(b"0123456789")
    await client.has(b"9876543210")
    assert (client.told, server.told) == (["made"], ["made"])


async def check_closed_listener(place: Place) -> None:
    """Check that a closed listener accepts no links, and that its accepted links continue."""
    client = await connected(place.url)
    server = await place.linked()
    await place.listener.close()
    with pytest.raises(ConnectError, match="refused"):
        await connected(place.url)
    client.link.write(b"still here")
    await server.has(b"still here")
    client.link.close()
    assert (await server.lost(), await client.lost()) == (None, None)
