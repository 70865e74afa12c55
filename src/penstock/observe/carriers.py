"""Where a request carries the context of a trace from one side to the other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, Protocol

from ..aio.handlers import Request
from ..errors import FrameError
from ..payload import Payload
from ..river.tracing import MAX_CHARACTERS
from ..rsocket.extensions.metadata import composite, entries, routing
from ..rsocket.extensions.mimes import COMPOSITE, OCTETS, ROUTING

__all__ = ["AnyCarrier", "Carrier", "CompositeCarrier", "RiverCarrier"]

W3C: Final = "message/x.w3c."
"""What stands before the name of a W3C header in the MIME type of its entry: message/x.w3c.traceparent."""
PARENT: Final = "traceparent"
STATE: Final = "tracestate"
FIELDS: Final = 16
"""Fields that are taken from one request: propagators have one to three."""
FIELD_BYTES: Final = 8_192
"""One of them; W3C Baggage, Limits: baggage of 8,192 bytes must be passed on, and the others are shorter."""


class Carrier(Protocol):
    """Writes the fields of a text map propagator into a request, and reads them there."""

    def write(self, request: Request, fields: Mapping[str, str]) -> None:
        """Put `fields` into a request that is about to be sent."""

    def read(self, request: Request) -> Mapping[str, str]:
        """Return the fields of a request that came; none where there are none, or they are no such fields."""


class CompositeCarrier:
    """Carries each field as an entry of RSocket's composite metadata.

    The MIME type of an entry is `prefix` and the field's name, its content the field's value. A connection whose
    metadata is of another kind carries nothing.

    Args:
        prefix: What the MIME types begin with.

    """

    def __init__(self, prefix: str = W3C) -> None:
        self._prefix = prefix

    def write(self, request: Request, fields: Mapping[str, str]) -> None:
        """Put `fields` beside the route and the request's own metadata."""
        connection = request.connection
        if not fields or connection.protocol != "rsocket" or connection.metadata_mime not in ("", COMPOSITE):
            return
        payload = request.payload
        parts = [(self._prefix + name, value.encode()) for name, value in fields.items()]
        # Metadata that names its route, or needs none, is composite already.
        whole = request.routed or not request.route
        own = payload.metadata or b""
        if not whole:
            parts.insert(0, (ROUTING, routing(request.route)))
            own = b"" if payload.metadata is None else composite([(OCTETS, payload.metadata)])
        request.payload = Payload(payload.data, own + composite(parts) if whole else composite(parts) + own)
        request.routed = True

    def read(self, request: Request) -> dict[str, str]:
        """Return the fields among the entries of a request."""
        metadata = request.payload.metadata
        if metadata is None or request.connection.metadata_mime != COMPOSITE:
            return {}
        try:
            found = entries(metadata)
        except FrameError:
            # The route was there to be read, and what is behind it concerns nobody else.
            return {}
        fields: dict[str, str] = {}
        for mime, content in found:
            if mime.startswith(self._prefix) and len(content) <= FIELD_BYTES and len(fields) < FIELDS:
                fields.setdefault(mime.removeprefix(self._prefix), content.decode("ascii", "replace"))
        return fields


class RiverCarrier:
    """Carries W3C Trace Context in the field that River's messages have for it. Other fields stay behind."""

    def write(self, request: Request, fields: Mapping[str, str]) -> None:
        """Put the trace into a request that has no metadata of its own."""
        parent, state = fields.get(PARENT, ""), fields.get(STATE, "")
        payload = request.payload
        if request.connection.protocol != "river" or not parent or payload.metadata is not None:
            return
        if len(parent) > MAX_CHARACTERS or len(state) > MAX_CHARACTERS:
            return
        request.payload = Payload(payload.data, json.dumps({PARENT: parent, STATE: state}).encode())

    def read(self, request: Request) -> dict[str, str]:
        """Return the trace of a request."""
        metadata = request.payload.metadata
        if metadata is None or request.connection.protocol != "river":
            return {}
        # The session made it.
        return {name: value for name, value in json.loads(metadata).items() if value}


class AnyCarrier:
    """Carries each request's fields as its protocol can.

    Args:
        carriers: Of one protocol each.

    """

    def __init__(self, *carriers: Carrier) -> None:
        self._carriers = carriers or (CompositeCarrier(), RiverCarrier())

    def write(self, request: Request, fields: Mapping[str, str]) -> None:
        """Put `fields` into a request that is about to be sent."""
        for carrier in self._carriers:
            carrier.write(request, fields)

    def read(self, request: Request) -> dict[str, str]:
        """Return the fields of a request that came."""
        return {name: value for carrier in self._carriers for name, value in carrier.read(request).items()}
