"""Validation by JSON Schemas of others, which are first checked for excessive cost (THREATS 67)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from .._build import pip_command
from ..errors import LocalError, Mismatch

__all__ = ["MAX_MESSAGE_CHARACTERS", "MAX_PROBLEMS", "Validator", "check_schema", "pointer"]

MAX_PROBLEMS: Final = 5
"""Problems to report; as many as River's reference reports."""
MAX_COUNTED: Final = 1_000
"""Problems to count: a peer must not cause a count to a million."""
MAX_MESSAGE_CHARACTERS: Final = 200
MAX_NODES: Final = 10_000
"""Nodes of a schema: enough for a hundred procedures."""
MAX_DEPTH: Final = 128
MAX_WORK: Final = 10_000
"""Schemas applied to one value at one node: above this, a few references multiply."""
PATTERN_BYTES: Final = 1 << 20
"""Maximum memory of a compiled pattern."""

IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
"""Keywords whose schemas apply to the same value."""
IN_PLACE_ONE: Final = ("not", "if", "then", "else")
IN_PLACE_NAMED: Final = ("dependentSchemas", "dependencies")
REFUSED: Final = ("$dynamicRef", "$recursiveRef", "$dynamicAnchor", "$recursiveAnchor")


class Validator:
    """Validates values by a JSON Schema (draft 2020-12).

    Patterns run in linear time; a schema whose patterns need more, such as look-around, is refused. Only references
    within the schema are followed. TypeBox's type ``Uint8Array`` means bytes.

    Args:
        schema: The schema.

    Raises:
        LocalError: The schema is invalid or refused; or the package jsonschema-rs is missing.

    """

    __slots__ = ("_compiled",)

    def __init__(self, schema: Mapping[str, Any]) -> None:
        check_schema(schema)
        try:
            import jsonschema_rs
        except ImportError:
            message = f"validating by a JSON Schema needs jsonschema-rs; run: {pip_command('schema')}"
            raise LocalError(message) from None
        try:
            self._compiled: Any = jsonschema_rs.Draft202012Validator(
                _standard(schema),
                pattern_options=jsonschema_rs.RegexOptions(size_limit=PATTERN_BYTES, dfa_size_limit=PATTERN_BYTES),
                mask="the value",
                offline=True,
            )
        except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
            # The rest of the message is the whole schema.
            raise LocalError(f"the JSON Schema is refused: {str(error).partition(chr(10))[0]}") from None

    def check(self, value: Any) -> None:
        """Validate a decoded value.

        Raises:
            Mismatch: The value does not match. The error has at most 5 problems, and their total number.

        """
        try:
            # Bytes become base64 text, as in JSON.
            errors = self._compiled.iter_errors(msgspec.to_builtins(value))
            found = list(islice(errors, MAX_COUNTED))
        except (ValueError, TypeError) as error:
            raise Mismatch(f"not representable in JSON: {error}"[:MAX_MESSAGE_CHARACTERS]) from None
        if found:
            first = [(pointer(_path(error)), error.message[:MAX_MESSAGE_CHARACTERS]) for error in found[:MAX_PROBLEMS]]
            raise Mismatch(problems=first, total=len(found))


def _path(error: Any) -> list[str | int]:
    """Return the location of a problem; that of a missing property is where it should be, as in the reference."""
    missing = getattr(error.kind, "property", None) if error.kind.name == "required" else None
    return error.instance_path if missing is None else [*error.instance_path, missing]


def pointer(path: Sequence[str | int]) -> str:
    """Return a JSON pointer (RFC 6901)."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def _standard(node: Any) -> Any:
    """Return a schema in standard terms: bytes are base64 text."""
    if isinstance(node, Mapping):
        made = {key: _standard(value) for key, value in node.items()}
        return made | {"type": "string"} if node.get("type") == "Uint8Array" else made
    return [_standard(one) for one in node] if isinstance(node, list) else node


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema whose validation would not end, or take very long.

    Raises:
        LocalError: It refers to itself for the same value, or to something outside, or it is too large or too deep.

    """
    pending: list[tuple[Any, int]] = [(schema, 0)]
    starts: list[Mapping[str, Any]] = []
    nodes = 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if nodes > MAX_NODES or depth > MAX_DEPTH:
            raise LocalError(f"the JSON Schema has more than {MAX_NODES} nodes, or more than {MAX_DEPTH} levels")
        if isinstance(node, Mapping):
            starts.append(node)
            pending += [(value, depth + 1) for value in node.values()]
        elif isinstance(node, list):
            pending += [(value, depth + 1) for value in node]
    work: dict[int, int] = {}
    for start in starts:
        _work(start, schema, work, set())


def _work(node: Mapping[str, Any], root: Mapping[str, Any], known: dict[int, int], above: set[int]) -> int:
    """Return the number of schemas applied to one value by `node`, including its references."""
    key = id(node)
    if key in known:
        return known[key]
    if key in above or len(above) > MAX_DEPTH:
        raise LocalError("the JSON Schema is infinitely recursive: a $ref leads back to the same value")
    above.add(key)
    total = 1 + sum(_work(each, root, known, above) for each in _same_value(node, root))
    above.discard(key)
    if total > MAX_WORK:
        raise LocalError(f"the JSON Schema applies more than {MAX_WORK} schemas to one value; use fewer references")
    known[key] = total
    return total


def _same_value(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas that apply to the same value as `node`."""
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
    """Return the target of a reference within the schema.

    Raises:
        LocalError: The target is outside, or does not exist.

    """
    if reference != "#" and not reference.startswith("#/"):
        raise LocalError(f"the JSON Schema refers to {reference!r}; only references such as #/$defs/Name are followed")
    found: Any = root
    for step in reference.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(step)] if isinstance(found, list) else found[step]
        except (LookupError, TypeError, ValueError):
            raise LocalError(f"the JSON Schema refers to {reference!r}, which does not exist") from None
    return found
