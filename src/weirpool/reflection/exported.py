"""A description in the format from which clients are generated: that of `Service.schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..errors import LocalError
from ..schema.budget import Budget
from ..schema.export import INCOMPLETE, Procedure, export
from ..schema.procedures import MAX_PROCEDURES
from .definitions import LITERAL, used
from .description import Described, DescribedError, Description

__all__ = ["exported"]

MAX_STEPS: Final = 500_000
"""Parts of schemas to search for the definitions that each route uses."""


def exported(description: Description) -> dict[str, Any]:
    """Return the schema of a described service, as its own :meth:`~weirpool.Service.schema` returns it.

    Raises:
        LocalError: The description is too large.

    """
    if len(description.routes) > MAX_PROCEDURES:
        raise LocalError(f"the peer describes {len(description.routes):,} routes; at most {MAX_PROCEDURES:,} are read")
    writer = _Writer(description.definitions)
    made = export({each.route: writer.procedure(each) for each in description.routes})
    return made if description.complete else made | {INCOMPLETE: True}


class _Writer:
    def __init__(self, table: Mapping[str, Any]) -> None:
        self._table = {name: _with_bytes(each) for name, each in table.items()}
        self._budget = Budget(MAX_STEPS, "the definitions of the description")
        # Most parts are the name of a type.
        self._known: dict[str, dict[str, Any]] = {}

    def procedure(self, route: Described) -> Procedure:
        return Procedure(
            route.kind.upper(),
            self._whole(route.request),
            self._whole(route.items),
            self._whole(route.response),
            tuple(self._error(each) for each in route.errors),
            route.description,
        )

    def _error(self, error: DescribedError) -> dict[str, Any]:
        fields: dict[str, Any] = {"code": {"type": "string", "const": error.code}, "message": {"type": "string"}}
        if error.extras is not None:
            fields["extras"] = self._whole(error.extras)
        made = {"type": "object", "required": list(fields), "properties": fields}
        named = {"title": error.name} if error.name else {}
        return made | named | ({"description": error.description} if error.description else {})

    def _whole(self, schema: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return a schema with the definitions that it uses; None if it is unknown."""
        if schema is None:
            return None
        if len(schema) > 1 or "$ref" not in schema:
            return self._written(schema)
        name = schema["$ref"]
        if name not in self._known:
            self._known[name] = self._written(schema)
        return self._known[name]

    def _written(self, schema: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = _with_bytes(schema)
        definitions = used(made, self._table, self._budget)
        return made | {"$defs": definitions} if definitions else made


def _with_bytes(node: Any) -> Any:
    """Return a schema with River's type of bytes in place of base64 text."""
    if isinstance(node, list):
        return [_with_bytes(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    if node.get("contentEncoding") == "base64":
        rest = {key: value for key, value in node.items() if key not in ("type", "contentEncoding")}
        return {"type": "Uint8Array", **rest}
    return {key: value if key in LITERAL else _with_bytes(value) for key, value in node.items()}
