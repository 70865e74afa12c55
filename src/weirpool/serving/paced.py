"""Streams of what is read from the disk: it is read when the client has requested it, and when it is its turn.

A stream holds a *place* while it reads: what it has open and has read ahead. It gives the place back when its client
takes nothing for a second, or when others wait; then it holds nothing but how far it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ..account import UNLIMITED, Account
from ..aio.shares import Shares, client_of
from ..connection import Connection

__all__ = ["STALL_SECONDS", "TURN_SECONDS", "Chunk", "Paced", "Reading"]

STALL_SECONDS: Final = 1.0
"""How long a stream keeps its place while its client takes nothing."""
TURN_SECONDS: Final = 0.25
"""How long a stream keeps its place while others wait for one: to begin again costs about a millisecond."""
UNTOLD: Final = 1 << 62
"""What a client accepts while nobody tells it: then its stream's own window limits it."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Items that are sent at once."""

    items: Any
    """A payload, or a record batch of many items."""
    count: int
    """The number of items."""
    size: int
    """Their bytes."""


class Reading(Protocol):
    """Something that is read in chunks. One of its coroutines runs at a time."""

    @property
    def ready(self) -> bool:
        """True if there is something to take, or to read now."""

    @property
    def held(self) -> int:
        """Bytes that were read and not taken."""

    async def more(self) -> bool:
        """Wait until there is something to read; return False if everything was taken."""

    async def fill(self) -> None:
        """Read something, unless something is there."""

    def take(self, count: int) -> Chunk | None:
        """Return about as many items of what was read; None if nothing is there. The reading continues after them."""

    async def rest(self) -> None:
        """Close what is open, and forget what was read and not taken: it is read again."""

    async def close(self) -> None:
        """Close everything: the stream has ended."""


class Paced(AsyncIterable[Any]):
    """The items of a stream, for a handler to return.

    Args:
        reading: What is read.
        places: The places of streams that read at once.
        connection: The connection of the client.

    """

    def __init__(self, reading: Reading, places: Shares, connection: Connection) -> None:
        self._reading = reading
        self._places = places
        self._client = client_of(connection)
        self._account = Account(UNLIMITED, connection.account)
        self._credit = UNTOLD
        self._wake: asyncio.Event | None = None
        # When the stream got its place; None if it has none. And how many chunks were sent before.
        self._since: float | None = None
        self._before = 0
        # What reads ahead, and what rests.
        self._filling: asyncio.Task[None] | None = None
        self._resting: asyncio.Task[None] | None = None
        # The bytes of the chunk that is sent, and how many were sent so far.
        self._sending = self._sent = 0
        # The timer that notices that none is sent any more, how many it has seen, and when the last one.
        self._timer: asyncio.TimerHandle | None = None
        self._seen = 0
        self._seen_at = 0.0

    def demanded(self, credit: int) -> None:
        """Note that the client accepts `credit` more items; see :class:`weirpool.aio.pump.TaskPump`."""
        self._credit = credit
        if self._wake is not None and credit > 0:
            self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Any]:
        self._wake = asyncio.Event()
        try:
            while True:
                if self._resting is not None:
                    await self._rested()
                if self._must_pass():
                    await self._rest()
                # Whoever has requested all items is told that there are no more.
                if self._credit <= 0 and self._reading.ready:
                    await self._requested()
                chunk = self._reading.take(self._credit)
                if chunk is None:
                    if not await self._fill():
                        return
                    continue
                self._begin(chunk)
                yield chunk.items
                self._sending = 0
        finally:
            await self._end()

    def _begin(self, chunk: Chunk) -> None:
        """Count a chunk that is about to be sent, and read ahead while it is, if the client has requested more."""
        self._sending = chunk.size
        self._sent += 1
        self._credit -= chunk.count
        reading = self._reading
        if self._since is not None and not reading.held and reading.ready and self._credit > 0:
            if not self._must_pass():
                self._begin_fill()
        self._count()

    def _begin_fill(self) -> None:
        self._filling = asyncio.get_running_loop().create_task(self._filled())

    async def _filled(self) -> None:
        await self._reading.fill()
        self._count()

    async def _fill(self) -> bool:
        """Read something, with a place; return False if everything was sent."""
        reading = self._reading
        if self._filling is None:
            if not reading.ready:
                # Others may read while this stream waits.
                await self._rest()
                self._count()
                return await reading.more()
            if self._since is None:
                await self._places.wait(self._client)
                self._since, self._before = asyncio.get_running_loop().time(), self._sent
                self._watch()
            self._begin_fill()
        assert self._filling is not None
        # Canceling this does not cancel it: the end of the stream waits for it.
        await asyncio.wait([self._filling])
        filling, self._filling = self._filling, None
        filling.result()
        return True

    async def _requested(self) -> None:
        """Wait until the client has requested items; give the place back if that takes long."""
        assert self._wake is not None
        self._wake.clear()
        self._count()
        if self._since is not None:
            try:
                async with asyncio.timeout(self._patience()):
                    await self._wake.wait()
                return
            except TimeoutError:
                await self._rest()
        while self._credit <= 0:
            self._wake.clear()
            await self._wake.wait()

    def _must_pass(self) -> bool:
        """Return True if the place should be passed on to those who wait: it was used, and for long enough."""
        if self._since is None or self._sent == self._before or not self._places.wanted:
            return False
        return asyncio.get_running_loop().time() - self._since >= TURN_SECONDS

    def _watch(self) -> None:
        """Give the place back as soon as the client does not read what it has requested."""
        loop = asyncio.get_running_loop()
        self._timer = None
        if self._since is None or self._resting is not None:
            return
        now = loop.time()
        if not self._sending or self._sent != self._seen:
            self._seen, self._seen_at = self._sent, now
        if now - self._seen_at < self._patience():
            self._timer = loop.call_later(TURN_SECONDS, self._watch)
        else:
            self._begin_rest()

    def _patience(self) -> float:
        """Return how long the client may take nothing."""
        return TURN_SECONDS if self._places.wanted else STALL_SECONDS

    def _begin_rest(self) -> None:
        self._resting = asyncio.get_running_loop().create_task(self._give_up(self._reading.rest))

    async def _rest(self) -> None:
        """Give the place back, with all that is open. Does nothing without a place."""
        if self._since is not None:
            if self._resting is None:
                self._begin_rest()
            await self._rested()

    async def _rested(self) -> None:
        """Wait until the place is given back; raise the error of that."""
        assert self._resting is not None
        await asyncio.wait([self._resting])
        resting, self._resting = self._resting, None
        resting.result()

    async def _give_up(self, close: Callable[[], Awaitable[None]]) -> None:
        filling, self._filling = self._filling, None
        try:
            if filling is not None:
                # An error is raised when it is read again.
                await asyncio.gather(filling, return_exceptions=True)
            await close()
        finally:
            if self._since is not None:
                self._since = None
                self._places.give_back(self._client)
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._count()

    async def _end(self) -> None:
        """Give back everything, because the stream has ended. If this is canceled, that goes on."""
        self._sending = 0
        ending = asyncio.get_running_loop().create_task(self._close())
        ending.add_done_callback(lambda _: self._account.close())
        await asyncio.wait([ending])
        ending.result()

    async def _close(self) -> None:
        if self._resting is not None:
            await asyncio.gather(self._resting, return_exceptions=True)
        await self._give_up(self._reading.close)

    def _count(self) -> None:
        """Count in the ledger what was read, and is not passed on to the connection's output."""
        size = self._reading.held + self._sending
        change = size - self._account.held
        if change > 0:
            self._account.book(change)
        elif change:
            self._account.release(-change)
