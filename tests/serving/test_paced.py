"""Streams that read when their client asks, and hold nothing while it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.waiting import turns, until
from weirpool import Connection
from weirpool.account import UNLIMITED, Account
from weirpool.aio.shares import Shares
from weirpool.serving import paced
from weirpool.serving.paced import Chunk, Paced


class Numbers:
    """A reading of the numbers below `end`; each is an item of ten bytes. It reads up to `most` at once."""

    def __init__(self, end: int, most: int = 4) -> None:
        self.end = end
        self.most = most
        self.at = self.ahead = self.filled = 0
        self.opened = 0
        self.is_open = self.closed = False
        self.failure: Exception | None = None
        self.gate: asyncio.Event | None = None

    @property
    def ready(self) -> bool:
        return self.at < self.end

    @property
    def held(self) -> int:
        return 10 * (self.ahead - self.at)

    async def more(self) -> bool:
        return self.ready

    async def fill(self) -> None:
        assert self.ahead == self.at and not self.closed
        self.opened += not self.is_open
        self.is_open = True
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        self.ahead = min(self.at + self.most, self.end)
        self.filled += self.ahead - self.at

    def take(self, count: int) -> Chunk | None:
        if self.at == self.ahead:
            return None
        begin, self.at = self.at, min(self.at + count, self.ahead)
        return Chunk(range(begin, self.at), self.at - begin, 10 * (self.at - begin))

    async def rest(self) -> None:
        self.ahead = self.at
        self.is_open = False

    async def close(self) -> None:
        await self.rest()
        self.closed = True


class Client:
    """A client of a stream: it takes items as a pump does, within its credit."""

    def __init__(self, reading: Numbers, places: Shares, credit: int, address: str = "c") -> None:
        self.connection = Connection("rsocket", address, False)
        self.connection.account = Account(UNLIMITED)
        self.stream = Paced(reading, places, self.connection)
        self.credit = credit
        self.found: list[int] = []
        self.stops_at = UNLIMITED
        self.go_on = asyncio.Event()
        self.stream.demanded(credit)
        self.task = asyncio.create_task(self._run())

    @property
    def held(self) -> int:
        assert self.connection.account is not None
        return self.connection.account.held

    async def _run(self) -> None:
        items: AsyncIterator[range] = aiter(self.stream)
        try:
            async for batch in items:
                for item in batch:
                    while self.credit <= 0 or len(self.found) >= self.stops_at:
                        self.go_on.clear()
                        await self.go_on.wait()
                    self.found.append(item)
                    self.credit -= 1
                self.stream.demanded(self.credit)
        finally:
            await items.aclose()  # type: ignore[attr-defined]

    def grant(self, credit: int) -> None:
        self.credit += credit
        self.stream.demanded(self.credit)
        self.go_on.set()


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streams rest as soon as their clients take nothing."""
    monkeypatch.setattr(paced, "STALL_SECONDS", 0.001)
    monkeypatch.setattr(paced, "TURN_SECONDS", 0.001)


async def test_all_items_arrive_once_and_in_order() -> None:
    places, reading = Shares("places", 4), Numbers(1_000)
    client = Client(reading, places, 2_000)
    await client.task
    assert client.found == list(range(1_000))
    assert (places.used, client.held, reading.closed, reading.opened) == (0, 0, True, 1)


async def test_nothing_is_read_that_was_not_requested() -> None:
    places, reading = Shares("places", 4), Numbers(1_000)
    client = Client(reading, places, 0)
    await turns(20)
    assert (reading.opened, places.used, client.held) == (0, 0, 0)
    client.grant(6)
    await until(lambda: len(client.found) == 6)
    await turns(20)
    # What was read with it waits for more credit, in the account.
    assert (client.found, reading.filled, client.held) == (list(range(6)), 8, 20)
    client.grant(1)
    await until(lambda: len(client.found) == 7)
    client.task.cancel()
    await asyncio.wait([client.task])
    assert (places.used, client.held, reading.closed) == (0, 0, True)


@pytest.mark.usefixtures("hasty")
async def test_a_client_that_requests_nothing_gives_its_place_back() -> None:
    # THREATS 111
    places, reading = Shares("places", 4), Numbers(100)
    client = Client(reading, places, 6)
    await until(lambda: len(client.found) == 6 and not places.used)
    assert (reading.is_open, client.held) == (False, 0)
    client.grant(1_000)
    await client.task
    assert client.found == list(range(100))


@pytest.mark.usefixtures("hasty")
async def test_a_client_that_does_not_read_what_it_requested_gives_its_place_back() -> None:
    # THREATS 111: the chunk that is being sent stays in the account, and what was read ahead is dropped.
    places, reading = Shares("places", 4), Numbers(100)
    client = Client(reading, places, 1_000)
    client.stops_at = 5
    await until(lambda: len(client.found) == 5 and not places.used)
    # Of the chunk that is being sent, one item was taken.
    assert not reading.is_open and client.held == 40
    client.stops_at = UNLIMITED
    client.grant(0)
    await client.task
    assert client.found == list(range(100)) and client.held == 0


async def test_what_is_read_and_not_passed_on_is_in_the_account() -> None:
    places, reading = Shares("places", 4), Numbers(100, most=8)
    client = Client(reading, places, 1_000)
    client.stops_at = 1
    await until(lambda: client.held == 160)
    client.task.cancel()
    await asyncio.wait([client.task])
    assert (client.held, places.used) == (0, 0)


async def test_places_are_passed_on_when_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paced, "TURN_SECONDS", 0.0001)
    places = Shares("places", 1)
    clients = [Client(Numbers(40), places, 1_000, f"c{number}") for number in range(3)]
    await until(lambda: all(client.found for client in clients))
    assert not any(client.task.done() for client in clients)
    await asyncio.gather(*(client.task for client in clients))
    assert all(client.found == list(range(40)) for client in clients)
    assert (places.used, places.peak) == (0, 1)


async def test_one_client_with_many_streams_leaves_places_to_others() -> None:
    # THREATS 111
    places = Shares("places", 4)
    greedy = [Client(Numbers(1_000), places, 1_000, "greedy") for _ in range(50)]
    for client in greedy:
        client.stops_at = 1
    await until(lambda: places.used == 2 and places.wanted)
    honest = Client(Numbers(1_000), places, 1_000, "honest")
    await honest.task
    assert honest.found == list(range(1_000))
    for client in greedy:
        client.task.cancel()
    await asyncio.gather(*(client.task for client in greedy), return_exceptions=True)
    assert (places.used, places.wanted) == (0, False)


async def test_an_error_of_a_read_ends_the_stream() -> None:
    places, reading = Shares("places", 4), Numbers(100)
    client = Client(reading, places, 4)
    await until(lambda: len(client.found) == 4 and places.used == 1)
    reading.failure = ValueError("broken")
    client.grant(4)
    with pytest.raises(ValueError, match="broken"):
        await client.task
    assert (places.used, client.held, reading.closed) == (0, 0, True)


async def test_a_stream_that_is_canceled_while_it_reads_ends_after_the_read() -> None:
    places, reading = Shares("places", 4), Numbers(100)
    reading.gate = asyncio.Event()
    client = Client(reading, places, 4)
    await until(lambda: reading.is_open)
    client.task.cancel()
    await turns(5)
    assert not client.task.done() and places.used == 1
    reading.gate.set()
    await asyncio.wait([client.task])
    assert client.task.cancelled() and (places.used, reading.closed) == (0, True)


async def test_without_word_of_its_demand_a_client_accepts_everything() -> None:
    reading, places = Numbers(100), Shares("places", 4)
    stream = Paced(reading, places, Connection("rsocket", "c", False))
    assert [item async for batch in stream for item in batch] == list(range(100))


async def test_the_end_is_told_without_more_credit() -> None:
    places, reading = Shares("places", 4), Numbers(6)
    client = Client(reading, places, 6)
    await client.task
    assert client.found == list(range(6)) and places.used == 0
