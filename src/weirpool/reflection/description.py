"""The description of a service: the document that the route `weirpool.describe` returns."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Final, TypeAlias

import msgspec

from ..errors import LocalError, Mismatch, WeirpoolError
from ..kinds import KindName
from ..schema.formats import CBOR, JSON, MSGPACK, Format
from ..schema.wellformed import MAX_NAME, WellFormed
from ..texts import WORDING

__all__ = [
    "ROUTE",
    "VERSION",
    "ClassName",
    "Code",
    "Described",
    "DescribedError",
    "Description",
    "MimeType",
    "NotDescribed",
    "Why",
    "is_valid",
    "read",
]

ROUTE: Final = "weirpool.describe"
"""The reserved route: a call without data."""
VERSION: Final = 1
"""The version of the document. Fields may be added to it; a reader ignores those that it does not know."""
MAX_BYTES: Final = 4 * 1024 * 1024
"""The largest description that is read. Those that Weirpool writes are smaller."""
MAX_ROUTES: Final = 50_000
MAX_ERRORS: Final = 1_000
MAX_ENCODINGS: Final = 100
ANYTHING: Final[dict[str, Any]] = {}
NOTHING: Final[dict[str, Any]] = {"not": {}}
"""What the schemas True and False stand for."""
MAX_MEMORY: Final = 64 * 1024 * 1024
"""What a description may take: more than one of 1 MiB, the largest that Weirpool writes, ever does."""

TOKEN: Final = r"[\w!#$&^.+-]+"
MIME: Final = rf"(?a)^{TOKEN}/{TOKEN}( *; *{TOKEN}={TOKEN})*\Z"
MimeType: TypeAlias = Annotated[str, msgspec.Meta(max_length=255, pattern=MIME)]
"""RFC 6838, 4.2: a type, a subtype, and parameters whose values need no quotes."""
Code: TypeAlias = Annotated[str, msgspec.Meta(max_length=256, pattern=WORDING)]
ClassName: TypeAlias = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^([^\W\d]\w*)?\Z")]
Name: TypeAlias = Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
"""A route, a definition, or the software: any characters, but not very many."""
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=65_536)]
"""Documentation."""


class Why(Enum):
    """Why a peer has not described itself."""

    UNKNOWN = "unknown"
    """It has no such route: reflection is off, or it does not use Weirpool."""
    REFUSED = "refused"
    """It has refused or failed the request, for example because the client may not make it."""
    FOREIGN = "foreign"
    """It has answered something else: another handler has this route, or one that answers everything."""
    SILENT = "silent"
    """It has not answered in time."""


class NotDescribed(WeirpoolError):
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

    code: Code
    description: Text = ""
    extras: dict[str, Any] | None = None
    name: ClassName = ""


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

    route: Name
    kind: KindName
    description: Text = ""
    request: dict[str, Any] | None = None
    items: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    errors: Annotated[list[DescribedError], msgspec.Meta(max_length=MAX_ERRORS)] = msgspec.field(default_factory=list)
    encodings: Annotated[list[MimeType], msgspec.Meta(max_length=MAX_ENCODINGS)] = msgspec.field(default_factory=list)
    raw: bool = False


class Description(msgspec.Struct, omit_defaults=True):
    """What a peer offers. Schemas refer to `definitions` as ``#/$defs/NAME``.

    Attributes:
        version: The version of the document.
        software: The name and version of the software, if its operator states them.
        routes: The handlers, by route and kind.
        definitions: The JSON Schemas that the others share, by name.
        complete: False if the description would be too long, so that schemas, texts or routes are missing; or if a
            part of a schema is malformed, and is left out.

    """

    version: int
    software: Name = ""
    routes: Annotated[list[Described], msgspec.Meta(max_length=MAX_ROUTES)] = msgspec.field(default_factory=list)
    definitions: dict[Name, Any] = msgspec.field(default_factory=dict, name="$defs")
    complete: bool = True

    def find(self, route: str) -> list[Described]:
        """Return the handlers of a route, of which there may be one for each kind.

        A route with values is found by the one with variables that answers it: ``quotes.ACME`` by ``quotes.{symbol}``.
        """
        matching = {each.route for each in self.routes if _answers(each.route, route)}
        # As in `weirpool.aio.routes`, the first segment that differs decides: literal ones go before variables.
        chosen = min(matching, key=lambda each: list(map(_is_variable, each.split("."))), default=route)
        wanted = route if any(each.route == route for each in self.routes) else chosen
        return [each for each in self.routes if each.route == wanted]


_DECODERS: Final = {form: form.decoder(Description) for form in (JSON, MSGPACK, CBOR)}


def read(data: bytes) -> Description:
    """Return the description in the answer of a peer: JSON, msgpack or CBOR, by the data of the connection.

    Raises:
        NotDescribed: It is no description, one of a version that is not known, or one that is too large.

    """
    if not data or len(data) > MAX_BYTES:
        raise _foreign("the answer is empty" if not data else f"the answer has {len(data):,} bytes")
    form = _format_of(data)
    try:
        form.check_depth(data)
        if form.memory(data) > MAX_MEMORY:
            raise _foreign(f"the answer would take more than {MAX_MEMORY:,} bytes of memory")
        description: Description = _DECODERS[form].decode(data)
    except (ValueError, Mismatch) as error:
        raise _foreign(f"the answer is no description: {error}") from None
    if description.version != VERSION:
        raise _foreign(f"its description has version {description.version}, and this Weirpool reads {VERSION}")
    _form(description)
    return description


def _form(description: Description) -> None:
    """Give all schemas their form. Those that are too many are left out."""
    reader = WellFormed()

    def formed(schema: Any) -> dict[str, Any] | None:
        try:
            found = None if schema is None else reader.schema(schema)
        except LocalError:
            return None
        return found if found is None or isinstance(found, dict) else dict(ANYTHING if found else NOTHING)

    description.definitions = {
        name: found for name, each in description.definitions.items() if (found := formed(each)) is not None
    }
    for route in description.routes:
        route.request, route.items, route.response = map(formed, (route.request, route.items, route.response))
        for error in route.errors:
            error.extras = formed(error.extras)
    description.complete = description.complete and reader.is_whole


def is_valid(text: str, wanted: Any) -> bool:
    """Return True if a text is valid where a description has `wanted`: a code, a MIME type or the name of a class."""
    try:
        msgspec.convert(text, wanted)
    except msgspec.ValidationError:
        return False
    return True


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
    return NotDescribed(Why.FOREIGN, f"the peer does not describe itself as Weirpool does: {problem}")
