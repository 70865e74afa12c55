"""Exports the JSON Schema of types, and of a whole service in the format of River's reference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from ..errors import LocalError
from .converter import Converter
from .models import json_schema
from .named import RESERVED, TypedError

__all__ = ["Procedure", "export", "schema_of"]

MAX_NODES: Final = 100_000
"""Nodes of one schema: types that use each other many times multiply when each use is written in full."""

OMITTED: Final = frozenset({"title", "default", "discriminator"})
"""Keys that msgspec writes and the reference does not."""

TYPES: Final = {"CALL": "rpc", "STREAM": "subscription", "UPLOAD": "upload", "CHANNEL": "stream"}
"""River, Clients, servers, and RPCs: its name of each kind. There is none for FIRE."""


class Procedure(msgspec.Struct, frozen=True):
    """The types of a handler's data.

    Attributes:
        kind: The name of its kind: CALL, FIRE, STREAM, UPLOAD or CHANNEL.
        init: The type, or the JSON Schema, of the request; None if it is unknown, as for all of these.
        request: The type of the items that follow the request.
        response: The type of the response, or of each of its items.
        errors: The errors that it may fail with: subclasses of TypedError, or JSON Schemas.
        description: A description for people.

    """

    kind: str
    init: Any = None
    request: Any = None
    response: Any = None
    errors: tuple[Any, ...] = ()
    description: str = ""


def export(procedures: Mapping[str, Procedure], handshake: Any = None) -> dict[str, Any]:
    """Return the schema of a service in the format of `serializeSchema` of River's reference.

    Args:
        procedures: By route: the part before the first dot is River's service, the rest its procedure. Routes without a
            dot, and kinds that River does not have, are omitted.
        handshake: The type, or the schema, of a client's handshake metadata.

    """
    services: dict[str, Any] = {}
    for route, procedure in sorted(procedures.items()):
        service, dot, name = route.partition(".")
        if service and dot and name and procedure.kind in TYPES:
            services.setdefault(service, {"procedures": {}})["procedures"][name] = _procedure(procedure)
    exported: dict[str, Any] = {"services": services}
    if handshake is not None:
        exported["handshakeSchema"] = schema_of(handshake)
    return exported


def _procedure(procedure: Procedure) -> dict[str, Any]:
    made: dict[str, Any] = {
        "init": schema_of(procedure.init),
        "output": schema_of(procedure.response),
        "errors": {"anyOf": [*map(_error, procedure.errors), *map(_reserved, RESERVED)]},
        "type": TYPES[procedure.kind],
    }
    if procedure.kind in ("UPLOAD", "CHANNEL"):
        made["input"] = schema_of(procedure.request)
    if procedure.description:
        made["description"] = procedure.description
    return made


def _error(error: Any) -> dict[str, Any]:
    """Return the schema of an error that a handler may raise."""
    if isinstance(error, Mapping):
        return dict(error)
    if isinstance(error, type) and issubclass(error, TypedError) and error.NAME:
        extras = error.extras_type()
        described = {"description": error.__doc__.strip()} if error.__doc__ else {}
        return _base_error(error.NAME, None if extras is None else schema_of(extras)) | described
    raise LocalError(f"{error!r} in errors= is neither a subclass of penstock.TypedError nor a JSON Schema")


def _reserved(code: str) -> dict[str, Any]:
    """Return the schema of an error that any procedure may fail with."""
    if code != "INVALID_REQUEST":
        return _base_error(code, None)
    problem = _object(path={"type": "string"}, message={"type": "string"})
    listed = {"type": "array", "items": problem}
    error = _base_error(code, _object(firstValidationErrors=listed, totalErrors={"type": "number"}))
    # As in the reference, only a validated request has them.
    error["required"].remove("extras")
    return error


def _base_error(code: str, extras: dict[str, Any] | None) -> dict[str, Any]:
    fields = {"code": {"type": "string", "const": code}, "message": {"type": "string"}}
    return _object(**fields) if extras is None else _object(**fields, extras=extras)


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def schema_of(wanted: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type; a schema is returned unchanged, and None allows any value.

    The format is the reference's: every use of a type in full, without titles and defaults, and bytes as the type
    ``Uint8Array``. A recursive type cannot be written in full and stays under ``$defs``.

    Raises:
        LocalError: The type has no schema.

    """
    if wanted is None:
        return {}
    if isinstance(wanted, Mapping):
        return dict(wanted)
    schema, components = _described(wanted)
    writer = _Writer(components)
    made: dict[str, Any] = writer.write(schema)
    if writer.kept:
        made["$defs"] = {name: writer.definitions[name] for name in sorted(writer.definitions)}
    return made


def _described(wanted: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a type, and the schemas that it refers to by their names."""
    schema = Converter(wanted).model_schema()
    if schema is not None:
        return schema, schema.pop("$defs", {})
    definitions: dict[str, Any] = {}

    def of_model(cls: Any) -> dict[str, Any]:
        schema = json_schema(cls)
        for name, each in schema.pop("$defs", {}).items():
            if definitions.setdefault(name, each) != each:
                raise LocalError(f"two models in {wanted!r} have the name {name}; rename one")
        return schema

    try:
        (schema,), components = msgspec.json.schema_components([wanted], schema_hook=of_model)
    except (TypeError, NameError, RecursionError) as error:
        raise LocalError(f"{wanted!r} has no JSON Schema: {error}") from None
    return schema, components | definitions


class _Writer:
    """Rewrites a schema of msgspec with every reference in full.

    References that remain are in `kept`, and their targets in `definitions`.
    """

    def __init__(self, components: Mapping[str, Any]) -> None:
        self._components = components
        self.kept = {name for name in components if name in _reachable(name, components)}
        self.definitions: dict[str, Any] = {}
        self._nodes = 0

    def write(self, node: Any) -> Any:
        """Return `node` in the reference's format."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise LocalError(f"a schema has more than {MAX_NODES} nodes with each type in full; use fewer types")
        if isinstance(node, list):
            return [self.write(one) for one in node]
        if not isinstance(node, Mapping):
            return node
        if "$ref" in node:
            return self._referred(node["$ref"].rpartition("/")[2])
        if node.get("contentEncoding") == "base64":
            return {"type": "Uint8Array"}
        if "enum" in node and len(node["enum"]) == 1 and isinstance(node["enum"][0], str):
            return {"type": "string", "const": node["enum"][0]}
        made = {key: self._keyword(key, value) for key, value in node.items() if key not in OMITTED}
        if made.get("required") == []:
            del made["required"]
        return made

    def _keyword(self, key: str, value: Any) -> Any:
        if key == "properties":
            return {name: self.write(each) for name, each in value.items()}
        # These contain values, not schemas.
        return value if key in ("enum", "const", "examples", "required") else self.write(value)

    def _referred(self, name: str) -> Any:
        if name not in self.kept:
            return self.write(self._components[name])
        if name not in self.definitions:
            # Set first, because it refers to itself.
            self.definitions[name] = {}
            self.definitions[name] = self.write(self._components[name])
        return {"$ref": f"#/$defs/{name}"}


def _reachable(name: str, components: Mapping[str, Any]) -> set[str]:
    """Return the components that one refers to, directly or indirectly."""
    found: set[str] = set()
    pending: list[Any] = [components[name]]
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            if isinstance(node.get("$ref"), str):
                target = node["$ref"].rpartition("/")[2]
                if target not in found:
                    found.add(target)
                    pending.append(components[target])
            pending += node.values()
        elif isinstance(node, Iterable) and not isinstance(node, str | bytes):
            pending += node
    return found
