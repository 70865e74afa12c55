"""Classes within types, and the refusal of those that cannot be decoded."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar

import attrs
import msgspec
import pytest

from weirpool import LocalError
from weirpool.schema.contents import check_supported, contents, shown_type
from weirpool.schema.converter import Converter

T = TypeVar("T")


class Strange:
    pass


class Color(Enum):
    RED = 1


class Line(msgspec.Struct):
    strange: list[Strange]
    constant: ClassVar[Callable[[], None]]


@attrs.define
class Order:
    lines: dict[str, Line]


@dataclasses.dataclass
class Plain:
    order: Order | None


@attrs.define
class Hidden:
    shown: str
    _hidden: int


@dataclasses.dataclass
class Secret:
    _secret: int


@dataclasses.dataclass
class Cached:
    value: int
    _cache: int = dataclasses.field(init=False, default=0)


class Row(TypedDict):
    plain: Plain


class Pair(NamedTuple):
    row: Row


class Box(msgspec.Struct, Generic[T]):
    content: T


class Tree(msgspec.Struct):
    trees: list[Tree]
    color: Color


class Unresolved(msgspec.Struct):
    field: list[NotThere]  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        (Strange, "Strange is a class"),
        (list[Strange], "Strange in list[Strange] is a class"),
        (Strange | None, "Strange in Strange | None is a class"),
        (Strange | int, "Strange in Strange | int is a class"),
        (Line, "Strange in field 'strange' of Line is a class"),
        (Order, "Strange in field 'strange' of Line"),
        (Plain, "Strange in field 'strange' of Line"),
        (Pair, "Strange in field 'strange' of Line"),
        (list[tuple[int, Pair]], "Strange in field 'strange' of Line"),
        (Box[Strange], "Strange in Box[Strange]"),
        (NewType("Strangest", Strange), "Strange in"),
        (Annotated[Strange, 1], "Strange in"),
        (complex, "complex is a class"),
        (Hidden, "Hidden has the field '_hidden', which msgspec reads and does not write"),
        (list[Secret], "Secret in list[Secret] has the field '_secret'"),
        (type[int], "type in type[int]"),
        (Callable[[int], int], "Callable in"),
        (AsyncIterator[int], "AsyncIterator in"),
        (Unresolved, "'NotThere' in an annotation of Unresolved cannot be resolved at run time"),
        (list["NotThere"], "'NotThere' cannot be resolved at run time"),  # type: ignore[name-defined]  # noqa: F821
    ],
)
def test_types_that_cannot_be_decoded_are_refused(wanted: Any, text: str) -> None:
    with pytest.raises(LocalError) as caught:
        check_supported(wanted, list(contents(wanted)))
    assert text in str(caught.value)
    with pytest.raises(LocalError) as caught:
        Converter(wanted)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    "wanted",
    [
        Any,
        object,
        None,
        Hashable,
        Iterable[int],
        Tree,
        Box[Tree],
        Box,
        Literal["a", 1],
        Decimal | None,
        msgspec.Raw,
        Cached,
    ],
)
def test_other_types_are_not_refused(wanted: Any) -> None:
    found = list(contents(wanted))
    check_supported(wanted, found)
    assert Converter(wanted).wanted is wanted


def test_contents_are_found_once_with_their_places() -> None:
    found = [(each.cls, each.place, each.is_record) for each in contents(list[Tree])]
    assert found == [
        (list, "", False),
        (Tree, "", True),
        (Color, "field 'color' of Tree", False),
    ]


def test_types_are_shown_without_modules() -> None:
    class Local:
        pass

    assert shown_type(Local) == "Local"
    assert shown_type(dict[str, Strange]) == "dict[str, Strange]"
    assert shown_type(Strange | None) == "Strange | None"
