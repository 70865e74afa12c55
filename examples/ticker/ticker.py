"""Live prices for a page in a browser: docs/how-to/typescript.md shows how to run it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec

from weirpool import Service, TypedError

SYMBOLS = ("ACME", "BOLT", "CORK", "DUNE")

service = Service()


class Watch(msgspec.Struct):
    """What a page wants to see."""

    symbols: Annotated[list[str], msgspec.Meta(max_length=100)]
    rate: Annotated[float, msgspec.Meta(gt=0, le=1_000, description="Prices per second.")] = 50.0


class Quote(msgspec.Struct):
    """The price of a share."""

    number: Annotated[int, msgspec.Meta(description="Counts the prices of one stream, from 0.")]
    symbol: str
    price: float


class UnknownSymbol(TypedError, code="UNKNOWN_SYMBOL"):
    """There is no such share."""

    extras: Watch


@service.stream("ticker.live", errors=[UnknownSymbol])
async def live(watch: Watch) -> AsyncIterator[Quote]:
    """Yield prices, which wait while the page does not take them."""
    if not watch.symbols or not set(watch.symbols) <= set(SYMBOLS):
        raise UnknownSymbol(f"known are {', '.join(SYMBOLS)}", watch)
    prices = dict.fromkeys(watch.symbols, 100.0)
    number = 0
    while True:
        symbol = random.choice(watch.symbols)
        prices[symbol] = round(prices[symbol] * random.uniform(0.99, 1.01), 2)
        yield Quote(number, symbol, prices[symbol])
        number += 1
        await asyncio.sleep(1 / watch.rate)
