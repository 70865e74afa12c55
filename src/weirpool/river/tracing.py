"""Trace context of requests.

The reference's TransportMessage has a field `tracing` with the two headers of W3C Trace Context; the document does not.
Above the session, it is the request's metadata: a JSON object with these two fields. River has no other metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from ..connection import Carried
from ..errors import LocalError
from ..payload import Payload

__all__ = ["MAX_CHARACTERS", "RiverCarrier", "metadata_of", "tracing_of"]

MAX_CHARACTERS: Final = 8_192
"""The limit of one field. W3C Trace Context: a traceparent has 55, and at least 512 of a tracestate are forwarded."""


PARENT: Final = "traceparent"
STATE: Final = "tracestate"


class _Trace(Struct, forbid_unknown_fields=True):
    traceparent: str
    tracestate: str = ""


_DECODER: Final = msgspec.json.Decoder(_Trace)


def metadata_of(tracing: dict[str, Any]) -> bytes | None:
    """Return the metadata for a received request; None if it has no trace or an invalid one."""
    parent, state = tracing.get("traceparent"), tracing.get("tracestate", "")
    if not parent or not _fits(parent) or not _fits(state):
        return None
    return msgspec.json.encode(_Trace(parent, state))


def tracing_of(metadata: bytes | None) -> dict[str, Any] | None:
    """Return the `tracing` field for the metadata of a request.

    Raises:
        LocalError: The metadata is not a trace context.

    """
    if metadata is None:
        return None
    try:
        trace = _DECODER.decode(metadata)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise LocalError("River carries no metadata beside an item; put it into the item") from None
    if not _fits(trace.traceparent) or not _fits(trace.tracestate):
        raise LocalError(f"a field of the trace context is longer than {MAX_CHARACTERS} characters")
    return {"traceparent": trace.traceparent, "tracestate": trace.tracestate}


def _fits(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_CHARACTERS


class RiverCarrier:
    """Carries W3C Trace Context in the `tracing` field of River's messages. Drops other fields."""

    def write(self, request: Carried, fields: Mapping[str, str]) -> None:
        """Add the trace context to a request without metadata."""
        parent, state = fields.get(PARENT, ""), fields.get(STATE, "")
        payload = request.payload
        if request.connection.protocol != "river" or not parent or payload.metadata is not None:
            return
        if not _fits(parent) or not _fits(state):
            return
        request.payload = Payload(payload.data, json.dumps({PARENT: parent, STATE: state}).encode())

    def read(self, request: Carried) -> dict[str, str]:
        """Return the trace context of a request, or an empty dictionary."""
        metadata = request.payload.metadata
        if metadata is None or request.connection.protocol != "river":
            return {}
        # The session made this metadata, so it is valid JSON.
        return {name: value for name, value in json.loads(metadata).items() if value}
