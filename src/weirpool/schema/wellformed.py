"""Schemas with the shapes that JSON Schema gives its keywords: everything that reads one may rely on them.

Schemas come from peers and from files. A keyword whose value has another shape is left out, as an unknown one would be:
the schema then allows more. Drafts differ, so both forms of `items` are taken.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, Final

from ..errors import LocalError
from .budget import Budget

__all__ = ["MAX_NAME", "MAX_VALUES", "WellFormed", "weight"]

MAX_VALUES: Final = 100_000
"""Values in the schemas of one description: what 1 MiB of JSON contains."""
MAX_DEPTH: Final = 128
MAX_NAME: Final = 1_024
"""Characters of a name: of a property, a definition or a reference."""
MAX_TYPES: Final = 16
INT64: Final = range(-(2**64), 2**64)
_WRONG: Final = object()

_Reader = Callable[["WellFormed", Any], Any]


def weight(value: Any, limit: int) -> int:
    """Return about how many characters a value of JSON takes; above `limit`, any number above it."""
    total = 0
    pending = [value]
    while pending and total <= limit:
        each = pending.pop()
        total += 8 + (len(each) if isinstance(each, str) else 0)
        if isinstance(each, list | dict):
            total += len(each)
            if total <= limit:
                pending += [*each, *each.values()] if isinstance(each, dict) else each
    return total


class WellFormed:
    """Reads the schemas of one description. Parts that they share are read once, and stay shared.

    Attributes:
        is_whole: Whether nothing has been left out.

    """

    def __init__(self) -> None:
        self.is_whole = True
        self._report: Callable[[str, str], None] | None = None
        self._budget = Budget(MAX_VALUES, "reading the schemas")
        self._depth = 0
        self._path: list[str] = []
        # By the identity of a part, which is kept: another object could get its identity.
        self._known: dict[int, tuple[Any, Any]] = {}

    def schema(self, node: Any, report: Callable[[str, str], None] | None = None) -> dict[str, Any] | bool | None:
        """Return a schema; None if it is none.

        Args:
            node: The schema as it was received.
            report: Receives the place and the name of each keyword that is left out.

        Raises:
            LocalError: The schemas are too large.

        """
        self._report, self._depth, self._path = report, 0, []
        try:
            found = self._schema(node)
        except LocalError:
            self.is_whole = False
            raise
        self.is_whole = self.is_whole and found is not _WRONG
        made: dict[str, Any] | bool | None = None if found is _WRONG else found
        return made

    def _schema(self, node: Any) -> Any:
        if isinstance(node, bool):
            return node
        if not isinstance(node, dict) or self._depth >= MAX_DEPTH:
            return _WRONG
        known = self._known.get(id(node))
        if known is None:
            self._depth += 1
            made = self._entries(node, _READERS.get)
            self._depth -= 1
            known = self._known[id(node)] = (node, made)
            self._known[id(made)] = (made, made)
        return known[1]

    def _entries(self, node: dict[Any, Any], reader: Callable[[str], _Reader | None]) -> dict[str, Any]:
        """Return the entries of an object, each read by the function that `reader` returns for its name."""
        self._budget.spend(1 + len(node))
        found = {}
        for key, value in node.items():
            if type(key) is not str or len(key) > MAX_NAME:
                self._drop(str(key)[:MAX_NAME])
                continue
            self._path.append(key)
            made = (reader(key) or _value)(self, value)
            self._path.pop()
            if made is _WRONG:
                self._drop(key)
            else:
                found[key] = made
        return found

    def _drop(self, key: str) -> None:
        self.is_whole = False
        if self._report is not None:
            self._report("".join(f"/{step}" for step in self._path), key)


def _value(reader: WellFormed, value: Any) -> Any:
    """Return a value that JSON has."""
    if isinstance(value, str | bool) or value is None:
        return value
    if isinstance(value, int):
        return value if value in INT64 else _WRONG
    if isinstance(value, float):
        return value if isfinite(value) else _WRONG
    # The schema of a Python type may have tuples.
    if reader._depth >= MAX_DEPTH or not isinstance(value, list | tuple | dict):
        return _WRONG
    reader._depth += 1
    try:
        if isinstance(value, dict):
            return reader._entries(value, _no_reader)
        reader._budget.spend(1 + len(value))
        items = [_value(reader, each) for each in value]
        return _WRONG if any(each is _WRONG for each in items) else items
    finally:
        reader._depth -= 1


def _no_reader(key: str) -> None:
    return None


def _one_reader(key: str) -> _Reader:
    return _one


def _one(reader: WellFormed, value: Any) -> Any:
    return reader._schema(value)


def _several(reader: WellFormed, value: Any) -> Any:
    if not isinstance(value, list) or not value:
        return _WRONG
    reader._budget.spend(len(value))
    found = [reader._schema(each) for each in value]
    return _WRONG if any(each is _WRONG for each in found) else found


def _items(reader: WellFormed, value: Any) -> Any:
    # Before draft 2020-12, a list has a schema for each place.
    return _several(reader, value) if isinstance(value, list) else reader._schema(value)


def _named(reader: WellFormed, value: Any) -> Any:
    return reader._entries(value, _one_reader) if isinstance(value, dict) else _WRONG


def _text(reader: WellFormed, value: Any) -> Any:
    return value if isinstance(value, str) else _WRONG


def _reference(reader: WellFormed, value: Any) -> Any:
    return value if isinstance(value, str) and len(value) <= MAX_NAME else _WRONG


def _texts(reader: WellFormed, value: Any) -> Any:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return _WRONG
    reader._budget.spend(len(value))
    return list(dict.fromkeys(value))


def _types(reader: WellFormed, value: Any) -> Any:
    found = [value] if isinstance(value, str) else _texts(reader, value)
    if found is _WRONG or not 0 < len(found) <= MAX_TYPES:
        return _WRONG
    return value if isinstance(value, str) else found


def _number(reader: WellFormed, value: Any) -> Any:
    return _WRONG if isinstance(value, bool) or not isinstance(value, int | float) else _value(reader, value)


def _step(reader: WellFormed, value: Any) -> Any:
    found = _number(reader, value)
    return found if found is _WRONG or found > 0 else _WRONG


def _count(reader: WellFormed, value: Any) -> Any:
    found = _number(reader, value)
    # JSON Schema, Core, 4.2.3: 3.0 is an integer.
    return int(found) if found is not _WRONG and found >= 0 and found == int(found) else _WRONG


def _list(reader: WellFormed, value: Any) -> Any:
    return _value(reader, value) if isinstance(value, list) and value else _WRONG


_READERS: Final[dict[str, _Reader]] = {
    **dict.fromkeys(("additionalProperties", "additionalItems", "contains", "propertyNames", "not"), _one),
    **dict.fromkeys(("if", "then", "else", "unevaluatedItems", "unevaluatedProperties"), _one),
    **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _several),
    **dict.fromkeys(("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"), _named),
    **dict.fromkeys(("title", "description", "format", "pattern", "contentEncoding", "contentMediaType"), _text),
    **dict.fromkeys(("$ref", "$id"), _reference),
    **dict.fromkeys(("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"), _number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
    **dict.fromkeys(("minByteLength", "maxByteLength"), _count),
    **dict.fromkeys(("enum", "examples"), _list),
    "items": _items,
    "multipleOf": _step,
    "required": _texts,
    "type": _types,
}
"""How the value of each keyword is read. Those of others may be any value."""
