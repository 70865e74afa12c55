"""Writes the JSON Schemas of pydantic in the format of the others: each use of a type in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["inlined"]

NAMED = ("properties", "$defs")
"""Keywords whose keys are names, and not keywords."""


def inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without references but to recursive types, which stay under ``$defs``.

    Titles stay where they name a class or an enumeration; pydantic also writes one for each field.
    """
    definitions = schema.get("$defs", {})
    recursive = {name for name in definitions if name in _reachable(name, definitions)}
    made: dict[str, Any] = _written(
        {key: each for key, each in schema.items() if key != "$defs"}, definitions, recursive
    )
    kept = {name: _written(definitions[name], definitions, recursive) for name in sorted(recursive)}
    return made | {"$defs": kept} if kept else made


def _written(node: Any, definitions: Mapping[str, Any], recursive: set[str]) -> Any:
    if isinstance(node, list):
        return [_written(each, definitions, recursive) for each in node]
    if not isinstance(node, Mapping):
        return node
    name = _referred(node)
    if name in definitions and name not in recursive:
        rest = {key: each for key, each in node.items() if key != "$ref"}
        return _written({**definitions[name], **rest}, definitions, recursive)
    is_class = node.get("type") == "object" or "enum" in node
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key in NAMED and isinstance(value, Mapping):
            made[key] = {field: _written(each, definitions, recursive) for field, each in value.items()}
        elif key != "title" or is_class:
            made[key] = _written(value, definitions, recursive)
    return made


def _referred(node: Mapping[str, Any]) -> str:
    return str(node.get("$ref", "")).rpartition("/")[2]


def _reachable(name: str, definitions: Mapping[str, Any]) -> set[str]:
    """Return the definitions that one refers to, directly or indirectly."""
    found: set[str] = set()
    ahead = list(_references(definitions[name]))
    while ahead:
        each = ahead.pop()
        if each not in found and each in definitions:
            found.add(each)
            ahead += _references(definitions[each])
    return found


def _references(node: Any) -> Iterator[str]:
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, Mapping):
            if "$ref" in each:
                yield _referred(each)
            pending += each.values()
        elif isinstance(each, list):
            pending += each
