"""Validation by JSON Schemas that others wrote, after a look at what they could do to us (THREATS 67)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from ..errors import LocalError, Mismatch

__all__ = ["MAX_PROBLEMS", "Validator", "check_schema"]

MAX_PROBLEMS: Final = 5
"""Problems that are told; as many as River's reference tells."""
MAX_COUNTED: Final = 1_000
"""Problems that are counted: a peer must not have us count a million."""
MAX_MESSAGE_CHARACTERS: Final = 200
MAX_NODES: Final = 10_000
"""Places of a schema: a hundred procedures' worth."""
MAX_DEPTH: Final = 128
MAX_WORK: Final = 10_000
"""Schemas that one value is held against, at one place of it: above it, a few references multiply."""
PATTERN_BYTES: Final = 1 << 20
"""What a compiled pattern may take."""

IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
"""Keywords whose schemas look at the very same value."""
IN_PLACE_ONE: Final = ("not", "if", "then", "else")
IN_PLACE_NAMED: Final = ("dependentSchemas", "dependencies")
REFUSED: Final = ("$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor")


class Validator:
    """Holds values against a JSON Schema (draft 2020-12).

    Patterns run in linear time; where one needs more than that, such as look-around, the schema is refused. Only
    references within the schema are followed. TypeBox's type ``Uint8Array`` stands for bytes.

    Args:
        schema: The schema.

    Raises:
        LocalError: It is no schema, or one that is refused; or the package jsonschema-rs is missing.

    """

    __slots__ = ("_compiled",)

    def __init__(self, schema: Mapping[str, Any]) -> None:
        check_schema(schema)
        try:
            import jsonschema_rs
        except ImportError:
            message = "validating by a JSON Schema needs a package more; run: pip install 'penstock[schema]'"
            raise LocalError(message) from None
        try:
            self._compiled: Any = jsonschema_rs.Draft202012Validator(
                _standard(schema),
                pattern_options=jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES),
                mask="the value",
                offline=True,
            )
        except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
            # The rest of the message shows all of the schema.
            raise LocalError(f"the JSON Schema is refused: {str(error).partition(chr(10))[0]}") from None

    def check(self, value: Any) -> None:
        """Hold a value, as a decoder gave it, against the schema.

        Raises:
            Mismatch: It does not fit. It has at most 5 problems, and how many there are.

        """
        try:
            # Bytes become text in base64, as they would be in JSON.
            errors = self._compiled.iter_errors(msgspec.to_builtins(value))
            found = list(islice(errors, MAX_COUNTED))
        except (ValueError, TypeError) as error:
            raise Mismatch(f"nothing that JSON can say: {error}"[:MAX_MESSAGE_CHARACTERS]) from None
        if found:
            first = [(_pointer(_path(error)), error.message[:MAX_MESSAGE_CHARACTERS]) for error in found[:MAX_PROBLEMS]]
            raise Mismatch(problems=first, total=len(found))


def _path(error: Any) -> list[str | int]:
    """Return where a problem is; a property that is missing is where it should be, as the reference has it."""
    missing = getattr(error.kind, "property", None) if error.kind.name == "required" else None
    return error.instance_path if missing is None else [*error.instance_path, missing]


def _pointer(path: list[str | int]) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _standard(node: Any) -> Any:
    """Return a schema in standard words: bytes are text in base64."""
    if isinstance(node, Mapping):
        made = {key: _standard(value) for key, value in node.items()}
        return made | {"type": "string"} if node.get("type") == "Uint8Array" else made
    return [_standard(one) for one in node] if isinstance(node, list) else node


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that would not come to an end, or take very long.

    Raises:
        LocalError: It refers to itself without looking further into the value, to something outside, or it is too
            large or too deep.

    """
    pending: list[tuple[Any, int]] = [(schema, 0)]
    starts: list[Mapping[str, Any]] = []
    nodes = 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            raise LocalError(f"the JSON Schema has more than {MAX_NODES} places, or more than {MAX_DEPTH} levels")
        if isinstance(node, Mapping):
            starts.append(node)
            pending += [(value, depth + 1) for value in node.values()]
        elif isinstance(node, list):
            pending += [(value, depth + 1) for value in node]
    work: dict[int, int] = {}
    for start in starts:
        _work(start, schema, work, set())


def _work(node: Mapping[str, Any], root: Mapping[str, Any], known: dict[int, int], above: set[int]) -> int:
    """Return how many schemas a value is held against at one place, by `node` and all that it stands for."""
    key = id(node)
    if key in known:
        return known[key]
    if key in above or len(above) > MAX_DEPTH:
        raise LocalError("the JSON Schema refers to itself without end: $ref leads back to the same value")
    above.add(key)
    total = 1 + sum(_work(each, root, known, above) for each in _same_value(node, root))
    above.discard(key)
    if total > MAX_WORK:
        raise LocalError(f"the JSON Schema holds one value against more than {MAX_WORK} schemas; refer less often")
    known[key] = total
    return total


def _same_value(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that look at the same value as `node`."""
    for name in REFUSED:
        if name in node:
            raise LocalError(f"the JSON Schema uses {name}, which depends on where it is used; use $ref")
    if node is not root and isinstance(node.get("$id"), str):
        raise LocalError(f"a part of the JSON Schema has an $id, {node['$id']!r}; only the whole may have one")
    found: list[Any] = [node.get(name) for name in IN_PLACE_ONE]
    for name in IN_PLACE:
        several = node.get(name)
        found += several if isinstance(several, list) else []
    for name in IN_PLACE_NAMED:
        named = node.get(name)
        found += named.values() if isinstance(named, Mapping) else []
    if isinstance(node.get("$ref"), str):
        found.append(_referred(node["$ref"], root))
    yield from (one for one in found if isinstance(one, Mapping))


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    """Return what a reference within the schema names.

    Raises:
        LocalError: It names something outside, or nothing.

    """
    if reference != "#" and not reference.startswith("#/"):
        raise LocalError(f"the JSON Schema refers to {reference!r}; only references such as #/$defs/Name are followed")
    found: Any = root
    for step in reference.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(step)] if isinstance(found, list) else found[step]
        except (LookupError, TypeError, ValueError):
            raise LocalError(f"the JSON Schema refers to {reference!r}, which is not there") from None
    return found
