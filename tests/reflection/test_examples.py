"""Examples are values that the types accept."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from weirpool.reflection.definitions import Definitions
from weirpool.reflection.examples import example

from .quotes import Leg, Node, Order, Quote, Symbol


@pytest.mark.parametrize("wanted", [Leg, Node, Order, Quote, Symbol, list[Leg], int, str | None, tuple[int, str]])
def test_an_example_is_accepted_by_its_type(wanted: Any) -> None:
    definitions = Definitions()
    schema = definitions.add(wanted)
    assert msgspec.convert(example(schema, definitions.table), wanted) is not None


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": 5}, 5),
        ({"default": "d"}, "d"),
        ({"type": "integer", "exclusiveMinimum": 5}, 6),
        ({"type": "integer", "maximum": 0}, -1),
        ({"type": "string", "minLength": 6}, "textxx"),
        ({"type": "string", "format": "uuid"}, "00000000-0000-0000-0000-000000000000"),
        ({"type": ["null", "string"]}, None),
        ({"anyOf": [{"type": "boolean"}]}, False),
        ({"$ref": "#/$defs/Gone"}, None),
    ],
)
def test_examples(schema: Any, expected: Any) -> None:
    assert example(schema, {}) == expected


def test_a_schema_that_refers_to_itself_ends() -> None:
    table = {"A": {"type": "array", "minItems": 3, "items": {"$ref": "#/$defs/A"}}}
    assert example({"$ref": "#/$defs/A"}, table)


# THREATS 110
def test_an_example_is_small() -> None:
    names = [f"f{number}" for number in range(9)]
    table: dict[str, Any] = {"L8": {"type": "string"}}
    for level in range(8):
        inner = {"$ref": f"#/$defs/L{level + 1}"}
        table[f"L{level}"] = {"properties": dict.fromkeys(names, inner), "required": names}
    assert len(json.dumps(example({"$ref": "#/$defs/L0"}, table))) < 20_000
    huge = {"default": "x" * 1_000_000}
    fields = {f"f{n}": {"$ref": "#/$defs/H"} for n in range(1_000)}
    made = example({"properties": fields, "required": list(fields)}, {"H": huge})
    assert len(made) <= 200 and set(made.values()) == {None}
    small = example({"properties": fields, "required": ["f1"]}, {"H": {"const": ["x" * 100]}})
    assert small == {"f1": ["x" * 100]}
