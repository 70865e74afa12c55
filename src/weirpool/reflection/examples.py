"""Example values for JSON Schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..schema.budget import Budget
from ..schema.wellformed import weight
from .definitions import REFERENCE

__all__ = ["example"]

MAX_LEVELS: Final = 8
MAX_VALUES: Final = 200
"""Values of one example: more are no help to a person."""
MAX_CHARACTERS: Final = 1_000
"""Characters of a value that the schema has."""
CHARACTERS_OF_VALUE: Final = 50
FORMATS: Final = {
    "date-time": "2026-01-31T12:00:00Z",
    "date": "2026-01-31",
    "time": "12:00:00",
    "duration": "PT1S",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "decimal": "1",
}


def example(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a value that a schema allows, as far as simple rules find one: the required fields of objects only.

    Parts of a large value are null.

    Args:
        schema: A well-formed schema; see :class:`weirpool.schema.wellformed.WellFormed`.
        definitions: The schemas that it may refer to.

    """
    return _Maker(definitions).value(schema, 0)


class _Maker:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._budget = Budget(MAX_VALUES, "an example")

    def value(self, schema: Any, level: int) -> Any:
        if not isinstance(schema, Mapping) or level > MAX_LEVELS or not self._budget.afford():
            return None
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self.value(self._definitions.get(reference.removeprefix(REFERENCE)), level + 1)
        for given in ("const", "default"):
            if given in schema:
                return self._given(schema[given])
        for choices in ("enum", "examples"):
            if schema.get(choices):
                return self._given(schema[choices][0])
        for several in ("anyOf", "oneOf", "allOf"):
            if schema.get(several):
                return self.value(schema[several][0], level + 1)
        kind = schema.get("type")
        return self._typed(schema, kind[0] if isinstance(kind, list) else kind, level)

    def _typed(self, schema: Mapping[str, Any], kind: Any, level: int) -> Any:
        if kind == "object" or "properties" in schema:
            fields, needed = schema.get("properties", {}), schema.get("required", [])
            return {name: self.value(fields[name], level + 1) for name in needed[:MAX_VALUES] if name in fields}
        if kind == "array":
            return self._array(schema, level)
        if kind in ("integer", "number"):
            return _number(schema)
        if kind == "string":
            return _text(schema)
        return False if kind == "boolean" else None

    def _array(self, schema: Mapping[str, Any], level: int) -> list[Any]:
        places = schema.get("prefixItems")
        if places:
            return [self.value(each, level + 1) for each in places[:MAX_VALUES]]
        # One item shows what an array contains; a recursive type must come to an end.
        count = min(schema.get("minItems", 1), 3) if level < MAX_LEVELS // 2 else 0
        return [self.value(schema.get("items"), level + 1) for _ in range(count)]

    def _given(self, value: Any) -> Any:
        """Return a value of the schema, if it is not too long."""
        size = weight(value, MAX_CHARACTERS)
        return value if size <= MAX_CHARACTERS and self._budget.afford(size // CHARACTERS_OF_VALUE) else None


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
    return text.ljust(min(schema.get("minLength", 0), 100), "x")[: schema.get("maxLength", 100)]
