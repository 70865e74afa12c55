"""The context of a trace as entries of composite metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...connection import Carried
from ...errors import FrameError
from ...payload import Payload
from .metadata import composite, entries, routing
from .mimes import COMPOSITE, OCTETS, ROUTING

__all__ = ["CompositeCarrier"]

W3C: Final = "message/x.w3c."
"""What stands before the name of a W3C header in the MIME type of its entry: message/x.w3c.traceparent."""
FIELDS: Final = 16
"""Fields that are taken from one request: propagators have one to three."""
FIELD_BYTES: Final = 8_192
"""One of them; W3C Baggage, Limits: baggage of 8,192 bytes must be passed on, and the others are shorter."""


class CompositeCarrier:
    """Carries each field as an entry of RSocket's composite metadata.

    The MIME type of an entry is `prefix` and the field's name, its content the field's value. A connection whose
    metadata is of another kind carries nothing.

    Args:
        prefix: What the MIME types begin with.

    """

    def __init__(self, prefix: str = W3C) -> None:
        self._prefix = prefix

    def write(self, request: Carried, fields: Mapping[str, str]) -> None:
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

    def read(self, request: Carried) -> dict[str, str]:
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
