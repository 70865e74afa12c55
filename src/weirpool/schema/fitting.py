"""Whether what one JSON Schema describes can be read by another, of the same type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["fits"]

Schema = Mapping[str, Any]

NOTES: Final = frozenset("title description default examples deprecated readOnly writeOnly".split())
"""Keywords that do not restrict values."""


def fits(written: Schema, read: Schema) -> bool:
    """Return True if values of the schema `written` have the form that the schema `read` describes.

    Both describe the same type: what it writes, and what it reads. They are compared by their properties, and types
    may be one of several. Where this cannot tell, the answer is False.
    """
    return _Comparison(written, read).fits(written, read)


class _Comparison:
    def __init__(self, written: Schema, read: Schema) -> None:
        self._written: Schema = written.get("$defs", {})
        self._read: Schema = read.get("$defs", {})
        # Recursive types: they fit unless something else in them does not.
        self._seen: set[tuple[str, str]] = set()

    def fits(self, written: Schema, read: Schema) -> bool:
        if not read.keys() - NOTES - {"$defs"}:
            return True
        if "anyOf" in written:
            return all(self.fits(each, read) for each in written["anyOf"])
        if "anyOf" in read:
            return any(self.fits(written, each) for each in read["anyOf"])
        if "$ref" in written or "$ref" in read:
            return self._references(written, read)
        if "properties" in written or "properties" in read:
            return self._objects(written, read)
        if "items" in written and "items" in read:
            return self.fits(written["items"], read["items"])
        return _rest(written) == _rest(read)

    def _references(self, written: Schema, read: Schema) -> bool:
        if "$ref" in written and "$ref" in read:
            pair = written["$ref"], read["$ref"]
            if pair in self._seen:
                return True
            self._seen.add(pair)
        return self.fits(_resolved(written, self._written), _resolved(read, self._read))

    def _objects(self, written: Schema, read: Schema) -> bool:
        ours, theirs = written.get("properties", {}), read.get("properties", {})
        missing = set(read.get("required", ())) - set(ours)
        return not missing and ours.keys() <= theirs.keys() and all(self.fits(ours[key], theirs[key]) for key in ours)


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """Return a schema, or the one that it refers to; one that is unknown restricts nothing."""
    reference = schema.get("$ref")
    return schema if reference is None else definitions.get(str(reference).rpartition("/")[2], {})


def _rest(schema: Schema) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in NOTES and key != "$defs"}
