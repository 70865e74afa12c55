"""Types with models of pydantic in them, over all encodings."""

from __future__ import annotations

import dataclasses
from datetime import UTC, date, datetime
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, TypedDict, TypeVar
from uuid import UUID

import attrs
import msgspec
import pydantic
import pytest
from pydantic.dataclasses import dataclass as model_dataclass
from typing_extensions import TypeAliasType

from tests.schema.encodings import ALL
from weirpool import LocalError, Mismatch
from weirpool.schema.converter import Converter
from weirpool.schema.formats import CBOR, JSON, MSGPACK, Format

T = TypeVar("T")


class Line(pydantic.BaseModel):
    count: int


class Note(pydantic.BaseModel):
    kind: Literal["note"] = "note"
    at: datetime


class Public(pydantic.BaseModel):
    name: str


class Private(Public):
    password: str


@model_dataclass
class Point:
    x: int = pydantic.Field(alias="xValue", gt=0)


class Order(msgspec.Struct):
    line: Line
    lines: list[Line] = []
    last: Line | None = None
    numbered: dict[int, Line] = {}
    blob: bytes = b"\xff"


class Box(msgspec.Struct, Generic[T]):
    content: T


@attrs.define
class Account:
    line: Line
    key: UUID


class Row(TypedDict):
    line: Line


class Pair(NamedTuple):
    line: Line
    number: int = 3


@dataclasses.dataclass
class Event:
    line: Line
    day: date
    blob: bytes


@dataclasses.dataclass
class Choice:
    """msgspec supports neither the union nor the checks of Point."""

    what: Line | Note
    point: Point


class Impossible(msgspec.Struct):
    what: Line | Note


class Unchecked(msgspec.Struct):
    point: Point


LINE = Line(count=1)
NOTE = Note(at=datetime(2026, 1, 2, tzinfo=UTC))
POINT = Point(xValue=1)  # type: ignore[call-arg]
CASES: list[tuple[Any, Any]] = [
    (Line, LINE),
    (list[Line], [LINE]),
    (dict[str, Line], {"a": LINE}),
    (dict[int, Line], {1: LINE}),
    (tuple[Line, bytes], (LINE, b"\xff\xfe\xfb")),
    (Line | None, None),
    (Line | Note, NOTE),
    (list[Line | Note | int], [LINE, NOTE, 3]),
    (Annotated[Line, msgspec.Meta(description="a line")], LINE),
    (NewType("NewLine", Line), LINE),
    (TypeAliasType("Lines", list[Line]), [LINE]),
    (Order, Order(LINE, [LINE], LINE, {5: LINE})),
    (Box[Line], Box(LINE)),
    (list[Box[Line]], [Box(LINE)]),
    (Account, Account(LINE, UUID(int=1))),
    (Row, {"line": LINE}),
    (Pair, Pair(LINE)),
    (Event, Event(LINE, date(2026, 1, 2), b"\xff\xfe\xfb")),
    (Choice, Choice(NOTE, POINT)),
    (Point, POINT),
    (list[Point], [POINT]),
]


@pytest.mark.parametrize("form", ALL)
@pytest.mark.parametrize(("wanted", "value"), CASES)
def test_models_round_trip_wherever_they_are(wanted: Any, value: Any, form: Format) -> None:
    converter = Converter(wanted)
    assert converter.decode(form, converter.write(form, value)) == value


@pytest.mark.parametrize("form", ALL)
def test_values_without_a_type_are_encoded_with_their_models(form: Format) -> None:
    for wanted, value in [(Line, LINE), (list[Line], [LINE]), (Order, Order(LINE)), (Point, POINT)]:
        assert Converter(wanted).decode(form, Converter.encode(form, value)) == value


def test_response_of_a_model_has_no_fields_of_its_subclasses() -> None:
    user = Private(name="ann", password="secret")
    assert Converter(Public).write(JSON, user) == b'{"name":"ann"}'
    assert Converter(list[Public]).write(JSON, [user]) == b'[{"name":"ann"}]'


@pytest.mark.parametrize(
    ("wanted", "value", "paths"),
    [
        (Order, {"line": {"count": 1}, "lines": [{"count": 1}, {"count": "x"}]}, ["/lines/1/count"]),
        (Order, {"line": {}}, ["/line/count"]),
        (Order, {"line": {"count": 1}, "blob": 1}, ["/blob"]),
        (list[Line], [{"count": "x"}, {}], ["/0/count", "/1/count"]),
        (Line | Note, {"kind": "other"}, ["/count", "/kind", "/at"]),
        (Event, {"line": 1}, ["/line"]),
        (Point, {"xValue": 0}, ["/xValue"]),
    ],
)
def test_problems_have_locations(wanted: Any, value: Any, paths: list[str]) -> None:
    with pytest.raises(Mismatch) as caught:
        Converter(wanted).decode(JSON, JSON.encode(value))
    assert [path for path, _ in caught.value.problems] == paths


def test_data_that_is_not_the_format_is_a_mismatch() -> None:
    for wanted in (Line, Order):
        with pytest.raises(Mismatch, match="not valid json"):
            Converter(wanted).decode(JSON, b'{"count": NaN}')


def test_what_neither_library_can_read_is_refused() -> None:
    with pytest.raises(LocalError, match="Impossible is not a type that can be decoded: Type unions may not contain"):
        Converter(Impossible)
    with pytest.raises(LocalError, match="Point in field 'point' of Unchecked is a dataclass of pydantic"):
        Converter(Unchecked)
    with pytest.raises(LocalError, match="utf-8"):
        Converter.encode(JSON, Private.model_construct(name=b"\xff", password=""))


def test_model_schema_is_that_of_pydantic_or_none() -> None:
    assert Converter(Order).model_schema() is None
    schema = Converter(Line | Note).model_schema()
    assert schema is not None
    assert list(schema["$defs"]) == ["Line", "Note"]


class Exact(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    ts: int
    part: float = 0.5
    note: Any = None


@pytest.mark.parametrize("form", [form for form in ALL if "json" not in form.name], ids=repr)
def test_whole_floats_are_integers_of_strict_models(form: Format) -> None:
    for wanted, wrap in ((Exact, lambda value: value), (list[Exact], lambda value: [value]), (Box[Exact], Box)):
        data = form.encode(wrap({"ts": 1795810805447.0, "part": 2.0}))
        expected = wrap(Exact(ts=1795810805447, part=2.0))
        assert Converter(wanted).decode(form, data) == expected
        with pytest.raises(Mismatch, match="valid integer"):
            Converter(wanted).decode(form, form.encode(wrap({"ts": 1.5})))
    with pytest.raises(Mismatch, match="valid integer"):
        Converter(Exact).decode(JSON, b'{"ts":1.0}')


def test_values_that_no_model_can_have_are_mismatches() -> None:
    assert Converter(Exact).decode(MSGPACK, b"\x82\xa2ts\x05\xa4note\xd4\x00\x00") == Exact(ts=5)
    assert Converter(Exact).decode(CBOR, b"\xa2\x62ts\x05\x64note\xf7") == Exact(ts=5)
    for form, data in (
        (MSGPACK, b"\x82\xa2ts\x05\xa4note\xd4\x05\x00"),
        (CBOR, b"\xa2\x62ts\x05\x64note\xf0"),
        (CBOR, b"\xa2\x62ts\x05\x64note\xd8\x23\x61a"),
    ):
        with pytest.raises(Mismatch):
            Converter(Exact).decode(form, data)
