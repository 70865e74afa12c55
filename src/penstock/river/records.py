"""What a server writes down of a session before anything of it leaves: records, and what they add up to.

The first record of a log holds the whole session; each of the others holds what has changed since the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ..errors import SessionStoreError

__all__ = ["RECEIVING", "SENDING", "VERSION", "Opening", "Record", "Retained", "encode_record"]

VERSION: Final = 1

# What is open of a stream; bits.
SENDING: Final = 1
RECEIVING: Final = 2


class Opening(msgspec.Struct, array_like=True):
    """How a session began.

    Attributes:
        version: Of this layout.
        codec: Of its messages.
        us: The server's id.
        peer: The client's.
        identity: A digest of who the client is, as far as its link proves it.
        old: It speaks v1.1.
        answered_as: What the answers to its handshakes call the session.

    """

    version: int
    codec: str
    us: str
    peer: str
    identity: bytes
    old: bool
    answered_as: str


class Record(msgspec.Struct, array_like=True):
    """What has changed in a session.

    Attributes:
        ack: The number of the next message that is expected.
        first: The number of the first of `messages`.
        messages: What is sent from there on, as it is sent.
        opened: Streams that are open now and were not before, or not so: id, and what is open of them.
        ended: Ids of streams that are open no more.
        opening: How it began; in the first record of a log alone.

    """

    ack: int
    first: int
    messages: list[bytes]
    opened: dict[str, int]
    ended: list[str]
    opening: Opening | None = None


_decoder = msgspec.msgpack.Decoder(Record)


def encode_record(record: Record) -> bytes:
    """Return `record` as bytes."""
    return msgspec.msgpack.encode(record)


def _decoded(data: bytes) -> Record:
    try:
        record = _decoder.decode(data)
    except msgspec.DecodeError as error:
        raise SessionStoreError(f"these {len(data)} bytes are not a record of a River session: {error}") from error
    if record.opening is not None and record.opening.version != VERSION:
        raise SessionStoreError(
            f"a River session was kept in version {record.opening.version}; this release reads version {VERSION}"
        )
    return record


class Retained:
    """What the records of a log add up to.

    Args:
        data: The records.

    Attributes:
        opening: How the session began.
        ack: The number of the next message that is expected.
        first: The number of the first of `messages`.
        messages: What was sent, and the client may not have.
        streams: What is open, by id.

    Raises:
        SessionStoreError: They are not records, or do not begin with a whole session.

    """

    def __init__(self, data: Iterable[bytes]) -> None:
        records = [_decoded(each) for each in data]
        if not records or records[0].opening is None:
            raise SessionStoreError("the log of a River session does not tell how it began")
        self.opening = records[0].opening
        self.ack = records[-1].ack
        self.first = records[0].first
        self.messages: list[bytes] = []
        self.streams: dict[str, int] = {}
        for record in records:
            if record.first != self.seq:
                # What lies between was acknowledged before it was written down.
                self.first, self.messages = record.first, []
            self.messages += record.messages
            self.streams.update(record.opened)
            for name in record.ended:
                self.streams.pop(name, None)

    @property
    def seq(self) -> int:
        """The number of the next message that is sent."""
        return self.first + len(self.messages)
