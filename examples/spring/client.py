"""A client of the service in `Quotes.java`: ``python client.py rsocket+tcp://localhost:7878``."""

import asyncio
import sys
from datetime import datetime
from decimal import Decimal
from uuid import UUID

import cbor2
import msgspec

import weirpool
from weirpool import Bearer, Metadata, Payload, Settings, Simple


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
    # For the whole connection. The route is that of a `@ConnectMapping`, and the data its argument.
    hello = {"name": "Python"}
    data = cbor2.dumps(hello) if mime == "application/cbor" else msgspec.json.encode(hello)
    setup = Payload(data, Metadata("quotes.client", auth=Simple("ada", password)).encode())
    async with weirpool.connect(url, settings=settings, setup=setup) as peer:
        quotes = weirpool.typed(peer)

        latest = await quotes.call("quotes.latest", Query("ACME", 1), returns=Quote)
        print(f"latest: {latest.symbol} {latest.price}")

        async with quotes.stream("quotes.of.ACME", Query("ACME", 100), returns=Quote, credit=8) as stream:
            print(f"stream: {len([quote async for quote in stream])}")

        # The first item of a channel is its request.
        async with quotes.channel("quotes.sum", 1, range(2, 101), returns=int) as sums:
            print(f"channel: {[number async for number in sums][-1]}")

        # Spring reads and sends a String as it is, with every encoding.
        await peer.fire("quotes.note", b"hello")

        # Credentials of a request, instead of those of the connection; `None` leaves those, which are not sufficient.
        denied = 0
        for auth in (Simple("grace", "h0pper"), Bearer("t0ken"), Simple("grace", "wrong"), Bearer("wrong"), None):
            try:
                answer = await peer.call("quotes.admin", metadata=Metadata(auth=auth))
                print(f"admin: {answer.data.decode()}")
            except weirpool.ApplicationError:
                denied += 1
        print(f"denied: {denied}")

        async with quotes.stream("quotes.of.ACME", Query("ACME", 1_000_000), returns=Quote, credit=8) as stream:
            count = 0
            async for _ in stream:
                count += 1
                if count == 10:
                    break
        print("canceled after 10")

        try:
            await quotes.call("quotes.latest", Query("ACME", -1))
        except weirpool.ApplicationError as error:
            print(f"error: {error.message}")


if __name__ == "__main__":
    try:
        asyncio.run(main(*sys.argv[1:]))
    except weirpool.WeirpoolError as error:
        print(f"refused: {error}")
