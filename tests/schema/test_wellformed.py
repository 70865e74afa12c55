"""Schemas get the shapes of their keywords; what has another one is left out, and nothing else."""

from __future__ import annotations

import datetime
import json
from random import Random
from typing import Any

import pytest

from tests.reflection.quotes import service as quotes
from tests.schema.shop import service as shop
from weirpool import LocalError
from weirpool.schema.wellformed import MAX_NAME, MAX_VALUES, WellFormed, weight

WHOLE: list[Any] = [
    {},
    True,
    False,
    {"type": "string"},
    {"type": ["string", "null"]},
    {"type": "Uint8Array", "minByteLength": 1},
    {
        "properties": {"type": {"type": "integer"}, "required": True},
        "required": ["type"],
        "additionalProperties": False,
    },
    {"items": [{"type": "integer"}, True], "additionalItems": False},
    {"prefixItems": [{}], "items": False},
    {"anyOf": [{"const": None}, {"enum": [1, "a", 2.5, None, {"a": [1]}]}]},
    {"$ref": "#/$defs/A", "$defs": {"A": {}}},
    {"minLength": 0, "maxLength": 5, "pattern": "a", "format": "date"},
    {"minimum": -1.5, "multipleOf": 0.1},
    {"x-other": {"anything": [1]}, "default": {"properties": "abc"}},
    {"patternProperties": {"^a": {}}, "not": {}},
]
WRONG: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "object", "properties": "abc", "required": 5}, {"type": "object"}),
    ({"type": [["x"]]}, {}),
    ({"type": []}, {}),
    ({"type": None}, {}),
    ({"type": ["a"] * 99}, {"type": ["a"]}),
    ({"allOf": [{"type": []}, {"type": [], "minimum": 1}]}, {"allOf": [{}, {"minimum": 1}]}),
    ({"type": "array", "items": 3, "minItems": "x"}, {"type": "array"}),
    ({"enum": {"a": 1}}, {}),
    ({"enum": []}, {}),
    ({"$ref": ["#/$defs/a"]}, {}),
    ({"$ref": "a" * (MAX_NAME + 1)}, {}),
    ({"anyOf": {}}, {}),
    ({"anyOf": [1]}, {}),
    ({"properties": {"a": 1, "b": {}}}, {"properties": {"b": {}}}),
    ({"properties": {"a" * 2_000: {}}}, {"properties": {}}),
    ({"minimum": True}, {}),
    ({"minimum": "1"}, {}),
    ({"minimum": float("inf")}, {}),
    ({"maximum": 2**70}, {}),
    ({"multipleOf": 0}, {}),
    ({"multipleOf": -1}, {}),
    ({"minLength": -1}, {}),
    ({"minLength": 1.5}, {}),
    ({"maxLength": 3.0}, {"maxLength": 3}),
    ({"required": ["a", 1]}, {}),
    ({"required": ["a", "a"]}, {"required": ["a"]}),
    ({"description": 5, "title": ["a"], "format": {}, "pattern": 1, "contentEncoding": True}, {}),
    ({"const": b"a"}, {}),
    ({"default": datetime.date(2026, 1, 1)}, {}),
    ({"default": float("nan")}, {}),
    ({"x": {1: 2}}, {"x": {}}),
    ({"default": [1, {"a": b""}]}, {"default": [1, {}]}),
    ({5: "a"}, {}),
]


@pytest.mark.parametrize("schema", WHOLE, ids=json.dumps)
def test_what_is_well_formed_is_not_changed(schema: Any) -> None:
    reader = WellFormed()
    assert reader.schema(schema) == schema and reader.is_whole


@pytest.mark.parametrize(("schema", "expected"), WRONG, ids=lambda each: str(each)[:40])
def test_what_is_not_is_left_out(schema: Any, expected: Any) -> None:
    reader, dropped = WellFormed(), []
    assert reader.schema(schema, lambda place, key: dropped.append((place, key))) == expected
    # A repeated name, and 3.0 for 3, say the same.
    assert reader.is_whole == (not dropped)


def test_what_is_left_out_is_told_with_its_place() -> None:
    dropped: list[tuple[str, str]] = []
    schema = {"properties": {"a": {"anyOf": [{"type": 5}]}}}
    WellFormed().schema(schema, lambda place, key: dropped.append((place, key)))
    assert dropped == [("/properties/a/anyOf", "type")]


@pytest.mark.parametrize("value", [None, 1, "a", [], [{}], 1.5, b""])
def test_other_values_are_no_schemas(value: Any) -> None:
    reader = WellFormed()
    assert reader.schema(value) is None and not reader.is_whole


def test_services_schemas_are_whole() -> None:
    for service in (shop, quotes):
        reader = WellFormed()
        for group in service.schema()["services"].values():
            for procedure in group["procedures"].values():
                for part in ("init", "input", "output", "errors"):
                    given = procedure.get(part, {})
                    assert json.dumps(reader.schema(given)) == json.dumps(given)
        assert reader.is_whole


def test_shared_parts_stay_shared_and_cost_once() -> None:
    shared = {"properties": {f"f{number}": {} for number in range(1_000)}}
    reader = WellFormed()
    made = [reader.schema({"items": shared}) for _ in range(1_000)]
    assert isinstance(made[0], dict) and isinstance(made[1], dict) and made[0]["items"] is made[1]["items"]
    # What has a form keeps it.
    assert reader.schema(made[0]) is made[0]


# THREATS 110
def test_schemas_are_bounded() -> None:
    reader = WellFormed()
    for value in (
        {"enum": [0] * MAX_VALUES},
        {"properties": {f"f{n}": {"type": "null"} for n in range(MAX_VALUES // 2)}},
    ):
        with pytest.raises(LocalError, match="more than 100,000 steps"):
            reader.schema(value)
    assert not reader.is_whole
    deep: Any = {}
    for _ in range(1_000):
        deep = {"items": deep, "default": [deep.get("default", 1)]}
    assert isinstance(WellFormed().schema(deep), dict)


def test_a_weight_is_about_that_of_the_text() -> None:
    assert weight("a" * 50, 1_000) == 58 and weight({"ab": [1, "c"]}, 1_000) == 46
    assert weight([["x" * 100] * 1_000] * 1_000, 500) > 500 and weight("a" * 10**6, 500) > 500


def anything(random: Random, levels: int = 4) -> Any:
    """Return a value of JSON, with keywords of schemas in it."""
    words = (
        "type",
        "properties",
        "items",
        "anyOf",
        "allOf",
        "enum",
        "const",
        "required",
        "$ref",
        "minItems",
        "pattern",
        "additionalProperties",
        "prefixItems",
        "$defs",
        "default",
        "multipleOf",
        "minimum",
        "format",
        "title",
    )
    kind = random.randrange(9 if levels else 6)
    if kind < 6:
        return (
            None,
            True,
            random.randrange(-5, 5),
            random.choice(("object", "array", "#", "#/$defs/a", "")),
            1.5,
            "a",
        )[kind]
    if kind == 6:
        return [anything(random, levels - 1) for _ in range(random.randrange(4))]
    return {random.choice(words): anything(random, levels - 1) for _ in range(random.randrange(5))}


def test_any_value_gets_a_form() -> None:
    for seed in range(3_000):
        value = anything(Random(seed))
        made = WellFormed().schema(value)
        again = WellFormed()
        assert made is None or (again.schema(made) == made and again.is_whole), seed
