"""Receivers that record the events of a link, and listeners."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from weirpool import transports
from weirpool.settings import DEFAULT_SETTINGS, Settings
from weirpool.transports import HangUp, Link, Listener, Refused
from weirpool.urls import parse_url

TCP = "rsocket+tcp://127.0.0.1:0"
SHORT_TIMEOUT = Settings(connect_timeout=0.05)
"""For peers that never answer."""


class Recorder:
    """A receiver that records everything.

    Attributes:
        link: The link, once there is one.
        told: What happened, but for the data, in order.
        data: What came in, all together.
        reads: How many pieces that were.
        error: With what the link was lost.

    """

    def __init__(self) -> None:
        self.link: Any = None
        self.told: list[str] = []
        self.data = b""
        self.reads = 0
        self.error: Exception | None = None
        self._changed = asyncio.Event()

    def link_made(self, link: Link) -> None:
        self.link = link
        self._note("made")

    def received(self, data: bytes) -> None:
        self.data += data
        self.reads += 1
        self._changed.set()

    def writing_paused(self) -> None:
        self._note("paused")

    def writing_resumed(self) -> None:
        self._note("resumed")

    def link_lost(self, error: Exception | None) -> None:
        self.error = error
        self._note("lost")

    def _note(self, what: str) -> None:
        self.told.append(what)
        self._changed.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` is true."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    async def lost(self) -> Exception | None:
        """Wait for the end, and return its error."""
        await self.until(lambda: "lost" in self.told)
        return self.error

    async def has(self, data: bytes) -> None:
        """Wait until exactly this data was received."""
        await self.until(lambda: len(self.data) >= len(data))
        assert self.data == data


class Place:
    """A listener, and the receivers of its links.

    Attributes:
        listener: What listens there.
        accepted: A receiver for each link that came in, in order; empty at first.
        addresses: Whence they came.
        hang_ups: What ends each before it is made.
        refusing: Take no links.
        came: Called for each link.

    """

    listener: Listener

    def __init__(self) -> None:
        self.accepted: list[Recorder] = []
        self.addresses: list[str] = []
        self.hang_ups: list[HangUp | None] = []
        self.refusing = False
        self.came: Callable[[], object] = lambda: None
        self._came = asyncio.Event()

    def accept(self, address: str, hang_up: HangUp | None) -> Recorder | Refused:
        self.addresses.append(address)
        self.hang_ups.append(hang_up)
        if self.refusing:
            return Refused("the server is full")
        self.accepted.append(Recorder())
        self.came()
        self._came.set()
        return self.accepted[-1]

    async def next(self) -> Recorder:
        """Return the receiver of the next link."""
        await self._came.wait()
        self._came.clear()
        return self.accepted[-1]

    async def linked(self) -> Recorder:
        """Return the receiver of the next link when it is made."""
        recorder = await self.next()
        await recorder.until(lambda: recorder.link is not None)
        return recorder

    @property
    def url(self) -> str:
        return str(self.listener.url)

    @property
    def port(self) -> int:
        return self.listener.url.port or 0


@asynccontextmanager
async def listening(url: str = TCP, settings: Settings = DEFAULT_SETTINGS, ssl: Any = None) -> AsyncIterator[Place]:
    """Listen at `url`."""
    place = Place()
    place.listener = await transports.listen(parse_url(url), place.accept, settings, ssl)
    try:
        yield place
    finally:
        await place.listener.close()


async def connected(url: str, settings: Settings = DEFAULT_SETTINGS, ssl: Any = None) -> Recorder:
    """Connect to `url`."""
    recorder = Recorder()
    await transports.connect(parse_url(url), recorder, settings, ssl)
    return recorder


@asynccontextmanager
async def joined(url: str = TCP, settings: Settings = DEFAULT_SETTINGS) -> AsyncIterator[tuple[Recorder, Recorder]]:
    """Yield both ends of a link."""
    async with listening(url, settings) as place:
        client = await connected(place.url, settings)
        server = await place.linked()
        try:
            yield client, server
        finally:
            for end in (client, server):
                end.link.abort()
                await end.lost()


@asynccontextmanager
async def raw_connection(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect to `port` with a plain TCP socket."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
