"""A client of the service in `Quotes.java`: ``python client.py rsocket+tcp://localhost:7878``."""

import asyncio
import sys
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import msgspec

import penstock
from penstock import Metadata, Payload, Settings, Simple


class Query(msgspec.Struct):
    symbol: str
    count: int


class Quote(msgspec.Struct):
    id: UUID
    symbol: str
    price: Decimal
    at: datetime


async def main(url: str, mime: str = "application/cbor", password: str = "s3cret") -> None:
    # Spring speaks CBOR by default, and also "application/json".
    settings = Settings(data_mime=mime)
    # For the whole connection. A request has `metadata=Metadata(auth=...)` for credentials of its own.
    setup = Payload(b"", Metadata(auth=Simple("ada", password)).encode())
    async with penstock.connect(url, settings=settings, setup=setup) as peer:
        quotes = penstock.typed(peer)

        latest = await quotes.call("quotes.latest", Query("ACME", 1), returns=Quote)
        print(f"latest: {latest.symbol} {latest.price}")

        async with quotes.stream("quotes.of.ACME", Query("ACME", 100), returns=Quote, credit=8) as stream:
            print(f"stream: {len([quote async for quote in stream])}")

        # The first item of a channel is its request.
        async with quotes.channel("quotes.sum", 1, range(2, 101), returns=int) as sums:
            print(f"channel: {[number async for number in sums][-1]}")

        # Spring reads and sends a String as it is, with every encoding.
        await peer.fire("quotes.note", b"hello")

        async with quotes.stream("quotes.of.ACME", Query("ACME", 1_000_000), returns=Quote, credit=8) as stream:
            count = 0
            async for _ in stream:
                count += 1
                if count == 10:
                    break
        print("canceled after 10")

        try:
            await quotes.call("quotes.latest", Query("ACME", -1))
        except penstock.ApplicationError as error:
            print(f"error: {error.message}")


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except penstock.PenstockError as error:
        print(f"refused: {error}")
