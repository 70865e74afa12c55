from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.schema.encodings import ALL
from weirpool import LocalError, Mismatch
from weirpool.schema.converter import Converter, problems_in_json, validation_extras
from weirpool.schema.formats import JSON, MSGPACK, Format


class Line(msgspec.Struct):
    count: int


class Order(msgspec.Struct):
    name: str
    lines: list[Line] = []
    notes: dict[str, Line] = {}


@pytest.mark.parametrize("form", ALL)
def test_values_round_trip(form: Format) -> None:
    converter = Converter(Order)
    order = Order("a", [Line(1)], {"x": Line(2)})
    assert converter.decode(form, converter.encode(form, order)) == order


@pytest.mark.parametrize("form", ALL)
@pytest.mark.parametrize(
    ("value", "path", "message"),
    [
        ({}, "/name", "missing required field"),
        ({"name": 1}, "/name", "Expected `str`, got `int`"),
        ({"name": "a", "lines": [{"count": 1}, {"count": "x"}]}, "/lines/1/count", "Expected `int`"),
        ({"name": "a", "lines": [{}]}, "/lines/0/count", "missing"),
        ({"name": "a", "notes": {"k": {"count": None}}}, "/notes/.../count", "Expected `int`"),
        ([], "", "Expected `object`"),
    ],
)
def test_problems_have_locations_and_descriptions(form: Format, value: Any, path: str, message: str) -> None:
    with pytest.raises(Mismatch) as error:
        Converter(Order).decode(form, form.encode(value))
    ((where, what),) = error.value.problems
    assert where == path
    assert message in what
    assert (path or "data") in str(error.value)


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b'{"name":"a"} x', b"[" * 1_000_000, b'{"name":NaN}'])
def test_invalid_json_is_a_mismatch(data: bytes) -> None:
    with pytest.raises(Mismatch):
        Converter(Order).decode(JSON, data)


@pytest.mark.parametrize("data", [b"\xc1", b"\xa1\xff", b"\x81", b"\x91" * 1_000_000, b"\xdd\xff\xff\xff\xff"])
def test_invalid_msgpack_is_a_mismatch(data: bytes) -> None:
    with pytest.raises(Mismatch):
        Converter(Any).decode(MSGPACK, data)


@pytest.mark.parametrize("form", ALL)
def test_no_data_is_null_where_null_is_a_value(form: Format) -> None:
    for wanted in (type(None), int | None, Order | None, Any, {"type": ["null", "string"]}):
        assert Converter(wanted).decode(form, b"") is None
    for wanted in (int, str, Order, list[int], {"type": "string"}):
        with pytest.raises(Mismatch, match="there is no data"):
            Converter(wanted).decode(form, b"")


def test_decoding_is_strict() -> None:
    with pytest.raises(Mismatch):
        Converter(int).decode(JSON, b'"1"')


def test_unsupported_types_and_values_are_refused() -> None:
    with pytest.raises(LocalError, match="not a type that can be decoded"):
        Converter(list[int] | set[int])
    with pytest.raises(LocalError, match="object cannot be written as json"):
        Converter.encode(JSON, object())


def test_at_most_five_problems_are_reported() -> None:
    error = Mismatch(problems=[(f"/{number}", "wrong") for number in range(7)], total=9)
    assert len(json.loads(problems_in_json(error))["errors"]) == 5
    extras = validation_extras(error)
    assert (len(extras["firstValidationErrors"]), extras["totalErrors"]) == (5, 9)
    assert extras["firstValidationErrors"][0] == {"path": "/0", "message": "wrong"}
    assert str(error).endswith("and 2 more")
