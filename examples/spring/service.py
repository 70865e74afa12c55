"""The service of `Quotes.java` in Python: ``python service.py rsocket+tcp://localhost:7879``."""

import asyncio
import logging
import sys
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID, uuid4

import cbor2
import msgspec

import weirpool
from weirpool import ApplicationError, Bearer, Metadata, Payload, Service, Setup, SetupRejected, Simple


class Query(msgspec.Struct):
    symbol: str
    count: int


class Quote(msgspec.Struct):
    id: UUID
    symbol: str
    price: Decimal
    at: datetime


class Hello(msgspec.Struct):
    name: str


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


@service.call("quotes.admin")
async def admin(request: Payload) -> bytes:
    # The credentials of this request, not of the connection.
    match Metadata.decode(request.metadata).auth:
        case Simple("grace", "h0pper"):
            return b"grace"
        case Bearer("t0ken"):
            return b"robot"
    raise ApplicationError(message="Access Denied")


def accept(setup: Setup) -> None:
    metadata = Metadata.decode(setup.payload.metadata)
    match metadata.auth:
        case Simple("ada", "s3cret"):
            pass
        case _:
            raise SetupRejected("unknown user or wrong password")
    if metadata.route == "quotes.client":
        hello = msgspec.convert(cbor2.loads(setup.payload.data), Hello)
        print(f"connected: {hello.name}", flush=True)


async def main(url: str) -> None:
    async with weirpool.serve(service, url, acceptor=accept) as server:
        print(f"listening on {server.urls[0]}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(sys.argv[1]))
