"""The context of a trace in the field that River's messages have for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from ..connection import Carried
from ..payload import Payload
from .tracing import MAX_CHARACTERS

__all__ = ["RiverCarrier"]

PARENT: Final = "traceparent"
STATE: Final = "tracestate"


class RiverCarrier:
    """Carries W3C Trace Context in the field that River's messages have for it. Other fields stay behind."""

    def write(self, request: Carried, fields: Mapping[str, str]) -> None:
        """Put the trace into a request that has no metadata of its own."""
        parent, state = fields.get(PARENT, ""), fields.get(STATE, "")
        payload = request.payload
        if request.connection.protocol != "river" or not parent or payload.metadata is not None:
            return
        if len(parent) > MAX_CHARACTERS or len(state) > MAX_CHARACTERS:
            return
        request.payload = Payload(payload.data, json.dumps({PARENT: parent, STATE: state}).encode())

    def read(self, request: Carried) -> dict[str, str]:
        """Return the trace of a request."""
        metadata = request.payload.metadata
        if metadata is None or request.connection.protocol != "river":
            return {}
        # The session made it.
        return {name: value for name, value in json.loads(metadata).items() if value}
