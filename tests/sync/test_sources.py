from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar

import pytest

import weirpool
import weirpool.sync
from weirpool import ApplicationError, Items, Payload, Service
from weirpool.sync import Peer
from weirpool.sync.sources import ThreadSource, source_of

NAME: ContextVar[str] = ContextVar("name")


def test_lists_and_async_sources_are_not_read_in_a_thread() -> None:
    async def later() -> AsyncIterator[bytes]:
        yield b""

    items = later()
    assert source_of(items) is items
    assert source_of([b"x"]) == [b"x"] and source_of((b"x",)) == (b"x",)
    assert isinstance(source_of(iter([b"x"])), ThreadSource)


def test_source_that_blocks_does_not_hold_up_others(peer: Peer) -> None:
    def blocking() -> Iterator[bytes]:
        yield b"1"
        # Another request, while the loop waits for this item.
        yield peer.call("echo", b"2").data

    assert peer.upload("sum", b"", blocking()).data == b"3"


def test_items_are_sent_as_soon_as_the_source_yields_them(peer: Peer) -> None:
    arrived = threading.Event()

    def slow() -> Iterator[bytes]:
        yield b"first"
        assert arrived.wait(10)
        yield b"second"

    with peer.channel("back", b"", slow()) as items:
        answers = iter(items)
        assert next(answers).data == b"first"
        arrived.set()
        assert next(answers).data == b"second"


def test_source_is_read_only_as_far_as_the_peer_requests() -> None:
    service = Service()
    read = 0

    @service.channel("three")
    async def three(request: Payload, items: Items) -> AsyncIterator[Payload]:
        async for item in items:
            yield item

    def numbers() -> Iterator[bytes]:
        nonlocal read
        for number in range(10_000):
            read += 1
            yield b"%d" % number

    with weirpool.sync.serve(
        service, "rsocket+tcp://127.0.0.1:0", settings=weirpool.Settings(credit=8, max_credit=8)
    ) as server:
        with weirpool.sync.connect(server.urls[0]) as peer, peer.channel("three", b"", numbers(), credit=4) as items:
            next(iter(items))
            for _ in range(5):
                with pytest.raises(ApplicationError):
                    peer.call("nothing")
            # What the handler has taken, its window, our window, and an item ahead at each side.
            assert read <= 8 + 8 + 4 + 3


def test_source_that_fails_fails_the_request(peer: Peer) -> None:
    def failing() -> Iterator[bytes]:
        yield b"1"
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        peer.upload("sum", b"", failing())
    assert peer.call("echo", b"on").data == b"on"


def test_canceled_source_is_closed_in_its_thread(peer: Peer) -> None:
    closed: list[str] = []
    done = threading.Event()

    def endless() -> Iterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            closed.append(threading.current_thread().name)
            done.set()

    with peer.channel("back", b"", endless()) as items:
        next(iter(items))
    assert done.wait(10)
    assert closed == ["weirpool-source"]


def test_source_runs_in_the_context_of_the_caller(peer: Peer) -> None:
    NAME.set("ada")
    assert peer.channel("back", b"", (NAME.get() for _ in range(1))).to_arrow()["data"].to_pylist() == [b"ada"]


async def test_items_and_errors_come_through_without_demand() -> None:
    def failing() -> Iterator[bytes]:
        yield b"1"
        yield b"2"
        raise ValueError("no more")

    source = ThreadSource(failing())
    found = []
    with pytest.raises(ValueError, match="no more"):
        while True:
            found.append(await anext(source))
    assert found == [b"1", b"2"]
    assert [item async for item in source] == []


async def test_source_that_was_closed_yields_nothing_more() -> None:
    source = ThreadSource(iter(range(3)))
    assert await anext(source) == 0
    await source.aclose()
    assert [item async for item in source] == []


async def test_thousands_of_items_cross_without_a_lost_wakeup() -> None:
    source = ThreadSource(iter(range(20_000)))
    assert [item async for item in source] == list(range(20_000))
    other = ThreadSource(range(100))
    assert [await asyncio.wait_for(anext(other), 10) for _ in range(100)] == list(range(100))
    await other.aclose()
