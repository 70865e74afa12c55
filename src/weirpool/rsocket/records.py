"""The records of a server's session log, and the state that results from them.

The first record of a log contains the complete session; each later record contains the changes since the previous one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from ..core.replay import Replay
from ..core.write_ahead import decode_records
from ..errors import FrameError, SessionStoreError
from ..events import Established
from ..payload import Payload
from ..texts import concealed
from ..wire.framing import Deframer, prefixed
from .resume import Position, StreamId

__all__ = ["PARTIAL", "RECEIVING", "SENDING", "Opening", "Record", "Retained"]

VERSION: Final = 1

# The open halves of a stream.
PARTIAL: Final = 0
"""None, because its request is incomplete."""
SENDING: Final = 1
"""A bit: the half in which this side sends."""
RECEIVING: Final = 2
"""A bit: the half in which the peer sends."""
_Halves: TypeAlias = Annotated[int, Meta(ge=PARTIAL, le=SENDING | RECEIVING)]


class Opening(msgspec.Struct, array_like=True):
    """The set-up of a session.

    Attributes:
        version: The version of this layout.
        dialect: The name of the protocol version.
        identity: A digest of the client's verified identity.
        metadata_mime, data_mime, data, metadata, strict: See :class:`weirpool.Established`.
        understood: Whether both MIME types were known.
        leases: Whether the client requested leases.

    """

    __repr__ = concealed

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
        """Return the opening of a session from its `event`."""
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
        """Return the event for the session's user."""
        return Established(
            Payload(self.data, self.metadata), self.metadata_mime, self.data_mime, self.strict, self.understood
        )


class Record(msgspec.Struct, array_like=True):
    """The changes of a session.

    Attributes:
        received: The position up to which it has received.
        sent: The position of the first byte of `frames`.
        frames: The output from that position on.
        next_id: The id of its next stream.
        opened: New streams, and those whose halves have changed: id and open halves.
        ended: The ids of streams that have ended.
        opening: The set-up; only in the first record of a log.

    """

    received: Position
    sent: Position
    frames: bytes
    next_id: StreamId
    opened: dict[StreamId, _Halves]
    ended: list[StreamId]
    opening: Opening | None = None


_decoder = msgspec.msgpack.Decoder(Record)


class Retained:
    """The state of a session after the records of a log.

    Args:
        data: The records.
        resume_bytes: The maximum sent output to keep.
        prefix_bytes: The size of the length prefix of a frame.

    Attributes:
        opening: The set-up.
        received: The position up to which the session has received.
        next_id: The id of its next stream.
        replay: The sent output that the client may not have received.
        streams: The open halves of streams by id.

    Raises:
        SessionStoreError: The records are invalid, or the first one does not contain a complete session.

    """

    def __init__(self, data: Iterable[bytes], resume_bytes: int, prefix_bytes: int) -> None:
        records, self.streams = decode_records(_decoder, data, VERSION, "RSocket")
        self.opening: Opening = records[0].opening
        self.received: int = records[-1].received
        self.next_id: int = records[-1].next_id
        self.replay = Replay(resume_bytes, prefix_bytes, records[0].sent)
        for record in records:
            if record.sent != self.replay.end:
                # More was sent at once than is kept: the output in between was discarded before it was recorded.
                self.replay = Replay(resume_bytes, prefix_bytes, record.sent)
            self._keep(record.frames, prefix_bytes)

    def _keep(self, frames: bytes, prefix_bytes: int) -> None:
        deframer = Deframer(prefix_bytes)
        try:
            bodies = deframer.split(frames)
        except FrameError as error:
            raise SessionStoreError(f"RSocket session log has an invalid frame: {error}") from error
        if deframer.pending:
            raise SessionStoreError(f"RSocket session log ends a record within a frame of {deframer.pending} bytes")
        for body in bodies:
            self.replay.keep(prefixed(body, prefix_bytes), len(body), True)
