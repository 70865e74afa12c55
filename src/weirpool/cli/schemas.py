"""Reads the schema of a service: from a file, from the service itself, or from a server."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ..errors import LocalError
from ..kinds import Kind
from .connect_options import SessionOptions, of_context
from .contexts import MARK
from .values import read_bytes

__all__ = ["KIND_OF", "procedures", "procedures_of", "read_source"]

KIND_OF: Final = {
    "rpc": Kind.CALL,
    "subscription": Kind.STREAM,
    "upload": Kind.UPLOAD,
    "stream": Kind.CHANNEL,
    "fire": Kind.FIRE,
}
"""The kind of each type of procedure in an exported schema."""


def read_source(source: str, options: SessionOptions | None = None) -> dict[str, Any]:
    """Return the schema of a service, in the format of :meth:`weirpool.Service.schema`.

    Args:
        source: A JSON file with it or with the description of a server, - for standard input, MODULE:NAME or
            FILE.py:NAME of a service, or the URL or @NAME of a server that describes itself.
        options: How to connect to a server.

    Raises:
        LocalError: It is none of these, or not valid.

    """
    from .serve import load_service

    if "://" in source or source.startswith(MARK):
        from ..aio.loop import run
        from .reflecting import fetch_description

        return run(fetch_description(*of_context(source, options or SessionOptions())))
    if source == "-" or Path(source).is_file() or ":" not in source:
        return _read(read_bytes(source if source == "-" else f"@{source}"))
    return load_service(source).schema()


def _read(data: bytes) -> dict[str, Any]:
    """Return a schema, or that of what `weirpool describe --json` has printed."""
    from ..reflection.description import NotDescribed, read
    from ..reflection.exported import exported
    from ..schema.procedures import read_schema

    with suppress(NotDescribed):
        description = read(data)
        # Other fields are ignored, so a schema with a version may look like one, too.
        if description.routes:
            return exported(description)
    return read_schema(data)


def procedures_of(source: str) -> dict[str, dict[str, Any]]:
    """Return the procedures of a service by route, each with its `type` and its JSON Schemas; see `read_source`."""
    return procedures(read_source(source), source)


def procedures(document: Any, source: str) -> dict[str, dict[str, Any]]:
    """Return the procedures in a schema by route.

    Raises:
        LocalError: It does not have the format of :meth:`weirpool.Service.schema`.

    """
    from ..schema.export import OTHERS
    from ..schema.procedures import MAX_PROCEDURES

    found: dict[str, dict[str, Any]] = {}
    services = document.get("services") if isinstance(document, dict) else None
    if not isinstance(services, dict):
        raise LocalError(f"{source} is not an exported schema: it has no object `services`; Service.schema() makes one")
    for service, content in services.items():
        inside = content.get("procedures") if isinstance(content, dict) else None
        if not isinstance(inside, dict):
            raise LocalError(f"{source}: service {service!r} has no object `procedures`")
        for name, procedure in inside.items():
            route = f"{service}.{name}" if service else name
            found[route] = _checked(procedure, route, source)
    others = document.get(OTHERS, {})
    if not isinstance(others, dict):
        raise LocalError(f"{source}: {OTHERS!r} is not an object")
    for route, procedure in others.items():
        found[route] = _checked(procedure, route, source)
    if len(found) > MAX_PROCEDURES:
        raise LocalError(f"{source} has {len(found):,} procedures; at most {MAX_PROCEDURES:,} are read")
    return found


def _checked(procedure: Any, route: str, source: str) -> dict[str, Any]:
    """Return a procedure. Raises LocalError if it has no known type."""
    kind = procedure.get("type") if isinstance(procedure, dict) else None
    if not isinstance(kind, str) or kind not in KIND_OF:
        raise LocalError(f"{source}: {route} needs a `type`: {', '.join(KIND_OF)}")
    checked: dict[str, Any] = procedure
    return checked
