"""Joins the parts of an intersection of objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from .budget import Budget

__all__ = ["merged"]

MAX_LEVELS: Final = 16
NO_PARTS: Final = frozenset({"unevaluatedProperties", "$id", "$defs", "title", "description", "type"})


def merged(schema: Mapping[str, Any], resolve: Callable[[str], Any], budget: Budget) -> dict[str, Any]:
    """Return one schema for an ``allOf``; empty if its parts are neither objects nor limits of one of them.

    Args:
        schema: The schema, which is well-formed.
        resolve: Returns the target of a reference.
        budget: Is charged for each part and its fields.

    Raises:
        LocalError: The budget is spent.

    """
    parts = _parts(schema, resolve, budget, 0)
    if not parts:
        return {}
    kinds = {str(part["type"]) for part in parts if "type" in part}
    objects = [part for part in parts if isinstance(part.get("properties"), Mapping)]
    if len(kinds) > 1 or any("anyOf" in part or "$ref" in part for part in parts):
        return {}
    whole: dict[str, Any] = {}
    for part in parts:
        whole |= part
    if objects:
        whole["properties"] = {key: value for part in objects for key, value in part["properties"].items()}
        needed = [key for part in parts for key in part.get("required", ())]
        whole["required"] = list(dict.fromkeys(needed))
    named = {key: schema[key] for key in ("title", "$id", "description", "$defs") if key in schema}
    return {key: value for key, value in whole.items() if key not in NO_PARTS or key == "type"} | named


def _parts(
    schema: Mapping[str, Any], resolve: Callable[[str], Any], budget: Budget, level: int
) -> list[Mapping[str, Any]]:
    """Return the parts of nested intersections; empty if one of them is missing."""
    found: list[Mapping[str, Any]] = []
    for each in schema["allOf"]:
        part = resolve(each["$ref"]) if isinstance(each, Mapping) and isinstance(each.get("$ref"), str) else each
        if not isinstance(part, Mapping) or level > MAX_LEVELS:
            return []
        budget.spend(1 + len(part) + len(part.get("properties", ())))
        if "allOf" in part:
            inner = _parts(part, resolve, budget, level + 1)
            if not inner:
                return []
            found += inner
        elif part:
            found.append(part)
    own = {key: value for key, value in schema.items() if key != "allOf" and key not in NO_PARTS | {"type"}}
    return [*found, own] if own else found
