"""The service of `Quotes.java` in Python: ``python service.py rsocket+tcp://localhost:7879``."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import msgspec

import penstock
from penstock import ApplicationError, Metadata, Payload, Service, Setup, SetupRejected, Simple


class Query(msgspec.Struct):
    symbol: str
    count: int


class Quote(msgspec.Struct):
    id: UUID
    symbol: str
    price: Decimal
    at: datetime


service = Service()


def quote(symbol: str, number: int) -> Quote:
    return Quote(uuid4(), symbol, (10_000 + number) * Decimal("0.01"), datetime.now(UTC))


@service.call("quotes.latest")
async def latest(query: Query) -> Quote:
    if query.count < 0:
        raise ApplicationError(message="refused: count must not be negative")
    return quote(query.symbol, 0)


@service.stream("quotes.of.{symbol}")
def of(query: Query, symbol: str) -> Iterator[Quote]:
    for number in range(query.count):
        yield quote(symbol, number)


@service.channel("quotes.sum")
async def running(first: int, numbers: AsyncIterable[int]) -> AsyncIterator[int]:
    # The first item of a channel is its request.
    total = first
    yield total
    async for number in numbers:
        total += number
        yield total


@service.fire("quotes.note")
async def note(request: Payload) -> None:
    # Spring sends and reads a String as it is, with every encoding.
    print(f"noted: {request.data.decode()}", flush=True)


def accept(setup: Setup) -> None:
    match Metadata.decode(setup.payload.metadata).auth:
        case Simple("ada", "s3cret"):
            return
    raise SetupRejected("unknown user or wrong password")


async def main(url: str) -> None:
    async with penstock.serve(service, url, acceptor=accept) as server:
        print(f"listening on {server.urls[0]}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(sys.argv[1]))
