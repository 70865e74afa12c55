"""Requests of the page against a real server: their items, their demand and their ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weirpool
from tests.reflection.quotes import service
from tests.waiting import turns
from weirpool import LocalError, Service
from weirpool.aio.peer import Peer
from weirpool.tryit.running import MAX_PENDING, MAX_WAITING, Running, Start
from weirpool.tryit.texts import Texts

URL = "rsocket+memory://running"
SETTINGS = weirpool.Settings(data_mime="application/json")


class Page:
    """Receives reports. It shows items at once, unless `slow`."""

    def __init__(self) -> None:
        self.items: list[str] = []
        self.last: dict[str, Any] = {}
        self.end: dict[str, Any] = {}
        self.running: Running | None = None
        self.slow = False
        self._changed = asyncio.Condition()

    async def report(self, message: dict[str, Any]) -> None:
        async with self._changed:
            if message["type"] == "items":
                self.items += [each["text"] for each in message["items"]]
                self.last = message
                if not self.slow and self.running is not None:
                    self.running.shown()
            else:
                self.end = message
            self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self._changed:
            await self._changed.wait_for(condition)


@asynccontextmanager
async def running(start: Start, served: Service = service) -> AsyncIterator[tuple[Running, Page]]:
    """Run a request until the block ends."""
    page = Page()
    made = page.running = Running(start, Texts(URL), None, page.report)
    async with weirpool.serve(served, URL), weirpool.connect(URL, settings=SETTINGS) as peer:
        task = asyncio.create_task(made.run(peer))
        try:
            yield made, page
        finally:
            task.cancel()
            await task


async def test_a_call() -> None:
    async with running(Start("call", "quotes.latest", '{"name": "ACME"}')) as (_, page):
        await page.until(lambda: bool(page.end))
    assert page.items == ['{"symbol":"ACME","price":1.5}'] and page.end["how"] == "completed"


async def test_a_fire_has_no_items() -> None:
    async with running(Start("fire", "log", "line")) as (_, page):
        await page.until(lambda: bool(page.end))
    assert page.items == [] and page.end["how"] == "completed"


async def test_an_error_has_its_text_and_data() -> None:
    async with running(Start("call", "quotes.latest", '{"name": "?"}')) as (_, page):
        await page.until(lambda: bool(page.end))
    assert page.end["how"] == "failed" and "UNKNOWN_SYMBOL" in str(page.end)


async def test_a_stream_sends_what_is_requested_and_no_more() -> None:
    sent = 0
    counted = Service()

    @counted.stream("count")
    async def count(request: weirpool.Payload) -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield str(sent).encode()

    async with running(Start("stream", "count", demand=3), counted) as (made, page):
        await page.until(lambda: len(page.items) == 3)
        assert page.last["outstanding"] == 0
        made.request(4)
        await page.until(lambda: len(page.items) == 7)
        # The handler may be asked for the next item, which has no credit yet.
        assert sent <= 8
        made.automatic(True)
        await page.until(lambda: len(page.items) > 500)
        made.automatic(False)
        await page.until(lambda: page.last["outstanding"] == 0)
    assert page.end["how"] == "canceled"


async def test_a_page_that_shows_nothing_stops_the_stream() -> None:
    sent = 0
    fast = Service()

    @fast.stream("count")
    async def count(request: weirpool.Payload) -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield b"x"

    async with running(Start("stream", "count", demand=50, auto=True), fast) as (_, page):
        page.slow = True
        await page.until(lambda: len(page.items) > 0)
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert sent <= 2 * MAX_PENDING + 100


async def test_an_upload_sends_items_one_by_one() -> None:
    async with running(Start("upload", "orders.load", '{"name": "A"}')) as (made, page):
        for count in (2, 3):
            made.send(f'{{"symbol": {{"name": "A"}}, "count": {count}}}')
        await page.until(lambda: page.last.get("taken") == 2)
        made.send(None)
        await page.until(lambda: bool(page.end))
    assert page.items == ["5"]


async def test_a_channel_shows_what_was_requested() -> None:
    async with running(Start("channel", "orders.echo", '{"name": "A"}', demand=1)) as (made, page):
        for count in (1, 2, 3):
            made.send(f'{{"symbol": {{"name": "A"}}, "count": {count}}}')
        await page.until(lambda: len(page.items) == 1)
        made.request(2)
        await page.until(lambda: len(page.items) == 3)
        made.send(None)
        await page.until(lambda: bool(page.end))
    assert page.end["how"] == "completed" and page.end["received"] == 3


async def test_a_channel_receives_no_more_than_what_was_requested() -> None:
    endless, made = Service(), [0]

    @endless.channel("numbers")
    def numbers(request: weirpool.Payload, items: weirpool.Items) -> Iterator[bytes]:
        while True:
            made[0] += 1
            yield b"%d" % made[0]

    async with running(Start("channel", "numbers", "0", demand=3), endless) as (running_one, page):
        await page.until(lambda: len(page.items) == 3)
        running_one.request(2)
        await page.until(lambda: len(page.items) == 5)
        await turns(100)
        assert page.items == ["1", "2", "3", "4", "5"]
        # One more is taken ahead of credit.
        assert made[0] == 6


async def test_items_that_the_server_does_not_take_are_refused() -> None:
    idle = Service()

    @idle.upload("never")
    async def never(request: weirpool.Payload, items: weirpool.Items) -> bytes:
        await asyncio.Event().wait()
        return b""

    made = Running(Start("upload", "never"), Texts(URL), None, Page().report)
    for _ in range(MAX_WAITING):
        made.send("x")
    with pytest.raises(LocalError, match="has not taken"):
        made.send("x")


async def test_data_that_cannot_be_sent_fails() -> None:
    page = Page()
    made = page.running = Running(Start("call", "a.b", "{"), Texts("river+memory://none"), None, page.report)
    async with weirpool.serve(service, "river+memory://none"), weirpool.connect("river+memory://none") as peer:
        assert isinstance(peer, Peer)
        await made.run(peer)
    assert page.end["how"] == "failed"
