"""The description of a service: the document that the route `penstock.describe` returns."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import msgspec

from ..errors import Mismatch, PenstockError
from ..schema.formats import CBOR, JSON, MSGPACK, Format

__all__ = ["ROUTE", "VERSION", "Described", "DescribedError", "Description", "NotDescribed", "Why", "read"]

ROUTE: Final = "penstock.describe"
"""The reserved route: a call without data."""
VERSION: Final = 1
"""The version of the document. Fields may be added to it; a reader ignores those that it does not know."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""The largest description that is read. Those that Penstock writes are smaller."""


class Why(Enum):
    """Why a peer has not described itself."""

    UNKNOWN = "unknown"
    """It has no such route: reflection is off, or it does not use Penstock."""
    REFUSED = "refused"
    """It has refused or failed the request, for example because the client may not make it."""
    FOREIGN = "foreign"
    """It has answered something else: another handler has this route, or one that answers everything."""
    SILENT = "silent"
    """It has not answered in time."""


class NotDescribed(PenstockError):
    """A peer does not describe itself.

    Attributes:
        why: The reason.

    """

    def __init__(self, why: Why, message: str) -> None:
        super().__init__(message)
        self.why = why


class DescribedError(msgspec.Struct, omit_defaults=True):
    """An error that a handler may fail with.

    Attributes:
        code: Its code.
        description: What it means.
        extras: The JSON Schema of its extras; None if there are none.
        name: The name of its class; empty if it has none.

    """

    code: str
    description: str = ""
    extras: dict[str, Any] | None = None
    name: str = ""


class Described(msgspec.Struct, omit_defaults=True):
    """A handler.

    Attributes:
        route: Its name.
        kind: call, fire, stream, upload or channel.
        description: Its documentation.
        request: The JSON Schema of the request; None if it is unknown, as for all of these.
        items: The JSON Schema of the items that follow the request.
        response: The JSON Schema of the response, or of each of its items.
        errors: The errors that it may fail with, besides those of every handler.
        encodings: The MIME types of data that it accepts; empty if it takes bytes as they are.
        raw: True if its data is not converted: the handler has no types, or only its documentation names them.

    """

    route: str
    kind: str
    description: str = ""
    request: dict[str, Any] | None = None
    items: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    errors: list[DescribedError] = msgspec.field(default_factory=list)
    encodings: list[str] = msgspec.field(default_factory=list)
    raw: bool = False


class Description(msgspec.Struct, omit_defaults=True):
    """What a peer offers. Schemas refer to `definitions` as ``#/$defs/NAME``.

    Attributes:
        version: The version of the document.
        software: The name and version of the software, if its operator states them.
        routes: The handlers, by route and kind.
        definitions: The JSON Schemas that the others share, by name.
        complete: False if the description would be too long, so that schemas, texts or routes are missing.

    """

    version: int
    software: str = ""
    routes: list[Described] = msgspec.field(default_factory=list)
    definitions: dict[str, Any] = msgspec.field(default_factory=dict, name="$defs")
    complete: bool = True

    def find(self, route: str) -> list[Described]:
        """Return the handlers of a route, of which there may be one for each kind.

        A route with values is found by the one with variables that answers it: ``quotes.ACME`` by ``quotes.{symbol}``.
        """
        matching = {each.route for each in self.routes if _answers(each.route, route)}
        # As in `penstock.aio.routes`, the first segment that differs decides: literal ones go before variables.
        chosen = min(matching, key=lambda each: list(map(_is_variable, each.split("."))), default=route)
        wanted = route if any(each.route == route for each in self.routes) else chosen
        return [each for each in self.routes if each.route == wanted]


_DECODERS: Final = {form: form.decoder(Description) for form in (JSON, MSGPACK, CBOR)}


def read(data: bytes) -> Description:
    """Return the description in the answer of a peer: JSON, msgpack or CBOR, by the data of the connection.

    Raises:
        NotDescribed: It is no description, or one of a version that is not known.

    """
    if not data or len(data) > MAX_BYTES:
        raise _foreign("the answer is empty" if not data else f"the answer has {len(data):,} bytes")
    form = _format_of(data)
    try:
        form.check_depth(data)
        description: Description = _DECODERS[form].decode(data)
    except (ValueError, Mismatch) as error:
        raise _foreign(f"the answer is no description: {error}") from None
    if description.version != VERSION:
        raise _foreign(f"its description has version {description.version}, and this Penstock reads {VERSION}")
    return description


def _is_variable(segment: str) -> bool:
    return segment[:1] == "{"


def _answers(pattern: str, route: str) -> bool:
    """Return True if a route with variables answers the route of a request."""
    segments, values = pattern.split("."), route.split(".")
    pairs = zip(segments, values, strict=False)
    return len(segments) == len(values) and all(
        bool(value) if _is_variable(segment) else segment == value for segment, value in pairs
    )


def _format_of(data: bytes) -> Format:
    """Return the encoding of an object, of which each has first bytes of its own."""
    return JSON if data[:1] == b"{" else CBOR if 0xA0 <= data[0] <= 0xBF else MSGPACK


def _foreign(problem: str) -> NotDescribed:
    return NotDescribed(Why.FOREIGN, f"the peer does not describe itself as Penstock does: {problem}")
