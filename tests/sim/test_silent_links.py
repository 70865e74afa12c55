"""Clients that open links and send nothing, and an honest client that comes among them (THREATS 94, 95)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from contextlib import suppress
from itertools import count
from typing import Any
from unittest import mock

import pytest

import weirpool
from weirpool import ConnectError, Reconnect, Service, Settings
from weirpool.transports import Discard, memory
from weirpool.transports.places import SPARED_SECONDS
from weirpool.urls import parse_url

from .clockwork import network, passing, run
from .links import Road

URL = "rsocket+memory://silent"
ROUND_TRIP = 0.2
LIMIT = 4


class Junk(Discard):
    """A client that opens links and sends nothing; if it `refills`, it opens another one for each that ends."""

    def __init__(self, *, refills: bool) -> None:
        self._refills = refills
        self._tasks = set[asyncio.Future[None]]()
        self.attempts = 0

    def open(self) -> None:
        """Open another link, if the server accepts it."""
        self.attempts += 1
        task = asyncio.ensure_future(self._open())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def flood(self, count: int, seconds: float) -> None:
        """Open `count` links together, again and again."""
        while True:
            for _ in range(count):
                self.open()
            await asyncio.sleep(seconds)

    async def _open(self) -> None:
        with suppress(ConnectError):
            await memory.connect(parse_url(URL), self, Settings(), None)

    def link_made(self, link: Any) -> None:
        """Keep the link."""

    def link_lost(self, error: Exception | None) -> None:
        if self._refills:
            self.open()


def serve(settings: Settings, addresses: Any) -> weirpool.Server:
    """Return a server whose links come from `addresses`, one after the other."""
    service = Service()

    @service.call("echo")
    def echo(request: weirpool.Payload) -> bytes:
        return request.data

    server = weirpool.serve(service, URL, settings=settings)
    made = server._accepting

    def accepting(*arguments: Any) -> Any:
        accept = made(*arguments)
        return lambda address, *others: accept(next(addresses), *others)

    server._accepting = accepting  # type: ignore[method-assign]
    return server


async def is_served() -> bool:
    patience = Reconnect(first_delay=0.1, longest_delay=0.5, initial=True)
    async with weirpool.connect(URL, reconnect=patience, confirm=True) as peer:
        return bytes((await peer.call("echo", b"x")).data) == b"x"


def simulate(main: Coroutine[Any, Any, None]) -> None:
    drawn = random.Random(7)
    with (
        mock.patch("weirpool.transports.places.random", drawn.random),
        mock.patch("weirpool.aio.reconnect.random", drawn),
        network(lambda _: (Road(delay=ROUND_TRIP / 2), Road(delay=ROUND_TRIP / 2))),
    ):
        run(main, limit=600.0)


ONE_ADDRESS = (Settings(max_connections_per_address=LIMIT), lambda: iter(lambda: "192.0.2.66", ""))
MANY_ADDRESSES = (Settings(max_connections=LIMIT), lambda: (f"192.0.2.{number % 250}" for number in count()))
CROWDS = pytest.mark.parametrize(("settings", "addresses"), [ONE_ADDRESS, MANY_ADDRESSES], ids=["one", "many"])


@CROWDS
def test_silent_links_keep_no_client_out(settings: Settings, addresses: Any) -> None:
    async def main() -> None:
        junk = Junk(refills=True)
        async with serve(settings, addresses()) as server:
            for _ in range(LIMIT):
                junk.open()
            await passing(lambda: len(server._arrivals) == LIMIT)
            # They are replaced several times by then. A client that finds none that is old enough tries again.
            for seconds in (2.0, 7.3, 20.1):
                await asyncio.sleep(seconds)
                async with asyncio.timeout(3 * SPARED_SECONDS):
                    assert await is_served()

    simulate(main())


# One by one, ten times as many as would all get a place; or all places together, as soon as nobody is spared any more.
@pytest.mark.parametrize(
    ("together", "interval"), [(1, SPARED_SECONDS / LIMIT / 10), (2 * LIMIT, SPARED_SECONDS)], ids=["steady", "bursts"]
)
@CROWDS
def test_client_that_tries_again_is_served_during_a_flood(
    settings: Settings, addresses: Any, together: int, interval: float
) -> None:
    async def main() -> None:
        junk = Junk(refills=False)
        async with serve(settings, addresses()) as server:
            flood = asyncio.ensure_future(junk.flood(together, interval))
            await passing(lambda: junk.attempts > 50)
            for _ in range(5):
                async with asyncio.timeout(20.0):
                    assert await is_served()
            # Neither does the flood make the server hold more links.
            assert len(server._arrivals) <= 2 * LIMIT + 64
            flood.cancel()

    simulate(main())
