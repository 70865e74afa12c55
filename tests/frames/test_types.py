from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict, Union
from uuid import UUID

import attrs
import msgspec
import pyarrow as pa
import pydantic
import pytest

from weirpool import LocalError
from weirpool.frames.types import kind_of, members_of


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Inner(msgspec.Struct):
    a: int


class Model(pydantic.BaseModel):
    a: int
    at: pydantic.NaiveDatetime | None = None


class Tree(msgspec.Struct):
    children: list[Tree]


Meters = NewType("Meters", float)
UTC = pa.timestamp("us", tz="UTC")

TYPES: list[tuple[Any, pa.DataType]] = [
    (bool, pa.bool_()),
    (int, pa.int64()),
    (float, pa.float64()),
    (str, pa.string()),
    (bytes, pa.binary()),
    (bytearray, pa.binary()),
    (None, pa.null()),
    (date, pa.date32()),
    (time, pa.time64("us")),
    (timedelta, pa.duration("us")),
    (datetime, UTC),
    (Annotated[datetime, msgspec.Meta(tz=True)], UTC),
    (Annotated[datetime, msgspec.Meta(tz=False)], pa.timestamp("us")),
    (Annotated[int, msgspec.Meta(ge=0)], pa.int64()),
    (Decimal, pa.decimal128(38, 18)),
    (UUID, pa.string()),
    (Color, pa.string()),
    (Level, pa.int64()),
    (Literal["a", "b"], pa.string()),
    (Literal[1, 2, None], pa.int64()),
    (Optional[int], pa.int64()),  # noqa: UP045
    (Union[int, float], pa.float64()),  # noqa: UP007
    (int | msgspec.UnsetType, pa.int64()),
    (Meters, pa.float64()),
    (list[int | None], pa.list_(pa.int64())),
    (set[str], pa.list_(pa.string())),
    (frozenset[str], pa.list_(pa.string())),
    (tuple[int, ...], pa.list_(pa.int64())),
    (tuple[int, int], pa.list_(pa.int64())),
    (dict[str, float], pa.map_(pa.string(), pa.float64())),
    (dict[int, list[Color]], pa.map_(pa.int64(), pa.list_(pa.string()))),
    (Inner, pa.struct([("a", pa.int64())])),
    (Model, pa.struct([("a", pa.int64()), ("at", pa.timestamp("us"))])),
    (pydantic.AwareDatetime, UTC),
    (pydantic.PositiveInt, pa.int64()),
]


@pytest.mark.parametrize(("wanted", "expected"), TYPES, ids=lambda value: str(value))
def test_type_has_a_column(wanted: Any, expected: pa.DataType) -> None:
    assert kind_of(wanted, "field").type == expected


@pytest.mark.parametrize(
    "wanted", [Any, object, int | str, Literal[1, "a"], tuple[int, str], complex, msgspec.Raw, Tree]
)
def test_type_of_several_kinds_has_no_column(wanted: Any) -> None:
    with pytest.raises(LocalError, match=r"'field(\.children)?' has no column type: .*; pass a schema"):
        kind_of(wanted, "field")


def test_values_that_may_be_missing_become_null() -> None:
    assert kind_of(Color | None, "field").each([Color.RED, None]) == ["red", None]
    assert kind_of(int | msgspec.UnsetType, "field").each([1, msgspec.UNSET]) == [1, None]
    assert kind_of(list[Color | None], "field").each([[Color.RED, None], None]) == [["red", None], None]


class Struct(msgspec.Struct, rename="camel"):
    one_two: int


@dataclasses.dataclass
class Data:
    one_two: int


@attrs.define
class Attrs:
    one_two: int


class Pydantic(pydantic.BaseModel):
    one_two: int = pydantic.Field(alias="oneTwo")


class Dict(TypedDict, total=False):
    one_two: int


class Tuple(NamedTuple):
    one_two: int


@pytest.mark.parametrize(
    ("wanted", "make"),
    [
        (Struct, Struct),
        (Data, Data),
        (Attrs, Attrs),
        (Pydantic, lambda value: Pydantic(oneTwo=value)),
        (Dict, lambda value: Dict(one_two=value)),
        (Tuple, Tuple),
    ],
)
def test_structure_has_members_by_their_names_in_python(wanted: Any, make: Callable[[int], Any]) -> None:
    members = members_of(wanted)
    assert members is not None
    assert [(member.name, member.get(make(7))) for member in members] == [("one_two", 7)]


class Early(pydantic.BaseModel):
    b: int
    later: Later


class Later(pydantic.BaseModel):
    a: int


class Base(TypedDict):
    z: int
    b: int


class Derived(Base):
    a: int


def test_models_may_be_defined_after_their_use() -> None:
    [first, later] = members_of(Early) or []
    assert (first.name, later.name, later.type) == ("b", "later", Later)


def test_members_of_typed_dicts_are_in_the_order_of_their_definition() -> None:
    assert [member.name for member in members_of(Derived) or []] == ["z", "b", "a"]


def test_missing_keys_and_other_types() -> None:
    members = members_of(Dict)
    assert members is not None and members[0].get({}) is None
    assert members_of(int) is members_of(list[Struct]) is None
    with pytest.raises(LocalError, match="is not a type of columns"):
        members_of("text")
