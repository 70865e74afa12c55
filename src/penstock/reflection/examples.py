"""Example values for JSON Schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .definitions import REFERENCE

__all__ = ["example"]

MAX_LEVELS: Final = 8
FORMATS: Final = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "time": "12:00:00",
    "duration": "PT1S",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "decimal": "1",
}


def example(schema: Any, definitions: Mapping[str, Any], level: int = 0) -> Any:
    """Return a value that a schema allows, as far as simple rules find one: the required fields of objects only."""
    if not isinstance(schema, Mapping) or level > MAX_LEVELS:
        return None
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return example(definitions.get(reference.removeprefix(REFERENCE)), definitions, level + 1)
    for given in ("const", "default"):
        if given in schema:
            return schema[given]
    for choices in ("enum", "examples"):
        if isinstance(schema.get(choices), list) and schema[choices]:
            return schema[choices][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(several), list) and schema[several]:
            return example(schema[several][0], definitions, level + 1)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or "properties" in schema:
        fields, needed = schema.get("properties", {}), schema.get("required", [])
        return {name: example(each, definitions, level + 1) for name, each in fields.items() if name in needed}
    if kind == "array":
        return _array(schema, definitions, level)
    if kind in ("integer", "number"):
        return _number(schema)
    if kind == "string":
        return _text(schema)
    return False if kind == "boolean" else None


def _array(schema: Mapping[str, Any], definitions: Mapping[str, Any], level: int) -> list[Any]:
    places = schema.get("prefixItems")
    if isinstance(places, list):
        return [example(each, definitions, level + 1) for each in places]
    least = schema.get("minItems", 1)
    count = min(least, 3) if isinstance(least, int) else 1
    # One item shows what an array contains; a recursive type must come to an end.
    return [
        example(schema.get("items"), definitions, level + 1) for _ in range(count if level < MAX_LEVELS // 2 else 0)
    ]


def _number(schema: Mapping[str, Any]) -> Any:
    if "minimum" in schema:
        return schema["minimum"]
    if "exclusiveMinimum" in schema:
        return schema["exclusiveMinimum"] + 1
    most = schema.get("maximum", schema.get("exclusiveMaximum", 2))
    return 1 if most > 1 else most - 1


def _text(schema: Mapping[str, Any]) -> str:
    if "contentEncoding" in schema:
        return ""
    text = FORMATS.get(str(schema.get("format")), "text")
    least, most = schema.get("minLength", 0), schema.get("maxLength", 100)
    return text.ljust(min(least, 100), "x")[:most] if isinstance(least, int) and isinstance(most, int) else text
