"""Types as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from weirpool import Connection
from weirpool.reflection.description import Described
from weirpool.reflection.notation import field_lines, fields_text, signature, type_text
from weirpool.reflection.served import description_of
from weirpool.schema.budget import Budget

from .quotes import service

DESCRIPTION = description_of(service, Connection("rsocket", "", False))


@pytest.mark.parametrize(
    ("route", "expected"),
    [
        ("quotes.latest", "quotes.latest(Symbol) -> Quote {symbol: str, price: float}"),
        ("quotes.live", "quotes.live(Symbol) -> stream of Quote {symbol: str, price: float}"),
        ("orders.load", "orders.load(Symbol, stream of Leg) -> int"),
        ("tree", "tree(Node) -> Node {value: int, children?: list[Node]}"),
        ("log", "log(data)"),
        ("numbers", "numbers(data) -> stream of data"),
    ],
)
def test_signatures(route: str, expected: str) -> None:
    [described] = DESCRIPTION.find(route)
    assert signature(described, DESCRIPTION.definitions) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "any"),
        (None, "data"),
        ({"const": "a"}, '"a"'),
        ({"enum": ["a", None, 1]}, '"a" | none | 1'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "str | none"),
        ({"type": ["integer", "null"]}, "int | none"),
        ({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}, "[str, float]"),
        ({"type": "array"}, "list"),
        ({"type": "object"}, "dict"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"type": "string", "format": "date-time"}, "datetime"),
        ({"type": "string", "contentEncoding": "base64"}, "bytes"),
        ({"properties": {"a": {"type": "string"}}, "required": None}, "{a?: str}"),
    ],
)
def test_types(schema: Any, expected: str) -> None:
    assert type_text(schema) == expected


def test_deep_and_wide_schemas_end() -> None:
    deep: Any = {}
    for _ in range(100):
        deep = {"type": "array", "items": deep or {"type": "string"}}
    assert "…" in type_text(deep) and len(type_text(deep)) < 100
    wide = {"type": "object", "properties": {f"f{number}": {} for number in range(1_000)}}
    assert len(type_text(wide)) < 500
    assert fields_text({"$ref": "#/$defs/Gone"}, {}) == "Gone"
    assert signature(Described("a", "stream", response={"$ref": "x"}), {"x": {"type": "string"}}) == (
        "a(data) -> stream of x str"
    )


# THREATS 110
def test_types_are_written_in_part() -> None:
    wide = {"properties": {f"f{n}": {"enum": [f"e{m}" for m in range(50)]} for n in range(5_000)}}
    assert len(fields_text({"$ref": "#/$defs/W"}, {"W": wide})) < 10_000
    lines = field_lines(wide)
    assert len(lines) == 1_001 and lines[-1] == "…"
    assert type_text({"const": "x" * 1_000}) == f'"{"x" * 199}…' and type_text({"const": [1]}) == "[…]"
    types: dict[str, object] = {"type": "string"}
    for _ in range(6):
        types = {"type": ["object", "array", "string"] * 5, "properties": {"a": types, "b": types}}
    assert "…" in type_text(types)
    spent = Budget(3, "a test")
    described = [Described("a", "call", request={"type": "string"})] * 4
    assert [signature(each, {}, budget=spent) for each in described][2:] == ["a(str) -> data", "a(…) -> data"]
