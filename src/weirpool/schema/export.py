"""Exports the JSON Schema of types, and of a whole service in the format of River's reference."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ..errors import LocalError
from .named import RESERVED, TypedError
from .writing import schema_of

__all__ = ["INCOMPLETE", "OTHERS", "Procedure", "export", "schema_of"]

TYPES: Final = {"CALL": "rpc", "STREAM": "subscription", "UPLOAD": "upload", "CHANNEL": "stream", "FIRE": "fire"}
"""River, Clients, servers, and RPCs: its name of each kind, except for FIRE, which River does not have."""
OTHERS: Final = "routes"
"""The key of handlers that River does not have: fire-and-forget, and routes without a dot. River's tools ignore it."""
INCOMPLETE: Final = "incomplete"
"""The key that is true if a server has not described everything."""


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
            dot, and kinds that River does not have, are under a key that River's tools ignore, ``routes``.
        handshake: The type, or the schema, of a client's handshake metadata.

    """
    services: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for route, procedure in sorted(procedures.items()):
        service, dot, name = route.partition(".")
        if service and dot and name and procedure.kind != "FIRE":
            services.setdefault(service, {"procedures": {}})["procedures"][name] = _procedure(procedure)
        else:
            others[route] = _procedure(procedure)
    exported: dict[str, Any] = {"services": services}
    if others:
        exported[OTHERS] = others
    if handshake is not None:
        exported["handshakeSchema"] = schema_of(handshake)
    return exported


def _procedure(procedure: Procedure) -> dict[str, Any]:
    made: dict[str, Any] = {
        "init": schema_of(procedure.init),
        "output": schema_of(procedure.response, sent=True),
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
        described = {"description": inspect.cleandoc(error.__doc__)} if error.__doc__ else {}
        named = {"title": error.__name__} | described
        return _base_error(error.NAME, None if extras is None else schema_of(extras, sent=True)) | named
    raise LocalError(f"{error!r} in errors= is neither a subclass of weirpool.TypedError nor a JSON Schema")


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
