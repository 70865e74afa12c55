"""What a subscriber of a journal asks for: where to start and to end, and in which form."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from ..errors import Invalid
from ..values.cbor import CborReader
from ..values.decoder import Decoder
from ..values.msgpack import MsgpackReader

__all__ = ["EARLIEST", "NEW", "Subscription"]

NEW: Final = "new"
EARLIEST: Final = "earliest"
NOW: Final = "now"
_HINT: Final = (
    "send nothing for new items; a position, earliest, or a time such as 2026-01-31T12:00:00Z; or an object with the "
    'fields "from", "to", "source", "form", "metadata" and "loss"'
)
_POSITION: Final = re.compile(r"[0-9]{1,18}")


class Subscription(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"start": "from", "end": "to"}
):
    """The request of a subscriber, as JSON or MessagePack; a text is the field `from` alone."""

    start: int | str = NEW
    """A position, "new", "earliest", or a time, for the first row that was received since."""
    end: int | Literal["now"] | None = None
    """The position to end before; "now": that after the last row now; None: the stream does not end."""
    source: str | None = None
    """The log, if the route does not name one."""
    form: Literal["items", "json", "arrow"] = "items"
    """Items as they were collected; JSON objects with position, time, data and metadata; or Arrow IPC streams of many
    rows with all columns."""
    metadata: Literal["item", "position", "none"] | None = None
    """The metadata of items: their own, or their position and time, or none; None: their own if the connection has
    metadata."""
    loss: Literal["fail", "skip"] = "fail"
    """What happens when rows are gone: the stream fails, or continues with the earliest row."""

    @property
    def tells_gaps(self) -> bool:
        """True if gaps have a form of their own among the items."""
        return self.form != "items" or self.metadata == "position"

    @classmethod
    def parse(cls, data: bytes) -> Subscription:
        """Return the request with this data; `Invalid` if it is not one."""
        try:
            asked: Subscription = _decoded(data)
            if any(isinstance(place, int) and place < 0 for place in (asked.start, asked.end)):
                raise ValueError("a position is not negative")
            if isinstance(asked.start, str) and asked.start not in (NEW, EARLIEST):
                asked.since()
            return asked
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise Invalid(message=f"this is not a request of a journal ({error}); {_HINT}") from None

    def since(self) -> datetime:
        """Return the time to start with; ValueError if `start` is not a time with its zone."""
        time = datetime.fromisoformat(str(self.start))
        if time.tzinfo is None:
            raise ValueError("a time needs its zone, as in 2026-01-31T12:00:00Z")
        return time


_MSGPACK: Final = Decoder(MsgpackReader(), Subscription)
_CBOR: Final = Decoder(CborReader(), Subscription)


def _decoded(data: bytes) -> Any:
    # MessagePack: fixmap, map 16, map 32.
    if data[:1] and (0x80 <= data[0] <= 0x8F or data[0] in (0xDE, 0xDF)):
        return _MSGPACK.decode(data)
    # CBOR: a map.
    if data[:1] and 0xA0 <= data[0] <= 0xBF:
        return _CBOR.decode(data)
    text = data.decode().strip()
    if text.startswith("{"):
        return msgspec.json.decode(text, type=Subscription)
    # A client of typed data sends a text as JSON.
    text = text.strip('"')
    if _POSITION.fullmatch(text):
        return Subscription(start=int(text))
    return Subscription(start=text or NEW)
