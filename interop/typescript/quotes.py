"""The service that the generated TypeScript clients call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec

from weirpool import Service, TypedError

service = Service()
logged: list[str] = []


class Symbol(msgspec.Struct):
    """The name of a share."""

    name: Annotated[str, msgspec.Meta(max_length=8, description="In capitals, such as ACME.")]


class Quote(msgspec.Struct):
    """A price."""

    symbol: Symbol
    price: float
    at: datetime
    side: Literal["bid", "ask"] | None = None
    sizes: list[int] = []


class Count(msgspec.Struct):
    count: int


class Order(msgspec.Struct, tag="order"):
    quote: Quote
    count: int = 1


class Stop(msgspec.Struct, tag="stop"):
    reason: str | msgspec.UnsetType = msgspec.UNSET


class UnknownSymbol(TypedError, code="UNKNOWN_SYMBOL"):
    """There is no such share."""

    extras: Symbol


def quote(symbol: Symbol, price: float) -> Quote:
    return Quote(symbol, price, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "bid", [1, 2])


@service.call("quotes.latest", errors=[UnknownSymbol])
def latest(symbol: Symbol) -> Quote:
    """Return the last price."""
    if symbol.name == "?":
        raise UnknownSymbol("there is no such share", symbol)
    return quote(symbol, 1.5)


@service.call("quotes.check")
def check(given: Quote) -> Quote:
    """Return what was sent."""
    return given


@service.stream("quotes.live", errors=[UnknownSymbol])
def live(symbol: Symbol) -> Iterator[Quote]:
    """Yield a thousand prices."""
    if symbol.name == "?":
        raise UnknownSymbol("there is no such share", symbol)
    for number in range(1_000):
        yield quote(symbol, number)


@service.upload("quotes.load")
async def load(symbol: Symbol, orders: AsyncIterator[Order | Stop]) -> Count:
    """Return how many shares were ordered before the first stop."""
    total = 0
    async for order in orders:
        if isinstance(order, Stop):
            break
        total += order.count
    return Count(total)


@service.channel("quotes.ask")
async def ask(symbol: Symbol, counts: AsyncIterator[Count]) -> AsyncIterator[Quote]:
    """Yield a price for each count."""
    async for each in counts:
        yield quote(symbol, each.count)


@service.fire("quotes.log")
def log(text: str) -> None:
    logged.append(text)


@service.call("logged")
def read_log(symbol: Symbol) -> list[str]:
    """Return what was logged."""
    return logged
