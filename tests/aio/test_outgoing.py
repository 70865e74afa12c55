"""Uploads and channels that a closing server refuses: their items are sent elsewhere, all of them and once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest

import weirpool
from tests.waiting import until
from weirpool import Items, Payload, Reconnect, Rejected, Service, Settings
from weirpool.aio.outgoing import DEMAND

pytestmark = pytest.mark.usefixtures("tidy")

QUICK = Reconnect(first_delay=0.001, longest_delay=0.01)
ITEMS = [b"1", b"2", b"3"]
HINT: ContextVar[str] = ContextVar("hint", default="none")


def generated() -> Iterator[bytes]:
    yield from ITEMS


async def awaited() -> AsyncIterator[bytes]:
    for item in ITEMS:
        await asyncio.sleep(0)
        yield item


SOURCES = pytest.mark.parametrize("source", [generated, awaited, lambda: list(ITEMS)], ids=["plain", "async", "list"])
KINDS = pytest.mark.parametrize("kind", ["upload", "channel"])


class Closing:
    """A server that begins to close while a call holds it open, and its successor.

    Attributes:
        started: The uploads and channels that handlers of both have started.

    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.held = asyncio.Event()
        self.release = asyncio.Event()
        self.started = 0

    def service(self) -> Service:
        service = Service()

        @service.call("one.hold")
        async def hold(request: Payload) -> bytes:
            self.held.set()
            await self.release.wait()
            return b"0"

        @service.upload("one.upload")
        async def upload(request: Payload, items: Items) -> bytes:
            self.started += 1
            return b"".join([item.data async for item in items])

        @service.channel("one.channel")
        async def channel(request: Payload, items: Items) -> AsyncIterator[Payload]:
            self.started += 1
            async for item in items:
                yield item

        return service

    async def send(self, peer: weirpool.Peer, kind: str, source: Any) -> bytes:
        if kind == "upload":
            return (await peer.upload("one.upload", b"0", source)).data
        return b"".join([item.data async for item in peer.channel("one.channel", b"0", source)])


@asynccontextmanager
async def closing(url: str, **options: Any) -> AsyncIterator[tuple[Closing, weirpool.Peer]]:
    """A client of a server that has begun to close. Its successor takes over as soon as the client may leave."""
    it = Closing(url)
    old = await weirpool.serve(it.service(), url)
    async with weirpool.connect(url, **options) as peer:
        held = asyncio.ensure_future(peer.call("one.hold", b"0"))
        await it.held.wait()
        ending = asyncio.ensure_future(old.close())
        await until(lambda: old._closing)
        new = await weirpool.serve(it.service(), url)
        try:
            yield it, peer
        finally:
            it.release.set()
            await held
            await ending
            await peer.close()
            await new.close()


@KINDS
@SOURCES
async def test_items_of_a_refused_request_are_sent_elsewhere(kind: str, source: Callable[[], Any]) -> None:
    async with closing("rsocket+memory://refused", reconnect=QUICK) as (it, peer):
        assert await it.send(peer, kind, source()) == b"123"
        assert it.started == 1


@KINDS
async def test_river_sends_a_list_elsewhere(kind: str) -> None:
    async with closing("river+memory://refused", reconnect=QUICK) as (it, peer):
        assert await it.send(peer, kind, list(ITEMS)) == b"123"
        assert it.started == 1


@KINDS
async def test_river_has_read_a_generator_and_says_so(kind: str) -> None:
    # River has no credit for a client's items, so they are read at once.
    async with closing("river+memory://refused", reconnect=QUICK) as (it, peer):
        with pytest.raises(Rejected, match="the connection is closing"):
            await it.send(peer, kind, generated())
        assert it.started == 0


@KINDS
@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2"])
async def test_source_of_a_refused_request_is_unread(protocol: str, kind: str) -> None:
    async with closing(f"{protocol}+memory://refused") as (it, peer):
        source = generated()
        with pytest.raises(Rejected, match="the connection is closing"):
            await it.send(peer, kind, source)
        assert list(source) == ITEMS


@KINDS
async def test_source_runs_in_the_context_of_its_request(kind: str) -> None:
    seen: list[str] = []

    def noting() -> Iterator[bytes]:
        seen.append(HINT.get())
        yield from ITEMS

    async def ask(it: Closing, peer: weirpool.Peer) -> None:
        HINT.set("mine")
        assert await it.send(peer, kind, noting()) == b"123"

    async with closing("rsocket+memory://refused", reconnect=QUICK) as (it, peer):
        await asyncio.create_task(ask(it, peer))
    assert seen == ["mine"]


async def test_upload_that_is_one_too_many_is_sent_later() -> None:
    it = Closing("rsocket+memory://many")
    async with weirpool.serve(it.service(), it.url, settings=Settings(max_streams=1)):
        async with weirpool.connect(it.url) as peer:
            found = await asyncio.gather(*(it.send(peer, "upload", generated()) for _ in range(5)))
    assert found == [b"123"] * 5
    assert it.started == 5


async def test_coroutine_that_returns_items_is_awaited() -> None:
    it = Closing("rsocket+memory://awaited")

    async def later() -> list[bytes]:
        return ITEMS

    async with weirpool.serve(it.service(), it.url), weirpool.connect(it.url) as peer:
        assert await it.send(peer, "upload", later()) == b"123"


async def test_source_can_ask_what_the_peer_has_requested() -> None:
    it = Closing("rsocket+memory://demand")
    asked: list[int] = []

    async def curious() -> AsyncIterator[bytes]:
        for item in ITEMS:
            demand = DEMAND.get()
            assert demand is not None
            asked.append(demand())
            yield item

    async with weirpool.serve(it.service(), it.url), weirpool.connect(it.url) as peer:
        assert await it.send(peer, "upload", curious()) == b"123"
    assert len(asked) == len(ITEMS) and asked[0] - asked[-1] == len(ITEMS) - 1
    assert DEMAND.get() is None
