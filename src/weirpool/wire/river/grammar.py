"""River v2.0, Wire format: the grammar of a TransportMessage's envelope, as one table.

The general decoder of both codecs is made from the table. The compiled scanners contain it as code; a test derives
inputs from each row and compares the results. Changes of the format begin in this table.

A field occurs at most once, and unknown fields are ignored. The order of fields is free.
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
"""The names of the codecs in URLs."""

ACK: Final = 0b00001
"""River, Clients, servers, and RPCs: the message is a heartbeat."""
OPEN: Final = 0b00010
CANCEL: Final = 0b00100
CLOSE: Final = 0b01000
FLAGS: Final = {ACK: "ACK", OPEN: "OPEN", CANCEL: "CANCEL", CLOSE: "CLOSE"}
"""The control flags; other bits are ignored."""

MAX_NUMBER: Final = (1 << 53) - 1
"""The largest integer that every peer supports."""
MAX_ID: Final = 1_024
"""Maximum length of an id or a name; known peers use at most about 40 characters (THREATS 62)."""
MAX_DIGITS: Final = 4_000
"""Maximum number of digits of a big integer in a body: Python takes quadratic time, and rejects 4,301 digits."""
BODY_DEPTH: Final = MAX_DEPTH - 3
"""Maximum depth of a body: the envelope, a result and an error are three levels around it."""
RESULT_DEPTH: Final = BODY_DEPTH + 2
"""Maximum depth of a result, in which an error adds two levels around a body."""


class Type(Enum):
    """The types of fields."""

    ID = "at most `MAX_ID` characters"
    NUMBER = "a whole number from 0 to `MAX_NUMBER`; it may be written as a float"
    OBJECT = "any object; it has at most `MAX_DEPTH` levels, including the envelope"
    BODY = "any value; an invalid one only ends its stream, not the session (THREATS 93)"


@dataclass(frozen=True, slots=True)
class Field:
    """A row of the table.

    Attributes:
        name: The name on the wire.
        attribute: The attribute of :class:`weirpool.wire.river.message.Message`.
        type: The type. Only a body may be null.
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
"""The fields in the order of the arguments of `Message`, and of the numbers in `message.pxd`."""
REQUIRED: Final = sum(field.required for field in FIELDS)
"""The number of fields that every message has."""
