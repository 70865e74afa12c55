"""What a server writes down of a session before anything of it leaves: records, and what they add up to.

The first record of a log holds the whole session; each of the others holds what has changed since the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ..core.replay import Replay
from ..core.write_ahead import decode_records
from ..events import Established
from ..payload import Payload
from ..wire.framing import Deframer, prefixed

__all__ = ["PARTIAL", "RECEIVING", "SENDING", "Opening", "Record", "Retained"]

VERSION: Final = 1

# What is open of a stream.
PARTIAL: Final = 0
"""Nothing yet: not all fragments of its request are here."""
SENDING: Final = 1
"""The half in which we send; a bit."""
RECEIVING: Final = 2
"""The half in which the peer sends; a bit."""


class Opening(msgspec.Struct, array_like=True):
    """How a session began.

    Attributes:
        version: Of this layout.
        dialect: The name of the protocol version.
        identity: A digest of who the client is, as far as its link proves it.
        metadata_mime, data_mime, data, metadata, strict: As the set-up said.
        understood: Both MIME types were known.
        leases: The client asked for leases.

    """

    version: int
    dialect: str
    identity: bytes
    metadata_mime: str
    data_mime: str
    data: bytes
    metadata: bytes | None
    strict: bool
    understood: bool
    leases: bool

    @classmethod
    def of(cls, event: Established, dialect: str, identity: bytes, leases: bool) -> Opening:
        """Return what `event` says of a session."""
        payload = event.payload
        return cls(
            VERSION,
            dialect,
            identity,
            event.metadata_mime,
            event.data_mime,
            payload.data,
            payload.metadata,
            event.strict,
            event.understood,
            leases,
        )

    def event(self) -> Established:
        """Return what a server's user is told of it."""
        return Established(
            Payload(self.data, self.metadata), self.metadata_mime, self.data_mime, self.strict, self.understood
        )


class Record(msgspec.Struct, array_like=True):
    """What has changed in a session.

    Attributes:
        received: The position up to which it has received.
        sent: The position of the first byte of `frames`.
        frames: What it sends from there on, as it is sent.
        next_id: The number of its next stream.
        opened: Streams that are open now and were not before, or not so: number, and what is open of them.
        ended: Streams that are open no more.
        opening: How it began; in the first record of a log alone.

    """

    received: int
    sent: int
    frames: bytes
    next_id: int
    opened: dict[int, int]
    ended: list[int]
    opening: Opening | None = None


_decoder = msgspec.msgpack.Decoder(Record)


class Retained:
    """What the records of a log add up to.

    Args:
        data: The records.
        resume_bytes: Sent output that is kept at most.
        prefix_bytes: Of the length before each frame.

    Attributes:
        opening: How the session began.
        received: The position up to which it has received.
        next_id: The number of its next stream.
        replay: What it has sent, and the client may not have.
        streams: What is open, by number.

    Raises:
        SessionStoreError: They are no records, or do not begin with a whole session.

    """

    def __init__(self, data: Iterable[bytes], resume_bytes: int, prefix_bytes: int) -> None:
        records, self.streams = decode_records(_decoder, data, VERSION, "RSocket")
        self.opening: Opening = records[0].opening
        self.received: int = records[-1].received
        self.next_id: int = records[-1].next_id
        self.replay = Replay(resume_bytes, prefix_bytes, records[0].sent)
        for record in records:
            if record.sent != self.replay.end:
                # More was sent at once than is kept: what lies between was let go before it was written down.
                self.replay = Replay(resume_bytes, prefix_bytes, record.sent)
            self._keep(record.frames, prefix_bytes)

    def _keep(self, frames: bytes, prefix_bytes: int) -> None:
        deframer = Deframer(prefix_bytes)
        deframer.feed(frames)
        while deframer.next():
            body = deframer.buffer[deframer.start : deframer.end]
            self.replay.keep(prefixed(body, prefix_bytes), len(body), True)
