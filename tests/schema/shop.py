"""A service whose schema uses every supported feature."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from enum import Enum
from typing import Any, Literal

import msgspec

from weirpool import Service, TypedError

service = Service()


class Colour(Enum):
    RED = "red"
    DARK_BLUE = "dark-blue"


class Tree(msgspec.Struct):
    """A tree: it contains trees."""

    value: int
    children: list[Tree] = []
    parent: Tree | None = None


class Circle(msgspec.Struct, tag_field="kind", tag="circle"):
    r: float


class Square(msgspec.Struct, tag_field="kind", tag="square"):
    side: float
    corners: tuple[int, int] = (0, 0)


class Odd(msgspec.Struct):
    class_: str = msgspec.field(name="class")
    dashed: int = msgspec.field(name="a-b")
    self_: bool = msgspec.field(name="self", default=True)
    none: None = None
    under: str = msgspec.field(name="__under", default="")


class All(msgspec.Struct):
    """All that a schema can say.

    In two paragraphs.
    """

    data: bytes
    text: str
    nullable: str | None
    colour: Colour
    shape: Circle | Square
    level: Literal["low", "high"]
    number: Literal[1, 2]
    tree: Tree
    odd: Odd
    many: dict[str, list[int]]
    mixed: int | str | None
    anything: Any
    optional: int | msgspec.UnsetType = msgspec.UNSET
    defaulted: float = 1.5
    flags: set[str] = set()


class Gone(TypedError, code="GONE"):
    """It is not there any more."""

    extras: All


class Plain(TypedError, code="plain-error"):
    """No extras."""


@service.call("shop.same", errors=[Gone, Plain])
def same(init: All) -> All:
    """Answer with what was asked."""
    if init.text == "gone":
        raise Gone("it is gone", init)
    if init.text == "plain":
        raise Plain("no")
    return init


@service.stream("shop.each")
def each(init: Tree) -> Iterator[Tree]:
    """Yield the children."""
    return iter(init.children)


@service.upload("shop.sum")
async def sum_(init: int, items: AsyncIterator[Tree]) -> int:
    return init + sum([tree.value async for tree in items])


@service.channel("shop.import")
async def import_(init: Odd, items: AsyncIterator[Circle | Square]) -> AsyncIterator[Circle | Square]:
    async for item in items:
        yield item


@service.call("odd-name.do it")
def do_it(init: list[Colour]) -> dict[str, Colour]:
    return {colour.value: colour for colour in init}
