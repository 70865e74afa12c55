"""A service with types of every sort, for tests of its description."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator
from typing import Annotated

import msgspec

from weirpool import Payload, Service, TypedError

__all__ = ["KINDS", "service"]

service = Service()

KINDS = {
    "log": "fire",
    "numbers": "stream",
    "orders.echo": "channel",
    "orders.load": "upload",
    "orders.place": "call",
    "quotes.latest": "call",
    "quotes.live": "stream",
    "tree": "call",
}


class Side(enum.Enum):
    BUY = "buy"
    SELL = "sell"


class Symbol(msgspec.Struct):
    name: str


class Quote(msgspec.Struct):
    """A price."""

    symbol: str
    price: float


class Leg(msgspec.Struct):
    symbol: Symbol
    count: Annotated[int, msgspec.Meta(ge=1, le=1_000)]


class Order(msgspec.Struct):
    side: Side
    legs: list[Leg]
    note: str | None = None
    limit: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    urgent: bool = False
    tags: dict[str, int] = {}
    seal: bytes = b""


class Node(msgspec.Struct):
    value: int
    children: list[Node] = []


class Unknown(TypedError, code="UNKNOWN_SYMBOL"):
    """There is no such symbol."""

    extras: Symbol


@service.call("quotes.latest", errors=[Unknown])
async def latest(symbol: Symbol) -> Quote:
    """Return the price of the last trade."""
    if symbol.name == "?":
        raise Unknown("there is no such symbol", symbol)
    return Quote(symbol.name, 1.5)


@service.stream("quotes.live")
async def live(symbol: Symbol) -> AsyncIterator[Quote]:
    """Prices without end."""
    number = 0
    while True:
        number += 1
        yield Quote(symbol.name, float(number))


@service.call("orders.place")
async def place(order: Order) -> Order:
    return order


@service.upload("orders.load")
async def load(symbol: Symbol, legs: AsyncIterator[Leg]) -> int:
    return sum([leg.count async for leg in legs])


@service.channel("orders.echo")
async def echo(symbol: Symbol, legs: AsyncIterator[Leg]) -> AsyncIterator[Leg]:
    async for leg in legs:
        yield leg


@service.call("tree")
async def tree(node: Node) -> Node:
    return node


@service.fire("log")
async def log(payload: Payload) -> None:
    """Note a line."""


@service.stream("numbers")
def numbers(payload: Payload) -> list[bytes]:
    return [str(number).encode() for number in range(int(payload.data or b"3"))]
