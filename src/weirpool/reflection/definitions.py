"""The JSON Schemas of a service, which share one table of definitions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ..errors import LocalError
from ..schema.budget import Budget
from ..schema.export import schema_of

__all__ = ["BYTES", "LITERAL", "REFERENCE", "Definitions", "used"]

REFERENCE: Final = "#/$defs/"
BYTES: Final = {"type": "string", "contentEncoding": "base64"}
"""JSON Schema, Media Types: bytes in JSON. River's own schemas have a type for them, `Uint8Array`."""
LITERAL: Final = frozenset({"enum", "const", "examples", "default", "required"})
"""Keywords that contain values, not schemas."""
MAPPINGS: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Keywords whose values are schemas by name."""


class Definitions:
    """Collects schemas. An object with a title becomes a definition of that name, which its uses refer to.

    Attributes:
        table: The definitions by name.

    """

    def __init__(self) -> None:
        self.table: dict[str, Any] = {}
        self._names: dict[str, str] = {}

    def add(self, wanted: Any, *, sent: bool = False) -> dict[str, Any] | None:
        """Return the schema of a type, which the service reads, or has `sent`; None if it is unknown, or has none."""
        if wanted is None:
            return None
        try:
            schema = schema_of(wanted, sent=sent)
        except LocalError:
            return None
        if "properties" in schema and "title" not in schema and isinstance(wanted, type):
            schema = {"title": wanted.__name__, **schema}
        renamed = self._lift(schema)
        written: dict[str, Any] = self._write(schema, renamed)
        return written

    def _lift(self, schema: dict[str, Any]) -> dict[str, str]:
        """Move the definitions of a schema to the table, and return their names there by their references."""
        own = {
            f"#/{keyword}/{name}": (name, each)
            for keyword in ("$defs", "definitions")
            for name, each in schema.get(keyword, {}).items()
        }
        contents = {reference: each for reference, (_, each) in own.items()}
        renamed: dict[str, str] = {}
        for reference, (name, _) in own.items():
            # A definition is the same as another if those that it refers to are, too; its neighbors do not matter.
            renamed[reference] = self._given(name, f"{reference} {_key(_reached({'$ref': reference}, '', contents))}")
        for reference, (_, each) in own.items():
            if renamed[reference] not in self.table:
                # Set first, because it may refer to itself.
                self.table[renamed[reference]] = {}
                self.table[renamed[reference]] = self._write(each, renamed, inside=True)
        return renamed

    def _given(self, name: str, key: str) -> str:
        """Return the name of a definition, which is the same for the same content."""
        found = self._names.get(key)
        if found is None:
            taken = set(self._names.values())
            choices = (name if number == 1 else f"{name}{number}" for number in range(1, len(taken) + 2))
            found = self._names[key] = next(choice for choice in choices if choice not in taken)
        return found

    def _write(self, node: Any, renamed: Mapping[str, str], *, inside: bool = False) -> Any:
        """Return a schema with its references renamed, and its named objects in the table."""
        if isinstance(node, list):
            return [self._write(each, renamed) for each in node]
        if not isinstance(node, Mapping):
            return node
        if node.get("type") == "Uint8Array":
            return BYTES | {key: value for key, value in node.items() if key != "type"}
        made = {key: self._keyword(key, value, renamed) for key, value in node.items() if key[:1] != "$"}
        reference = node.get("$ref")
        if isinstance(reference, str):
            return {"$ref": REFERENCE + renamed[reference], **made} if reference in renamed else dict(node)
        name = made.get("title")
        if inside or not (isinstance(name, str) and name and "properties" in made):
            return made
        given = self._given(name, _key(made))
        self.table.setdefault(given, made)
        return {"$ref": REFERENCE + given}

    def _keyword(self, key: str, value: Any, renamed: Mapping[str, str]) -> Any:
        if key in LITERAL:
            return value
        if key in MAPPINGS and isinstance(value, Mapping):
            return {name: self._write(each, renamed) for name, each in value.items()}
        if key in ("title", "description", "definitions"):
            return value
        return self._write(value, renamed)


def used(schema: Any, table: Mapping[str, Any], budget: Budget | None = None) -> dict[str, Any]:
    """Return the definitions that a schema uses, directly or through others, by name.

    Args:
        schema: The schema.
        table: All definitions.
        budget: Is charged for what is searched.

    Raises:
        LocalError: The budget is spent.

    """
    return dict(sorted(_reached(schema, REFERENCE, table, budget).items()))


def _reached(schema: Any, prefix: str, contents: Mapping[str, Any], budget: Budget | None = None) -> dict[str, Any]:
    """Return what a schema refers to, directly or through others, by its reference without the prefix."""
    found: dict[str, Any] = {}
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            name = node.get("$ref")
            name = name.removeprefix(prefix) if isinstance(name, str) and name.startswith(prefix) else None
            if name is not None and name in contents and name not in found:
                found[name] = contents[name]
                pending.append(contents[name])
            pending += node.values()
        elif isinstance(node, list):
            pending += node
        else:
            continue
        if budget is not None:
            budget.spend(1 + len(node))
    return found


def _key(value: Any) -> str:
    """Return the text of a schema, to compare it with others."""
    return json.dumps(value, sort_keys=True, default=repr)
