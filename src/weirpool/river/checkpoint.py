"""Checkpoints: what another process needs to resume a client's session after this process was killed.

River, Transparent reconnections, covers lost links, but not lost processes. Two rules make it sufficient:

1. *The server keeps what no checkpoint covers.* A server drops a message when a later `ack` acknowledges it. From the
   first checkpoint on, our messages acknowledge only what the last committed checkpoint covers. The next process puts
   that number into `nextExpectedSeq` of its handshake, and the server sends the rest again. Items that arrived and
   were not requested are not covered. If one stream holds items and another has proceeded, `seen_until` tells for
   each stream which of the repeated messages it has seen.

2. *Numbers are reserved for messages after the checkpoint.* A checkpoint contains the unacknowledged messages. Later
   ones have numbers, too, and the next process cannot know how many of them the server has handled: the server ignores
   a number that it has handled, and closes the link for a number beyond the next one. So a checkpoint reserves numbers
   for acknowledgements, which the session sends on its own. When they are used up before the next checkpoint is
   committed, heartbeats stay unanswered. The next process sends an acknowledgement with each reserved number. The
   server ignores those that it has handled, and after the last one both sides agree on the next number. A reserved
   number costs about 150 bytes, once.

Requests of users between two checkpoints (opens, items, cancellations) use numbers as well and are not stored; the next
process sends acknowledgements in their place. If the server has handled more than was reserved, the session ends with
:exc:`~weirpool.ResumeRejected`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Annotated, Final, TypeAlias

import msgspec
from msgspec import Meta

from ..checkpoints import before, compose, dissect
from ..core.halves import DONE, IDLE, OPEN
from ..errors import LocalError, ResumeRejected
from ..kinds import Kind
from ..settings import Settings
from ..wire.river.codec import MAX_NUMBER
from .identity import Side
from .outbound import Outbound
from .streams import RiverStream

__all__ = ["Checkpoint", "Promise", "StreamState", "decode_checkpoint", "restore", "take"]

VERSION: Final = 3
"""Version 1 contained the session's id; version 2 had no private part."""
RESERVED: Final = 64
"""The minimum of reserved numbers, for the acknowledgements that a server requests while it sends items."""
RESERVED_SECONDS: Final = 60.0
"""How long heartbeats can be answered without another checkpoint."""
# What the fields of a checkpoint may contain. It comes from a file, which may be damaged or hostile.
_Count: TypeAlias = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
_Half: TypeAlias = Annotated[int, Meta(ge=IDLE, le=DONE)]
_Number: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_NUMBER)]


class StreamState(msgspec.Struct, array_like=True):
    """An open stream; see :class:`weirpool.river.streams.RiverStream`."""

    number: _Number
    name: str
    kind: Kind
    inbound: _Half
    outbound: _Half
    granted: _Count
    seen_until: _Number

    @classmethod
    def of(cls, stream: RiverStream, ack: int) -> StreamState:
        """Return the state of `stream`; `ack` is the number of the next expected message."""
        seen_until = stream.held_seqs[0] if stream.held_seqs else max(ack, stream.seen_until)
        # A held end is sent again.
        inbound = OPEN if stream.held else stream.inbound
        return cls(stream.number, stream.name, Kind(stream.kind), inbound, stream.outbound, stream.granted, seen_until)


class Checkpoint(msgspec.Struct):
    """The state of a client's session, without its id, which is its key.

    Attributes:
        version: The version of this layout.
        codec: The name of the codec.
        us: This side's id.
        peer: The server's id.
        covered: The number of the first message that the checkpoint does not cover.
        seq: The first reserved number.
        reserved: The count of reserved numbers.
        unacked: The unacknowledged messages, encoded.
        streams: The open streams.

    """

    version: int
    codec: str
    us: str
    peer: str
    covered: _Number
    seq: _Number
    reserved: _Number
    unacked: list[bytes]
    streams: list[StreamState]


_decoder = msgspec.msgpack.Decoder(Checkpoint)


def decode_checkpoint(data: bytes, codec: str) -> Checkpoint:
    """Return the checkpoint in `data`.

    Raises:
        LocalError: It is not a checkpoint, or has another version, or a codec other than `codec`.

    """
    public, private = dissect(data)
    try:
        checkpoint = _decoder.decode(public)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise LocalError(f"not a checkpoint of a River session ({len(data)} bytes): {error}") from error
    if checkpoint.version != VERSION:
        raise LocalError(f"checkpoint of version {checkpoint.version}; this release reads version {VERSION}")
    if checkpoint.codec != codec:
        raise LocalError(
            f"the checkpoint's session has codec={checkpoint.codec}, and the URL codec={codec}; use the same codec"
        )
    messages = before(private, checkpoint.seq - len(checkpoint.unacked), lambda message: 1)
    checkpoint.unacked = messages + checkpoint.unacked
    if len(checkpoint.unacked) > checkpoint.seq:
        raise LocalError(f"the checkpoint has {len(checkpoint.unacked)} messages before number {checkpoint.seq}")
    return checkpoint


@dataclass(frozen=True, slots=True)
class Promise:
    """What `commit` does after the last checkpoint was stored.

    Attributes:
        covered: The number that may be acknowledged then.
        reserved: The number from which on the session must not send acknowledgements.
        stream_id: The stream to request items of.
        count: The number of items; 0: none.

    """

    covered: int
    reserved: int
    stream_id: int
    count: int


def take(side: Side, outbound: Outbound, stream_id: int, count: int) -> tuple[bytes, Promise] | None:
    """Return a checkpoint of a client's session, and what to do after it was stored.

    Return None before the first checkpoint while a stream holds items: these may have been acknowledged already.
    """
    sequence, streams = outbound.sequence, side.streams
    if sequence.covered < 0 and any(stream.held for stream in streams.all()):
        return None
    reserved = _reserved(side.settings)
    if sequence.covered < 0:
        # The first checkpoint. From now on, acknowledgements wait for the commit.
        sequence.covered, sequence.reserved = sequence.ack, sequence.seq + reserved
    states = [StreamState.of(stream, sequence.ack) for stream in streams.all()]
    covered = min([state.seen_until for state in states], default=sequence.ack)
    for state in states:
        # Includes what `commit` will request.
        state.granted += count if state.number == stream_id else 0
    unacked = sequence.unacked
    secrets = max(0, sequence.private - sequence.first)
    public = Checkpoint(
        version=VERSION,
        codec=side.codec.name,
        us=side.us,
        peer=side.peer,
        covered=covered,
        seq=sequence.seq,
        reserved=reserved,
        unacked=unacked[secrets:],
        streams=states,
    )
    data = compose(msgspec.msgpack.encode(public), sequence.first, unacked[:secrets])
    return data, Promise(covered, sequence.seq + reserved, stream_id, count)


def restore(checkpoint: Checkpoint, side: Side, outbound: Outbound) -> None:
    """Restore `checkpoint` in a new session.

    Raises:
        LocalError: It reserves more numbers than messages may be unacknowledged.
        ResumeRejected: Nothing had been received or acknowledged. A server that has lost such a session would accept
            it as a new one, and the loss would go unnoticed.

    """
    sequence = outbound.sequence
    first = checkpoint.seq - len(checkpoint.unacked)
    if checkpoint.covered == 0 and first == 0:
        raise ResumeRejected(
            "the server had not answered before the checkpoint, so it may have lost the session unnoticed"
        )
    limit = side.settings.max_unacked
    if checkpoint.reserved > limit:
        raise LocalError(f"the checkpoint reserves {checkpoint.reserved} numbers, more than max_unacked ({limit})")
    sequence.seq = first
    for message in checkpoint.unacked:
        sequence.sent(message)
    # Any of them may contain secrets.
    sequence.private = sequence.seq
    sequence.ack = sequence.covered = checkpoint.covered
    for _ in range(checkpoint.reserved):
        outbound.send_heartbeat()
    # No more acknowledgements until this process has made a checkpoint.
    sequence.reserved = sequence.seq
    for state in checkpoint.streams:
        name = side.codec.encoded(state.name)
        stream = side.streams.restore(state.number, state.name, name, state.kind, state.inbound, state.outbound)
        stream.granted, stream.seen_until = state.granted, state.seen_until


def _reserved(settings: Settings) -> int:
    """Return how many numbers a checkpoint reserves. They must fit into `max_unacked`."""
    wanted = RESERVED + ceil(RESERVED_SECONDS / settings.heartbeat_interval)
    return max(1, min(wanted, settings.max_unacked // 4))
