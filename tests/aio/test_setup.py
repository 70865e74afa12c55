from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

import weirpool
from weirpool import Items, LocalError, Payload, Service, Settings, current_connection
from weirpool.urls import fitting

PLACES = ("rsocket+memory://current", "river+memory://current")


def service() -> Service:
    made = Service()

    def who() -> bytes:
        return b'"%s"' % str(current_connection().identity).encode()

    @made.call("who.plain")
    def plain(request: Payload) -> bytes:
        return who()

    @made.call("who.later")
    async def later(request: Payload) -> bytes:
        return who()

    @made.stream("who.often")
    def often(request: Payload) -> Iterator[bytes]:
        for _ in range(1_000):
            yield who()

    @made.stream("who.slowly")
    async def often_later(request: Payload) -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield who()

    @made.upload("who.up")
    async def up(request: Payload, items: Items) -> bytes:
        async for _ in items:
            pass
        return who()

    return made


async def said(peer: weirpool.Peer, route: str) -> set[bytes]:
    async with peer.stream(route) as items:
        return {item.data async for item in items}


@pytest.mark.parametrize("url", PLACES)
async def test_handlers_of_all_kinds_know_their_connection(url: str) -> None:
    def accept(setup: weirpool.Setup) -> weirpool.Admitted:
        return weirpool.Admitted(setup.payload.data.decode().strip('"'))

    offered = service()
    settings = fitting(Settings(credit=16, max_credit=16, max_unacked=64), url)
    async with weirpool.serve(offered, url, acceptor=accept, settings=settings):
        async with (
            weirpool.connect(url, setup=b'"ann"', settings=settings) as ann,
            weirpool.connect(url, setup=b'"bob"', settings=settings) as bob,
        ):
            for peer, name in ((ann, b'"ann"'), (bob, b'"bob"')):
                assert (await peer.call("who.plain")).data == name
                assert (await peer.call("who.later")).data == name
                assert (await peer.upload("who.up", b"{}", [b"1"])).data == name
            # Both are served in turns.
            assert await asyncio.gather(said(ann, "who.often"), said(bob, "who.often")) == [{b'"ann"'}, {b'"bob"'}]
            assert await said(ann, "who.slowly") == {b'"ann"'}


@pytest.mark.parametrize("url", PLACES)
async def test_current_connection_needs_nothing_installed(url: str) -> None:
    made = Service()

    @made.call("where.plain")
    def plain(request: Payload) -> bytes:
        return b'"%s"' % current_connection().protocol.encode()

    @made.call("where.later")
    async def later(request: Payload) -> bytes:
        await asyncio.sleep(0)
        return b'"%d"' % len(current_connection().setup.data)

    @made.stream("where.often")
    def often(request: Payload) -> Iterator[bytes]:
        for _ in range(1_000):
            yield b'"%d"' % current_connection().is_client

    settings = fitting(Settings(credit=16, max_credit=16, max_unacked=64), url)
    async with weirpool.serve(made, url, settings=settings) as server:
        async with weirpool.connect(url, setup=b'"me"', settings=settings) as peer:
            protocol = url.partition("+")[0].encode()
            assert (await peer.call("where.plain")).data == b'"%s"' % protocol
            assert (await peer.call("where.later")).data == b'"4"'
            assert await said(peer, "where.often") == {b'"0"'}
        assert len(server.urls) == 1


async def test_current_connection_raises_outside_handlers() -> None:
    with pytest.raises(LocalError, match="in a handler"):
        current_connection()
