"""JSON Schemas as people read them: `{symbol: str, price: float}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from .definitions import REFERENCE
from .description import Described

__all__ = ["field_lines", "fields_text", "signature", "type_text"]

MAX_LEVELS: Final = 5
MAX_CHOICES: Final = 12
MAX_FIELDS: Final = 24
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


def signature(route: Described, definitions: Mapping[str, Any], *, fields: bool = True) -> str:
    """Return a handler as one line, such as ``quotes(Symbol) -> stream of Quote {symbol: str, price: float}``.

    Args:
        route: The handler.
        definitions: The definitions of its description.
        fields: Whether to write the fields of the response.

    """
    taken = type_text(route.request)
    if route.kind in ("upload", "channel"):
        taken = f"{taken}, stream of {type_text(route.items)}"
    text = f"{route.route}({taken})"
    if route.kind == "fire":
        return text
    answer = (fields_text if fields else type_text)(route.response, definitions)
    return f"{text} -> {'stream of ' if route.kind in ('stream', 'channel') else ''}{answer}"


def fields_text(schema: Any, definitions: Mapping[str, Any]) -> str:
    """Return a type, and if it is a named object its fields: ``Quote {symbol: str, price: float}``."""
    text = type_text(schema)
    name = _referred(schema)
    target = definitions.get(name) if name is not None else None
    if not isinstance(target, Mapping) or "properties" not in target:
        return text if target is None else f"{text} {type_text(target)}"
    return f"{text} {_object(target, 1)}"


def type_text(schema: Any, definitions: Mapping[str, Any] | None = None, level: int = 0) -> str:
    """Return the type of a schema; `definitions` are not written."""
    if not isinstance(schema, Mapping):
        return UNTYPED
    if level > MAX_LEVELS:
        return "…"
    name = _referred(schema)
    if name is not None:
        return name
    if "const" in schema:
        return _literal(schema["const"])
    if isinstance(schema.get("enum"), list):
        return _joined([_literal(each) for each in schema["enum"]])
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return _joined([type_text(each, None, level + 1) for each in schema[keyword]])
    kind = schema.get("type")
    if isinstance(kind, list):
        return _joined([type_text({**schema, "type": each}, None, level + 1) for each in kind])
    if kind == "array":
        return _array(schema, level)
    if kind == "object" or "properties" in schema:
        return _object(schema, level + 1)
    if kind == "string":
        return "bytes" if "contentEncoding" in schema else FORMATS.get(str(schema.get("format")), "str")
    return SIMPLE.get(str(kind), "any")


def _referred(schema: Any) -> str | None:
    """Return the name of the definition that a schema refers to."""
    reference = schema.get("$ref") if isinstance(schema, Mapping) else None
    return reference.removeprefix(REFERENCE) if isinstance(reference, str) else None


def _array(schema: Mapping[str, Any], level: int) -> str:
    places = schema.get("prefixItems")
    if isinstance(places, list):
        return f"[{', '.join(type_text(each, None, level + 1) for each in places[:MAX_CHOICES])}]"
    items = schema.get("items")
    return "list" if not isinstance(items, Mapping) or not items else f"list[{type_text(items, None, level + 1)}]"


def _object(schema: Mapping[str, Any], level: int) -> str:
    fields = schema.get("properties")
    if not isinstance(fields, Mapping) or not fields:
        values = schema.get("additionalProperties")
        return f"dict[str, {type_text(values, None, level)}]" if isinstance(values, Mapping) and values else "dict"
    if level > MAX_LEVELS:
        return "{…}"
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    written = [
        f"{name}{'' if name in needed else '?'}: {type_text(each, None, level)}"
        for name, each in list(fields.items())[:MAX_FIELDS]
    ]
    return f"{{{', '.join([*written, *(['…'] if len(fields) > MAX_FIELDS else [])])}}}"


def _literal(value: Any) -> str:
    return "none" if value is None else json.dumps(value, ensure_ascii=False, default=repr)


def _joined(words: list[str]) -> str:
    shown = list(dict.fromkeys(words))
    return " | ".join([*shown[:MAX_CHOICES], *(["…"] if len(shown) > MAX_CHOICES else [])])


def field_lines(schema: Any) -> list[str]:
    """Return the fields of an object, one for each line, with limits, defaults and descriptions; else its type."""
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(fields, Mapping):
        return [type_text(schema)]
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    return [_field_line(name, each, name in needed) for name, each in fields.items()]


def _field_line(name: str, schema: Any, needed: bool) -> str:
    text = f"{name}{'' if needed else '?'}: {type_text(schema)}"
    if not isinstance(schema, Mapping):
        return text
    notes = [f"{words} {_literal(schema[key])}" for key, words in LIMITS.items() if key in schema]
    about = schema.get("description")
    limits = f"  ({', '.join(notes)})" if notes else ""
    return f"{text}{limits}{f'  {about}' if isinstance(about, str) else ''}"
