"""JSON Schemas as people read them: `{symbol: str, price: float}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final

from ..schema.budget import Budget
from .definitions import REFERENCE
from .description import Described

__all__ = ["field_lines", "fields_text", "signature", "type_text"]

MAX_LEVELS: Final = 5
MAX_CHOICES: Final = 12
MAX_FIELDS: Final = 24
MAX_LINES: Final = 1_000
MAX_PARTS: Final = 10_000
"""Types within a type."""
MAX_CHARACTERS: Final = 200
"""Characters of a name or a value."""
MAX_ABOUT: Final = 2_000
SIMPLE: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "none"}
FORMATS: Final = {"date-time": "datetime", "date": "date", "time": "time", "duration": "duration", "uuid": "uuid"}
LIMITS: Final = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "length at least",
    "maxLength": "length at most",
    "pattern": "matches",
    "minItems": "items at least",
    "maxItems": "items at most",
    "default": "default",
}
UNTYPED: Final = "data"
"""What a handler takes or returns if its type is not known."""


def signature(
    route: Described, definitions: Mapping[str, Any], *, fields: bool = True, budget: Budget | None = None
) -> str:
    """Return a handler as one line, such as ``quotes(Symbol) -> stream of Quote {symbol: str, price: float}``.

    Args:
        route: The handler.
        definitions: The definitions of its description.
        fields: Whether to write the fields of the response.
        budget: What may be written of all types of the description; a part beyond it is "…".

    """
    writer = _Writer(budget)
    taken = writer.type(route.request)
    if route.kind in ("upload", "channel"):
        taken = f"{taken}, stream of {writer.type(route.items)}"
    text = f"{route.route}({taken})"
    if route.kind == "fire":
        return text
    answer = writer.fields(route.response, definitions) if fields else writer.type(route.response)
    return f"{text} -> {'stream of ' if route.kind in ('stream', 'channel') else ''}{answer}"


def fields_text(schema: Any, definitions: Mapping[str, Any]) -> str:
    """Return a type, and if it is a named object its fields: ``Quote {symbol: str, price: float}``."""
    return _Writer().fields(schema, definitions)


def type_text(schema: Any) -> str:
    """Return the type of a schema; definitions are not written."""
    return _Writer().type(schema)


def field_lines(schema: Any, budget: Budget | None = None) -> list[str]:
    """Return the fields of an object, one for each line, with limits, defaults and descriptions; else its type.

    Args:
        schema: The schema of the object.
        budget: What may be written of all types of the description; see :func:`signature`.

    """
    writer = _Writer(budget)
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    if not fields:
        return [writer.type(schema)]
    needed = frozenset(schema.get("required") or ())
    lines = [writer.line(name, each, name in needed) for name, each in islice(fields.items(), MAX_LINES)]
    return [*lines, *(["…"] if len(fields) > MAX_LINES else [])]


class _Writer:
    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget or Budget(MAX_PARTS, "the notation of a type")

    def fields(self, schema: Any, definitions: Mapping[str, Any]) -> str:
        text = self.type(schema)
        name = _referred(schema)
        target = definitions.get(name) if name is not None else None
        if not isinstance(target, Mapping) or "properties" not in target:
            return text if target is None else f"{text} {self.type(target)}"
        return f"{text} {self._object(target, 1)}"

    def type(self, schema: Any, level: int = 0) -> str:
        if not isinstance(schema, Mapping):
            return UNTYPED
        if level > MAX_LEVELS or not self._budget.afford():
            return "…"
        name = _referred(schema)
        if name is not None:
            return _short(name)
        if "const" in schema:
            return self._literal(schema["const"])
        if "enum" in schema:
            return _joined(map(self._literal, schema["enum"]), len(schema["enum"]))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return _joined((self.type(each, level + 1) for each in schema[keyword]), len(schema[keyword]))
        kind = schema.get("type")
        if isinstance(kind, list):
            if not self._budget.afford(len(kind) * len(schema)):
                return "…"
            return _joined((self.type({**schema, "type": each}, level + 1) for each in kind), len(kind))
        if kind == "array":
            return self._array(schema, level)
        if kind == "object" or "properties" in schema:
            return self._object(schema, level + 1)
        if kind == "string":
            return "bytes" if "contentEncoding" in schema else FORMATS.get(schema.get("format", ""), "str")
        return SIMPLE.get(str(kind), "any")

    def line(self, name: str, schema: Any, needed: bool) -> str:
        text = f"{_short(name)}{'' if needed else '?'}: {self.type(schema)}"
        if not isinstance(schema, Mapping):
            return text
        notes = [f"{words} {self._literal(schema[key])}" for key, words in LIMITS.items() if key in schema]
        limits = f"  ({', '.join(notes)})" if notes else ""
        about = schema.get("description", "")
        return f"{text}{limits}{f'  {about[:MAX_ABOUT]}' if about else ''}"

    def _array(self, schema: Mapping[str, Any], level: int) -> str:
        places = schema.get("prefixItems")
        if places:
            return f"[{', '.join(self.type(each, level + 1) for each in places[:MAX_CHOICES])}]"
        items = schema.get("items")
        return "list" if not isinstance(items, Mapping) or not items else f"list[{self.type(items, level + 1)}]"

    def _object(self, schema: Mapping[str, Any], level: int) -> str:
        fields = schema.get("properties")
        if not fields:
            values = schema.get("additionalProperties")
            return f"dict[str, {self.type(values, level)}]" if isinstance(values, Mapping) and values else "dict"
        if level > MAX_LEVELS:
            return "{…}"
        shown = list(islice(fields.items(), MAX_FIELDS))
        required = schema.get("required") or []
        needed = frozenset(required) if self._budget.afford(len(required)) else frozenset()
        written = [f"{_short(name)}{'' if name in needed else '?'}: {self.type(each, level)}" for name, each in shown]
        return f"{{{', '.join([*written, *(['…'] if len(fields) > MAX_FIELDS else [])])}}}"

    def _literal(self, value: Any) -> str:
        if value is None:
            return "none"
        # A list or an object may be of any size.
        if isinstance(value, list | dict) and value:
            return "[…]" if isinstance(value, list) else "{…}"
        return _short(json.dumps(value, ensure_ascii=False))


def _referred(schema: Any) -> str | None:
    """Return the name of the definition that a schema refers to."""
    reference = schema.get("$ref") if isinstance(schema, Mapping) else None
    return reference.removeprefix(REFERENCE) if isinstance(reference, str) else None


def _joined(words: Iterable[str], count: int) -> str:
    """Return words as alternatives; of more than `MAX_CHOICES`, the first ones."""
    shown = list(dict.fromkeys(islice(words, MAX_CHOICES)))
    return " | ".join([*shown, *(["…"] if count > MAX_CHOICES else [])])


def _short(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
