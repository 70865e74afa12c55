"""The service of `weirpool playground`: one handler or more for each kind of interaction.

The first handlers take and return text, so that they can be used from a shell. Those of `quotes` and `orders` are
typed: they need a connection whose data is JSON or MessagePack.

Run it with other options: ``weirpool serve weirpool.playground.service:service URL``.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from math import isfinite
from typing import Annotated, Final

import msgspec

from .. import ApplicationError, Items, Payload, Service, TypedError
from ..texts import cut, shown

__all__ = ["service"]

FIRST_PRICES: Final = {"ACME": 100.0, "GLOBEX": 42.0, "INITECH": 7.5}
"""The symbols, and where their prices begin."""
TICKS_PER_SECOND: Final = 2.0
MAX_MILLISECONDS: Final = 60_000
MAX_LOGGED_BYTES: Final = 1_000

service = Service()


# Text, for the shell.


@service.call("echo")
def echo(request: Payload) -> bytes:
    """Return the data of the request."""
    return request.data


@service.stream("count")
def count(request: Payload) -> Iterator[bytes]:
    """Count from 0 to N - 1; 10 by default."""
    return (b"%d" % number for number in range(int(_number(request.data, 10))))


@service.stream("ticker")
async def ticker(request: Payload) -> AsyncIterator[bytes]:
    """Send prices for ever, 2 per second, or N; with 0 as many as the client takes."""
    async for quote in _quotes(tuple(FIRST_PRICES), _number(request.data, TICKS_PER_SECOND)):
        yield f"{quote.symbol} {quote.price:.2f}".encode()


@service.upload("sum")
async def total(request: Payload, items: Items) -> bytes:
    """Return the sum of the numbers that the client sends."""
    result = _number(request.data, 0)
    async for item in items:
        result += _number(item.data, 0)
    return f"{result:.15g}".encode()


@service.channel("double")
async def double(request: Payload, items: Items) -> AsyncIterator[bytes]:
    """Return twice each number, as it arrives."""
    if request.data:
        yield f"{2 * _number(request.data, 0):.15g}".encode()
    async for item in items:
        yield f"{2 * _number(item.data, 0):.15g}".encode()


@service.fire("log")
def log(request: Payload) -> None:
    """Print the data where the playground runs."""
    print("log:", shown(cut(request.data, MAX_LOGGED_BYTES).decode("utf-8", "replace")), flush=True)


@service.call("fail")
def fail(request: Payload) -> bytes:
    """Fail with an error of the application."""
    raise ApplicationError(0x301, "this route always fails")


@service.call("slow")
async def slow(request: Payload) -> bytes:
    """Return after 1,000 milliseconds, or N; try it with --timeout."""
    milliseconds = min(_number(request.data, 1_000), MAX_MILLISECONDS)
    await asyncio.sleep(milliseconds / 1_000)
    return b"%.15g ms later" % milliseconds


# Typed values.


class Symbol(msgspec.Struct):
    """One of the symbols with a price."""

    symbol: str


class Ticks(msgspec.Struct):
    """Which prices to send, and how many per second; 0: as many as the client takes."""

    symbol: str = "ACME"
    rate: Annotated[float, msgspec.Meta(ge=0)] = TICKS_PER_SECOND


class Quote(msgspec.Struct):
    """A price."""

    symbol: str
    price: float


class Order(msgspec.Struct):
    """A number of shares to buy, or to sell if it is negative."""

    symbol: str
    count: int


class Total(msgspec.Struct):
    """What orders are worth."""

    orders: int = 0
    value: float = 0.0


class UnknownSymbol(TypedError, code="UNKNOWN_SYMBOL"):
    """There is no such symbol; the extras have the one that was asked for."""

    extras: Symbol


@service.call("quotes.latest", errors=[UnknownSymbol])
def latest(request: Symbol) -> Quote:
    """Return the first price of ACME, GLOBEX or INITECH."""
    return Quote(request.symbol, _first_price(request.symbol))


@service.stream("quotes.live", errors=[UnknownSymbol])
async def live(request: Ticks) -> AsyncIterator[Quote]:
    """Send prices of one symbol for ever."""
    _first_price(request.symbol)
    async for quote in _quotes((request.symbol,), request.rate):
        yield quote


@service.upload("orders.load", errors=[UnknownSymbol])
async def load(request: Total, orders: AsyncIterator[Order]) -> Total:
    """Add orders to a total, and return it."""
    async for order in orders:
        request.orders += 1
        request.value += order.count * _first_price(order.symbol)
    return request


@service.channel("quotes.watch", errors=[UnknownSymbol])
async def watch(request: Symbol, symbols: AsyncIterator[Symbol]) -> AsyncIterator[Quote]:
    """Return a price for each symbol, as it arrives."""
    yield latest(request)
    async for symbol in symbols:
        yield latest(symbol)


async def _quotes(symbols: tuple[str, ...], rate: float) -> AsyncIterator[Quote]:
    """Yield `rate` prices per second, which wander at random. Prices that nobody took in time are not made up for."""
    prices = {symbol: FIRST_PRICES[symbol] for symbol in symbols}
    clock = asyncio.get_running_loop().time
    due = clock()
    while True:
        for symbol in symbols:
            prices[symbol] = max(0.01, round(prices[symbol] * random.uniform(0.99, 1.01), 2))
            yield Quote(symbol, prices[symbol])
            if rate > 0:
                due = max(due + 1 / rate, clock())
                await asyncio.sleep(due - clock())


def _first_price(symbol: str) -> float:
    if symbol not in FIRST_PRICES:
        raise UnknownSymbol(f"the symbols are {', '.join(FIRST_PRICES)}", Symbol(symbol))
    return FIRST_PRICES[symbol]


def _number(data: bytes, default: float) -> float:
    """Return data as a number, or `default` if it is empty."""
    try:
        number = float(data) if data.strip() else default
        if isfinite(number):
            return number
    except ValueError:
        pass
    raise ApplicationError(0x302, f"{data.decode(errors='replace')[:40]!r} is not a number")
