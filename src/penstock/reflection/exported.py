"""A description in the format from which clients are generated: that of `Service.schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..schema.export import Procedure, export
from .definitions import LITERAL, used
from .description import Described, DescribedError, Description

__all__ = ["exported"]


def exported(description: Description) -> dict[str, Any]:
    """Return the schema of a described service, as its own :meth:`~penstock.Service.schema` returns it."""
    table = description.definitions
    return export({each.route: _procedure(each, table) for each in description.routes})


def _procedure(route: Described, table: Mapping[str, Any]) -> Procedure:
    return Procedure(
        route.kind.upper(),
        _whole(route.request, table),
        _whole(route.items, table),
        _whole(route.response, table),
        tuple(_error(each, table) for each in route.errors),
        route.description,
    )


def _error(error: DescribedError, table: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {"code": {"type": "string", "const": error.code}, "message": {"type": "string"}}
    if error.extras is not None:
        fields["extras"] = _whole(error.extras, table)
    made = {"type": "object", "required": list(fields), "properties": fields}
    named = {"title": error.name} if error.name else {}
    return made | named | ({"description": error.description} if error.description else {})


def _whole(schema: dict[str, Any] | None, table: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a schema with the definitions that it uses; None if it is unknown."""
    if schema is None:
        return None
    definitions = used(schema, table)
    made: dict[str, Any] = _with_bytes(schema)
    return made | {"$defs": _with_bytes(definitions)} if definitions else made


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
