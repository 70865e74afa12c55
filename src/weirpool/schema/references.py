"""Finds the targets of references within a schema, and compares schemas with all that they refer to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .budget import Budget

__all__ = ["References"]

DEFINITIONS: Final = ("$defs", "definitions")
NOT_PARTS: Final = frozenset({"$id", "$schema", "$defs", "definitions", "description", "default", "examples"})
"""Keys of a schema that do not change which values it allows, nor what they are called."""


_NO_REFERENCES: Final[frozenset[str]] = frozenset()
_Digest = tuple[int, frozenset[str]]
"""A number that is equal for equal parts, and the references in them."""


class References:
    """The references of any number of schemas, each within its root.

    Args:
        budget: Is charged for what is searched.

    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        # By the identity of the root, which is kept: another object could get its identity.
        self._ids: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._digests: dict[int, tuple[Any, _Digest]] = {}
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._titled: dict[tuple[int, str], tuple[Any, Any]] = {}

    def target(self, reference: str, root: Any) -> Any:
        """Return what a reference leads to: a pointer, or the ``$id`` of a part as in TypeBox; None if nothing.

        A reference to a reference is followed.
        """
        found: Any = {"$ref": reference}
        seen: set[str] = set()
        while isinstance(found, Mapping) and isinstance(found.get("$ref"), str):
            if found["$ref"] in seen:
                return None
            seen.add(found["$ref"])
            self._budget.spend()
            found = self._step(found["$ref"], root)
        return found

    def _step(self, reference: str, root: Any) -> Any:
        if reference == "#":
            return root if not isinstance(root, Mapping) or "$ref" not in root else None
        if reference.startswith("#/"):
            found = root
            for step in reference[2:].split("/"):
                step = step.replace("~1", "/").replace("~0", "~")
                if isinstance(found, list):
                    found = found[int(step)] if step.isdecimal() and int(step) < len(found) else None
                else:
                    found = found.get(step) if isinstance(found, Mapping) else None
            return found
        return self._by_id(root).get(reference.removeprefix("#"))

    def _by_id(self, root: Any) -> dict[str, Any]:
        """Return the parts of a schema by their names."""
        known = self._ids.get(id(root))
        if known is not None:
            return known[1]
        found: dict[str, Any] = {}
        pending = [root]
        while pending:
            node = pending.pop()
            self._budget.spend()
            if isinstance(node, Mapping):
                name = node.get("$id")
                if isinstance(name, str):
                    found.setdefault(name, node)
                for place in DEFINITIONS:
                    definitions = node.get(place)
                    if isinstance(definitions, Mapping):
                        for name, each in definitions.items():
                            found.setdefault(name, each)
                pending += node.values()
            elif isinstance(node, list):
                pending += node
        self._ids[id(root)] = (root, found)
        return found

    @staticmethod
    def name(reference: str) -> str:
        """Return the name in a reference to a definition; empty if it has none."""
        place, slash, name = reference.rpartition("/")
        if not slash:
            return "" if reference == "#" or (reference[:1] == "T" and reference[1:].isdigit()) else reference
        return name.replace("~1", "/").replace("~0", "~") if place[2:] in DEFINITIONS else ""

    def titled(self, schema: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        """Return a schema with a title; the same object for the same schema."""
        known = self._titled.get((id(schema), name))
        if known is None:
            known = self._titled[(id(schema), name)] = (schema, {**schema, "title": name})
        return known[1]

    def key(self, schema: Mapping[str, Any], root: Any) -> tuple[Any, ...]:
        """Return a key that is equal for schemas that allow the same values, under the same name."""
        number, pending = self._bare(schema)
        closure: dict[str, int] = {}
        ahead = list(pending)
        while ahead:
            reference = ahead.pop()
            self._budget.spend()
            if reference not in closure:
                closure[reference], more = self._bare(self.target(reference, root))
                ahead += more
        return number, tuple(sorted(closure.items()))

    def _bare(self, schema: Any) -> _Digest:
        """Return the digest of a schema without what does not matter for equality."""
        if not isinstance(schema, Mapping):
            return self._digest(schema)
        parts = {key: self._digest(value) for key, value in schema.items() if key not in NOT_PARTS}
        if isinstance(schema.get("required"), list):
            parts["required"] = self._number(tuple(sorted(map(str, schema["required"])))), _NO_REFERENCES
        return self._joined("", parts)

    def _digest(self, node: Any) -> _Digest:
        """Return the digest of a part, computed once: parts may be shared."""
        if not isinstance(node, Mapping | list):
            return self._number((type(node), node)), _NO_REFERENCES
        known = self._digests.get(id(node))
        if known is None:
            items = node.items() if isinstance(node, Mapping) else enumerate(node)
            found = self._joined(type(node).__name__, {str(key): self._digest(value) for key, value in items})
            if isinstance(node, Mapping) and isinstance(node.get("$ref"), str):
                found = found[0], found[1] | {node["$ref"]}
            known = self._digests[id(node)] = (node, found)
        return known[1]

    def _joined(self, kind: str, parts: Mapping[str, _Digest]) -> _Digest:
        number = self._number((kind, *sorted((key, each) for key, (each, _) in parts.items())))
        references = {each for _, each in parts.values() if each}
        return number, _NO_REFERENCES.union(*references) if references else _NO_REFERENCES

    def _number(self, content: tuple[Any, ...]) -> int:
        """Return the number of a content, which is the same for the same content."""
        return self._numbers.setdefault(content, len(self._numbers))
