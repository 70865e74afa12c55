from __future__ import annotations

import json
from typing import Any

import pytest

from weirpool.errors import LocalError
from weirpool.mocking.values import Values
from weirpool.schema.foreign import Validator

TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "null"},
    {"type": "boolean"},
    {"type": "integer"},
    {"type": "integer", "minimum": 5, "maximum": 7},
    {"type": "integer", "exclusiveMinimum": 5, "exclusiveMaximum": 7},
    {"type": "integer", "minimum": 10, "multipleOf": 7},
    {"type": "integer", "maximum": -5},
    {"type": "number", "minimum": 0.5, "maximum": 0.6},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.001},
    {"type": "string"},
    {"type": "string", "minLength": 30, "maxLength": 31},
    {"type": "string", "maxLength": 2},
    {"type": "string", "enum": ["a", "b"]},
    {"const": {"a": 1}},
    {"type": ["string", "null"]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
    {"type": "array", "items": {"type": "integer"}, "maxItems": 0},
    {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    {"type": "object", "required": ["b"]},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"required": ["c"]}]},
    {"$ref": "#/$defs/quote", "$defs": {"quote": {"type": "object", "properties": {"x": {"type": "number"}}}}},
    TREE,
    {},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_values_match_their_schema(schema: dict[str, Any]) -> None:
    values, validator = Values(schema), Validator(schema)
    for seed in range(50):
        value = json.loads(json.dumps(values.make(str(seed))))
        validator.check(value)
        assert value == json.loads(json.dumps(values.make(str(seed))))


@pytest.mark.parametrize("form", ["date-time", "date", "email", "uri", "uuid", "ipv4", "ipv6", "hostname"])
def test_formats_are_respected(form: str) -> None:
    import jsonschema_rs

    checked = jsonschema_rs.Draft202012Validator({"type": "string", "format": form}, validate_formats=True)
    values = Values({"type": "string", "format": form})
    for seed in range(20):
        assert checked.is_valid(values.make(str(seed)))


def test_same_seed_gives_the_same_value() -> None:
    made = [Values(TREE).make("7") for _ in range(2)]
    assert made[0] == made[1]
    assert len({json.dumps(Values(TREE).make(str(seed))) for seed in range(20)}) > 5


def test_bytes_of_typebox_are_bytes() -> None:
    assert isinstance(Values({"type": "Uint8Array"}).make(""), bytes)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"$ref": "#"},
        {"$ref": "https://example.org/schema"},
        {"$ref": "#/missing"},
        {"type": "dance"},
        {"type": "string", "minLength": 1_000_000_000},
        {"type": "array", "items": {}, "minItems": 1_000_000_000},
        {"type": "array", "minItems": 9_000, "items": {"type": "array", "minItems": 9_000, "items": {}}},
        [],
    ],
    ids=str,
)
def test_schema_without_finite_values_is_refused(schema: Any) -> None:
    with pytest.raises(LocalError, match=r"schema|Schema"):
        Values(schema).make("")


def test_strings_have_their_pattern_and_its_length() -> None:
    schema = {"type": "string", "pattern": "^[A-Z]+$", "minLength": 3, "maxLength": 4}
    made = [Values(schema).make(str(number)) for number in range(50)]
    assert {len(text) for text in made} == {3, 4}
    assert all(text.isupper() for text in made)
    assert isinstance(Values({"type": "string", "pattern": "^(?!a)b"}).make("1"), str)


# THREATS 110
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "minItems": 50, "items": {"const": "x" * 100_000}},
        {"type": "object", "allOf": [{}] * 9_000},
        {"type": "integer", "minimum": 1e300},
        {"type": "integer", "multipleOf": 5e-324},
        {"type": "object", "required": [f"f{n}" for n in range(20_000)]},
        {"type": "array", "minItems": 99, "items": {"type": "string", "minLength": 10_000}},
        {"anyOf": [{"$ref": "#"}] * 50_000},
    ],
    ids=lambda schema: str(schema)[:40],
)
def test_values_that_are_too_large_are_refused(schema: Any) -> None:
    with pytest.raises(LocalError):
        for seed in range(100):
            Values(schema).make(str(seed))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": "abc", "required": 5},
        {"type": [["x"]]},
        {"allOf": [{"type": []}, 5]},
        {"enum": {"a": 1}},
        {"type": "array", "items": 3, "minItems": "x"},
        {"$ref": ["#"]},
        {"multipleOf": "a"},
        {"pattern": 5, "type": "string"},
    ],
    ids=str,
)
def test_malformed_keywords_say_nothing(schema: Any) -> None:
    assert json.dumps(Values(schema).make("1"))


def test_tuples_of_older_drafts_have_their_places() -> None:
    made = Values({"type": "array", "items": [{"const": 1}, {"const": "a"}], "additionalItems": False}).make("1")
    assert made == [1, "a"]
