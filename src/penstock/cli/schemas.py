"""Reads the schema of a service: from a file, from the service itself, or from a server."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ..errors import LocalError
from ..kinds import Kind
from .arguments import read_bytes
from .connect_options import SessionOptions

__all__ = ["KIND_OF", "procedures", "read_source"]

KIND_OF: Final = {
    "rpc": Kind.CALL,
    "subscription": Kind.STREAM,
    "upload": Kind.UPLOAD,
    "stream": Kind.CHANNEL,
    "fire": Kind.FIRE,
}
"""The kind of each type of procedure in an exported schema."""


def read_source(source: str) -> dict[str, dict[str, Any]]:
    """Return the procedures of a service by route, each with its `type` and its JSON Schemas.

    Args:
        source: A JSON file in the format of :meth:`penstock.Service.schema`, - for standard input, MODULE:NAME or
            FILE.py:NAME of a service, or the URL of a server that describes itself.

    Raises:
        LocalError: It is none of these, or not valid.

    """
    if "://" in source:
        return procedures(_described(source), source)
    if source == "-" or Path(source).is_file():
        try:
            document = json.loads(read_bytes("-" if source == "-" else f"@{source}"))
        except ValueError as error:
            raise LocalError(f"{source} is not valid JSON: {error}") from None
        return procedures(document, source)
    if ":" not in source:
        raise LocalError(f"there is no file {source!r}; give a schema as JSON, MODULE:NAME, FILE.py:NAME or a URL")
    from .serve import load_service

    service = load_service(source)
    found = procedures(service.schema(), source)
    # The exported format has no FIRE, and no route without a dot.
    types = {kind: name for name, kind in KIND_OF.items()}
    return {route: found.get(route, {"type": types[kind]}) for kind, route in service.routes()}


def procedures(document: Any, source: str) -> dict[str, dict[str, Any]]:
    """Return the procedures in a schema by route.

    Raises:
        LocalError: It does not have the format of :meth:`penstock.Service.schema`.

    """
    found: dict[str, dict[str, Any]] = {}
    services = document.get("services") if isinstance(document, dict) else None
    if not isinstance(services, dict):
        raise LocalError(f"{source} is not an exported schema: it has no object `services`; Service.schema() makes one")
    for service, content in services.items():
        inside = content.get("procedures") if isinstance(content, dict) else None
        if not isinstance(inside, dict):
            raise LocalError(f"{source}: service {service!r} has no object `procedures`")
        for name, procedure in inside.items():
            if not isinstance(procedure, dict) or procedure.get("type") not in KIND_OF:
                raise LocalError(f"{source}: {service}.{name} needs a `type`: {', '.join(KIND_OF)}")
            found[f"{service}.{name}" if service else name] = procedure
    return found


def _described(url: str) -> Any:
    """Return the schema that a server describes itself with."""
    try:
        fetch_description = import_module(".reflecting", __package__).fetch_description
    except ImportError:
        raise LocalError(f"{url} cannot be asked for its schema by this version; give a file or MODULE:NAME") from None
    from ..aio.loop import run

    return run(fetch_description(url, SessionOptions()))
