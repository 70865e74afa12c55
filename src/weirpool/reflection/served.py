"""A service that describes itself to its clients, by a reserved route."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec

from ..aio.annotations import Types
from ..aio.handlers import Handler
from ..aio.service import Service
from ..connection import Connection
from ..errors import FrameError, LocalError
from ..kinds import KIND_NAMES, Kind
from ..payload import Payload
from ..protocols import data_mime, spec_of
from ..schema.formats import JSON, format_of
from ..schema.named import TypedError
from ..schema.wellformed import MAX_NAME
from .definitions import Definitions
from .description import (
    ROUTE,
    VERSION,
    ClassName,
    Code,
    Described,
    DescribedError,
    Description,
    MimeType,
    NotDescribed,
    is_valid,
    read,
)

__all__ = ["Reflecting", "description_of"]

MAX_BYTES: Final = 1024 * 1024
"""The size of a description in JSON: a frame of every protocol, and thousands of routes."""
ENCODINGS: Final = ["application/json", "application/msgpack"]
"""The MIME types of typed data, where the protocol does not choose one."""

# A service only gains handlers, so that their number tells whether a description is up to date.
_known: WeakKeyDictionary[Service, tuple[int, Description]] = WeakKeyDictionary()


class Reflecting(Service):
    """A service for one connection that answers `weirpool.describe`, besides the requests of another service.

    Args:
        service: The other one.
        connection: The connection.
        software: The name and version of the software; empty to tell none.

    """

    def __init__(self, service: Service, connection: Connection, software: str = "") -> None:
        super().__init__()
        self.interceptors = service.interceptors
        self.typed = service.typed
        self.by_demand = service.by_demand
        self._service = service
        self._describe = Handler(partial(_answer, service, connection, software), Kind.CALL, ROUTE)

    def find(self, kind: int, route: str, calls_by_streams: bool = False) -> Handler | None:
        """Return the handler of a request."""
        if route == ROUTE and (kind == Kind.CALL or (kind == Kind.STREAM and calls_by_streams)):
            return self._describe
        return self._service.find(kind, route, calls_by_streams)

    def handles(self, kind: int, route: str) -> bool:
        """Return whether there is a handler for requests of a kind, as they arrive, with a route."""
        return self.find(kind, route, True) is not None

    def kind_of(self, route: str) -> int | None:
        """Return the kind of a route's handler other than FIRE."""
        return Kind.CALL if route == ROUTE else self._service.kind_of(route)

    def pushed(self, metadata: bytes) -> Any:
        """Pass pushed metadata to the push handler."""
        return self._service.pushed(metadata)

    def routes(self) -> list[tuple[Kind, str]]:
        """Return the kind and route of each handler, sorted."""
        return sorted([*self._service.routes(), (Kind.CALL, ROUTE)])


def _answer(service: Service, connection: Connection, software: str, payload: Payload) -> Payload:
    try:
        form = format_of(data_mime(connection, payload.metadata)) or JSON
    except FrameError:
        form = JSON
    description = msgspec.structs.replace(description_of(service, connection), software=software)
    return Payload(form.encode(description))


def description_of(service: Service, connection: Connection) -> Description:
    """Return the description of a service for the clients of a connection: what its protocol can request."""
    count = len(service.routes())
    known = _known.get(service)
    if known is None or known[0] != count:
        known = _known[service] = count, _bounded(_described(service))
    form = format_of(connection.data_mime)
    mimes = [*ENCODINGS] if form is None or connection.data_mime in ENCODINGS else [connection.data_mime]
    # A client may have chosen a text that is not one.
    mimes = [each for each in mimes if is_valid(each, MimeType)]
    routes = [
        each if each.raw else msgspec.structs.replace(each, encodings=mimes)
        for each in known[1].routes
        if _can_be_requested(each, connection.protocol)
    ]
    return msgspec.structs.replace(known[1], routes=routes)


def _can_be_requested(route: Described, protocol: str) -> bool:
    spec = spec_of(protocol)
    return Kind[route.kind.upper()] in spec.kinds and ("." in route.route or not spec.dotted_routes)


def _described(service: Service) -> Description:
    definitions = Definitions()
    routes = []
    for kind, route in sorted(service.routes(), key=lambda each: (each[1], each[0])):
        handler = service.find(kind, route)
        if handler is not None:
            routes.append(_route(route, kind, handler.types, definitions))
    return Description(VERSION, routes=routes, definitions=dict(sorted(definitions.table.items())))


def _route(route: str, kind: Kind, types: Types, definitions: Definitions) -> Described:
    return Described(
        route,
        KIND_NAMES[kind - 1],
        types.description,
        request=definitions.add(types.described[0]),
        items=definitions.add(types.request),
        response=definitions.add(types.response, sent=True),
        errors=[error for each in types.errors if is_valid((error := _error(each, definitions)).code, Code)],
        raw=not types.typed,
    )


def _error(error: Any, definitions: Definitions) -> DescribedError:
    if isinstance(error, type) and issubclass(error, TypedError):
        try:
            extras = error.extras_type()
        except LocalError:
            extras = None
        about = (error.__doc__ or "").strip()
        return DescribedError(error.NAME, about, definitions.add(extras, sent=True), error.__name__)
    # A JSON Schema of an error, as River has it.
    fields = error.get("properties", {}) if isinstance(error, dict) else {}
    code = fields.get("code", {}).get("const", "")
    described, title = (str(error.get(key, "")) if isinstance(error, dict) else "" for key in ("description", "title"))
    name = title if is_valid(title, ClassName) else ""
    return DescribedError(str(code), described, definitions.add(fields.get("extras")), name)


def _bounded(description: Description) -> Description:
    """Return a description that every reader takes: without schemas and texts, or without some of the routes."""
    data = msgspec.json.encode(description)
    with suppress(NotDescribed):
        if len(data) <= MAX_BYTES:
            read(data)
            return description
    kept, size = [], 0
    for each in description.routes:
        if len(each.route) > MAX_NAME:
            continue
        bare = Described(each.route, each.kind, raw=each.raw)
        size += len(msgspec.json.encode(bare)) + 1
        if size > MAX_BYTES - 1024:
            break
        kept.append(bare)
    return Description(VERSION, routes=kept, complete=False)
