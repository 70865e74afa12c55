"""Checkpoints: what another process needs to go on with a client's session after this one was killed.

River, Transparent reconnections, speaks of links that break, and not of processes. What it has is enough, by two rules:

1. *What the server keeps.* A server forgets a message when it reads a number in `ack` that lies behind it. So from the
   first checkpoint on, all that we send acknowledges what the last committed checkpoint covers, and not what has come:
   the server sends the rest again, to a client whose handshake has `nextExpectedSeq` at that number. Items that came
   and that nobody has requested yet are not covered. Where one stream holds some and another has gone on, `seen_until`
   tells which of the messages that come twice each stream has seen.

2. *What we say after the checkpoint.* The messages that it finds unacknowledged are part of it. Those that follow have
   numbers, too, and the next process cannot know how many of them the server has handled: a message with a number that
   was handled already is dropped in silence, and one beyond the next number closes the link. So a checkpoint reserves
   numbers for what the session says by itself, which is acknowledgements alone: at most so many are sent before the
   next checkpoint is committed, and then heartbeats stay unanswered. The next process says an acknowledgement under
   each of them. The server drops those that it has handled and takes the others, and after the last one both sides
   count alike, whatever was on its way. A reserved number costs some 150 bytes, once.

What a user asks for between two checkpoints (opens, items, cancellations) takes numbers as well, and is nowhere kept:
the next process says acknowledgements in their place. If it finds that the server has handled more than was reserved,
it gives the session up with :exc:`~penstock.ResumeRejected` rather than be misunderstood.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

import msgspec

from ..checkpoints import before, compose, dissect
from ..core.halves import OPEN
from ..errors import LocalError, ResumeRejected
from ..settings import Settings
from .identity import Side
from .outbound import Outbound
from .streams import RiverStream

__all__ = ["Checkpoint", "Promise", "StreamState", "decode_checkpoint", "restore", "take"]

VERSION: Final = 3
"""Version 1 held the session's id, too; in version 2 all was public."""
RESERVED: Final = 64
"""Numbers reserved in any case: a server asks for some acknowledgements while items come."""
RESERVED_SECONDS: Final = 60.0
"""For how long heartbeats are answered without another checkpoint."""


class StreamState(msgspec.Struct, array_like=True):
    """An open stream; see :class:`penstock.river.streams.RiverStream`."""

    number: int
    name: str
    kind: int
    inbound: int
    outbound: int
    granted: int
    seen_until: int

    @classmethod
    def of(cls, stream: RiverStream, ack: int) -> StreamState:
        """Return the state of `stream`, in a session that expects the message `ack` next."""
        seen_until = stream.held_seqs[0] if stream.held_seqs else max(ack, stream.seen_until)
        # An end that is held comes again.
        inbound = OPEN if stream.held else stream.inbound
        return cls(stream.number, stream.name, stream.kind, inbound, stream.outbound, stream.granted, seen_until)


class Checkpoint(msgspec.Struct):
    """A client's session at one moment; its id, which is its key, is kept apart from it.

    Attributes:
        version: Of this layout.
        codec: Of its messages.
        us: Our id.
        peer: The server's.
        covered: The number of the first message that the data this is stored with does not hold.
        seq: The number of the first message that is reserved.
        reserved: How many are.
        unacked: What was sent before, and is not acknowledged.
        streams: What is open.

    """

    version: int
    codec: str
    us: str
    peer: str
    covered: int
    seq: int
    reserved: int
    unacked: list[bytes]
    streams: list[StreamState]


_decoder = msgspec.msgpack.Decoder(Checkpoint)


def decode_checkpoint(data: bytes, codec: str) -> Checkpoint:
    """Return the checkpoint that `data` holds, of a session that speaks `codec`.

    Raises:
        LocalError: It is not a checkpoint, or one of another version or codec.

    """
    public, private = dissect(data)
    try:
        checkpoint = _decoder.decode(public)
    except msgspec.DecodeError as error:
        raise LocalError(f"these {len(data)} bytes are no checkpoint of a River session: {error}") from error
    if checkpoint.version != VERSION:
        raise LocalError(f"a checkpoint of version {checkpoint.version}; this release reads version {VERSION}")
    if checkpoint.codec != codec:
        raise LocalError(f"a checkpoint of a session in {checkpoint.codec}; the URL says codec={codec}")
    messages = before(private, checkpoint.seq - len(checkpoint.unacked), lambda message: 1)
    checkpoint.unacked = messages + checkpoint.unacked
    return checkpoint


@dataclass(frozen=True, slots=True)
class Promise:
    """What a session owes to its last checkpoint, as soon as that is stored.

    Attributes:
        covered: The number that the peer may be told then.
        reserved: The number at which the session must not begin to speak by itself then.
        stream_id: The stream of which more is requested.
        count: How many items; 0: none.

    """

    covered: int
    reserved: int
    stream_id: int
    count: int


def take(side: Side, outbound: Outbound, stream_id: int, count: int) -> tuple[bytes, Promise] | None:
    """Return what a new process needs to go on with a client's session, and what is due once that is stored.

    The first checkpoint is None while anything is held that nobody has requested: it may be acknowledged already.
    """
    sequence, streams = outbound.sequence, side.streams
    if sequence.covered < 0 and any(stream.held for stream in streams.all()):
        return None
    reserved = _reserved(side.settings)
    if sequence.covered < 0:
        # There is no earlier one to go beyond. What comes from now on waits for the commit.
        sequence.covered, sequence.reserved = sequence.ack, sequence.seq + reserved
    states = [StreamState.of(stream, sequence.ack) for stream in streams.all()]
    covered = min([state.seen_until for state in states], default=sequence.ack)
    for state in states:
        # What the promise will request.
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
    """Take the state of `checkpoint` over, in a new session.

    Raises:
        ResumeRejected: Nothing had come, nor had anything been acknowledged: a server that has forgotten such a
            session takes it for a new one, and nobody would learn what is lost.

    """
    sequence = outbound.sequence
    first = checkpoint.seq - len(checkpoint.unacked)
    if checkpoint.covered == 0 and first == 0:
        raise ResumeRejected("the server had not answered yet: it cannot be told whether it knows the session")
    sequence.seq = first
    for message in checkpoint.unacked:
        sequence.sent(message)
    # Which of them hold secrets is not known any more.
    sequence.private = sequence.seq
    sequence.ack = sequence.covered = checkpoint.covered
    for _ in range(checkpoint.reserved):
        outbound.send_heartbeat()
    # Nothing more, before there is a checkpoint of this process.
    sequence.reserved = sequence.seq
    for state in checkpoint.streams:
        name = side.codec.encoded(state.name)
        stream = side.streams.restore(state.number, state.name, name, state.kind, state.inbound, state.outbound)
        stream.granted, stream.seen_until = state.granted, state.seen_until


def _reserved(settings: Settings) -> int:
    """Return how many numbers a checkpoint reserves. All of them must fit among what is not acknowledged."""
    wanted = RESERVED + ceil(RESERVED_SECONDS / settings.heartbeat_interval)
    return max(1, min(wanted, settings.max_unacked // 4))
