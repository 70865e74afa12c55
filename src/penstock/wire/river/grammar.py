"""River v2.0, Wire format: the grammar of a TransportMessage's envelope, in one table.

The general decoder is made from the table, in both codecs. The compiled scanners have it as code; a test derives
inputs from each row and holds them to it. What a message may look like is changed here first.

A field stands at most once, and a field that is not in the table is passed over. The order of fields is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...depth import MAX_DEPTH

__all__ = [
    "ACK",
    "BODY_DEPTH",
    "CANCEL",
    "CLOSE",
    "CODEC_NAMES",
    "FIELDS",
    "FLAGS",
    "MAX_DIGITS",
    "MAX_ID",
    "MAX_NUMBER",
    "OPEN",
    "REQUIRED",
    "RESULT_DEPTH",
    "Field",
    "Type",
]

CODEC_NAMES: Final = ("json", "msgpack")
"""How URLs name the two ways in which messages are encoded."""

ACK: Final = 0b00001
"""River, Clients, servers, and RPCs: the message is a heartbeat."""
OPEN: Final = 0b00010
CANCEL: Final = 0b00100
CLOSE: Final = 0b01000
FLAGS: Final = {ACK: "ACK", OPEN: "OPEN", CANCEL: "CANCEL", CLOSE: "CLOSE"}
"""The control flags; other bits mean nothing."""

MAX_NUMBER: Final = (1 << 53) - 1
"""The largest integer that every peer can count to."""
MAX_ID: Final = 1_024
"""Characters of an id or a name: the longest that anybody makes have some 40 (THREATS 62)."""
MAX_DIGITS: Final = 4_000
"""Of a big integer in a body: Python takes quadratic time for them, and refuses 4,301."""
BODY_DEPTH: Final = MAX_DEPTH - 3
"""Levels of a body: the envelope, a result and an error are three levels around it."""
RESULT_DEPTH: Final = BODY_DEPTH + 2
"""Levels of a result: an error is two around a body."""


class Type(Enum):
    """What a field holds."""

    ID = "at most `MAX_ID` characters"
    NUMBER = "a whole number from 0 to `MAX_NUMBER`; it may be written as a float"
    OBJECT = "an object, whatever it holds; with the envelope it has at most `MAX_DEPTH` levels"
    BODY = "any value; one that cannot be used costs its stream, not the session (THREATS 93)"


@dataclass(frozen=True, slots=True)
class Field:
    """A row of the table.

    Attributes:
        name: As it stands on the wire.
        attribute: Of :class:`penstock.wire.river.message.Message`.
        type: What it holds. None of them may be null but a body.
        required: Whether a message without it is malformed.

    """

    name: str
    attribute: str
    type: Type
    required: bool = True


FIELDS: Final = (
    Field("id", "id", Type.ID),
    Field("from", "from_", Type.ID),
    Field("to", "to", Type.ID),
    Field("seq", "seq", Type.NUMBER),
    Field("ack", "ack", Type.NUMBER),
    Field("streamId", "stream_id", Type.ID),
    Field("controlFlags", "control_flags", Type.NUMBER),
    Field("payload", "payload", Type.BODY),
    Field("serviceName", "service_name", Type.ID, required=False),
    Field("procedureName", "procedure_name", Type.ID, required=False),
    Field("tracing", "tracing", Type.OBJECT, required=False),
)
"""In the order of the arguments of `Message`, and of the fields' numbers in `message.pxd`."""
REQUIRED: Final = sum(field.required for field in FIELDS)
"""Fields that every message has."""
