"""Checkpoints: what another process needs to go on with a client's session after this one was killed.

River, Transparent reconnections, speaks of links that break, and not of processes. What it has is enough, by two rules:

1. *What the server keeps.* A server forgets a message when it reads a number in `ack` that lies behind it. So from the
   first checkpoint on, all that we send acknowledges what the last committed checkpoint covers, and not what has come:
   the server sends the rest again, to whoever shakes hands with `nextExpectedSeq` at that number. Items that came and
   that nobody has asked for yet are not covered; where one stream holds some and another has gone on, `heard` tells
   which of the messages that come twice each stream has seen.

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

from math import ceil
from typing import Final

import msgspec

from ..checkpoints import before, compose, dissect
from ..core.halves import OPEN
from ..errors import LocalError, ResumeRejected
from ..settings import Settings
from ..wire.river.message import Message
from .connection import CLOSED, OPENED, UP
from .link import Links
from .streams import RiverStream

__all__ = ["Checkpoint", "Checkpoints", "StreamState", "decode_checkpoint"]

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
    heard: int

    @classmethod
    def of(cls, stream: RiverStream, ack: int) -> StreamState:
        """Return the state of `stream`, in a session that expects the message `ack` next."""
        heard = stream.held_seqs[0] if stream.held_seqs else max(ack, stream.heard)
        # An end that is held comes again.
        inbound = OPEN if stream.held else stream.inbound
        return cls(stream.number, stream.name, stream.kind, inbound, stream.outbound, stream.granted, heard)


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
        LocalError: It holds none, or one of a later version or another codec.

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


class Checkpoints(Links):
    """A session with its links that may be taken over by another process."""

    def checkpoint(self, stream_id: int, count: int) -> bytes | None:
        """Return what a new process needs to go on; see :meth:`penstock.session.Session.checkpoint`.

        Events that were not taken yet count as received: take them first, those that a `commit` brought as well. The
        first checkpoint is None while anything is held that nobody has asked for: it may be acknowledged already.
        """
        sequence = self._sequence
        early = sequence.covered < 0 and any(stream.held for stream in self._streams.all())
        if not self._is_client or self._state != OPENED or early:
            return None
        reserved = _reserved(self._settings)
        if sequence.covered < 0:
            # There is no earlier one to go beyond. What comes from now on waits for the commit.
            sequence.covered, sequence.reserved = sequence.ack, sequence.seq + reserved
        streams = [StreamState.of(stream, sequence.ack) for stream in self._streams.all()]
        covered = min([state.heard for state in streams], default=sequence.ack)
        for state in streams:
            # What `commit` will ask for.
            state.granted += count if state.number == stream_id else 0
        self._promised = covered, sequence.seq + reserved, stream_id, count
        unacked = sequence.unacked
        secrets = max(0, sequence.private - sequence.first)
        public = Checkpoint(
            version=VERSION,
            codec=self._codec.name,
            us=self.us,
            peer=self.peer,
            covered=covered,
            seq=sequence.seq,
            reserved=reserved,
            unacked=unacked[secrets:],
            streams=streams,
        )
        return compose(msgspec.msgpack.encode(public), sequence.first, unacked[:secrets])

    def commit(self) -> None:
        """What the last checkpoint covers is safe: tell the peer. See :meth:`penstock.session.Session.commit`."""
        if self._promised is None or self._state == CLOSED:
            return
        sequence = self._sequence
        before = sequence.covered
        sequence.covered, sequence.reserved, stream_id, count = self._promised
        self._promised = None
        if count > 0:
            self.request(stream_id, count)
        if sequence.covered > before and self._link == UP:
            self._echo()

    def restore_from(self, checkpoint: Checkpoint) -> None:
        """Take the state of `checkpoint` over.

        Raises:
            ResumeRejected: Nothing had come, nor had anything been acknowledged: a server that has forgotten such a
                session takes it for a new one, and nobody would learn what is lost.

        """
        sequence = self._sequence
        first = checkpoint.seq - len(checkpoint.unacked)
        if checkpoint.covered == 0 and first == 0:
            raise ResumeRejected("the server had not answered yet: it cannot be told whether it knows the session")
        self._taken_over = True
        sequence.seq = first
        for message in checkpoint.unacked:
            sequence.sent(message)
        # Which of them hold secrets is not known any more.
        sequence.private = sequence.seq
        sequence.ack = sequence.covered = checkpoint.covered
        for _ in range(checkpoint.reserved):
            self._beat()
        # Nothing more, before there is a checkpoint of this process.
        sequence.reserved = sequence.seq
        for state in checkpoint.streams:
            stream = self._streams.restore(
                state.number, state.name, self._codec.encoded(state.name), state.kind, state.inbound, state.outbound
            )
            stream.granted, stream.heard = state.granted, state.heard

    def request(self, stream_id: int, count: int) -> None:
        """Take `count` more items. See :meth:`penstock.session.Session.request`."""
        raise NotImplementedError

    def _echo(self) -> None:
        if self._sequence.covered < 0 or self._sequence.seq < self._sequence.reserved:
            self._beat()

    def _astray(self, message: Message, now: float) -> None:
        if self._taken_over and message.ack > self._sequence.seq:
            text = f"{self.peer} has handled more than was reserved: the earlier process went on behind its checkpoint"
            self._finish(ResumeRejected(text))
        else:
            Links._astray(self, message, now)


def _reserved(settings: Settings) -> int:
    """Return how many numbers a checkpoint reserves: they must all find room among what is not acknowledged."""
    wanted = RESERVED + ceil(RESERVED_SECONDS / settings.heartbeat_interval)
    return max(1, min(wanted, settings.max_unacked // 4))
