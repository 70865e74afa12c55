"""The streams of a session, and their ids."""

from __future__ import annotations

from typing import Final

from ..kinds import Kind
from .halves import DONE, INITIAL, OPEN, TERMINAL, Signal

__all__ = ["MAX_STREAM_ID", "Stream", "StreamTable"]

MAX_STREAM_ID: Final = 0x7FFFFFFF
"""RSocket 1.0, Stream Identifiers: 31 bits."""


# `halves.TERMINAL` as a flat list, because it is used for every stream: 1 ends the requester's half, 2 the responder's.
ENDS: Final = [0] * (2 * len(Signal) + 2)
for (_signal, _by_requester), (_requester, _responder) in TERMINAL.items():
    ENDS[2 * _signal + _by_requester] = _requester + 2 * _responder
# `halves.INITIAL` likewise: the requester's half of each kind, then the responder's.
STARTS: Final = [half for _kind in sorted(INITIAL) for half in INITIAL[_kind]]
COMPLETE: Final = int(Signal.COMPLETE)
FAIL: Final = int(Signal.FAIL)


class Stream:
    """One interaction.

    Attributes:
        id: The number on the wire. It is negative if both sides use the same numbers and the peer opened the stream.
        kind: A :class:`~weirpool.Kind` as a number.
        ours: Whether this side opened it.
        inbound: The state of the half in which the peer sends, of :mod:`weirpool.core.halves`.
        outbound: The state of the half in which this side sends.
        granted: How many items the peer may still send.
        credit: How many items this side may still send.
        unrequested: Items that arrived without being requested, such as the payload that opens a channel.
            They are subtracted from the next request.
        half_close: Whether the halves end separately; else the responder's COMPLETE ends both.

    """

    __slots__ = (
        "credit", "granted", "half_close", "id", "inbound", "kind", "ours", "outbound", "unrequested",
    )  # fmt: skip

    def __init__(self, id: int, kind: Kind, ours: bool, half_close: bool = True) -> None:
        self.begin(id, int(kind), ours, half_close)

    def begin(self, id: int, kind: int, ours: bool, half_close: bool) -> None:
        """Set the state of a new stream. Compiled code calls this faster than the class."""
        requester, responder = STARTS[2 * kind - 2], STARTS[2 * kind - 1]
        self.id = id
        self.kind = kind
        self.ours = ours
        self.inbound = responder if ours else requester
        self.outbound = requester if ours else responder
        self.granted = 0
        self.credit = 0
        self.unrequested = 0
        self.half_close = half_close

    @property
    def over(self) -> bool:
        """Whether both halves are done."""
        return self.inbound == DONE and self.outbound == DONE

    @property
    def only_canceled(self) -> bool:
        """Whether this side may end the stream by CANCEL, but not by ERROR.

        RSocket 1.0, Request Stream: a requester whose half has ended can only cancel. ReactiveSocket 0.2, Request
        Channel: no requester sends ERROR.
        """
        return self.ours and (self.outbound != OPEN or not self.half_close)

    def end(self, signal: int, from_us: bool) -> bool:
        """End the halves that `signal` ends; return True if both are done."""
        by_requester = from_us == self.ours
        if signal == COMPLETE and not by_requester and not self.half_close:
            # ReactiveSocket 0.2, Request Channel: the responder's COMPLETE terminates the stream.
            signal = FAIL
        ends = ENDS[2 * signal + by_requester]
        ours, theirs = (1, 2) if self.ours else (2, 1)
        if ends & ours:
            self.outbound = DONE
        if ends & theirs:
            self.inbound = DONE
        return self.inbound == DONE and self.outbound == DONE


class StreamTable:
    """The open streams of both sides.

    Args:
        first_id: The id of the first stream that this side opens; ids increase by two.
        own_ids: Both sides use the same ids. The peer's streams have negative ids here. Otherwise they have the
            other parity.
        half_close: See :class:`Stream`.

    Attributes:
        next_id: The id of the next stream that this side opens.
        remote: How many streams the peer has open.
        wrapped: Whether all ids have been used once.

    """

    __slots__ = ("_first_id", "_half_close", "_own_ids", "_streams", "next_id", "remote", "wrapped")

    def __init__(self, first_id: int, own_ids: bool = False, half_close: bool = True) -> None:
        self._streams: dict[int, Stream] = {}
        self._own_ids = own_ids
        self._half_close = half_close
        self._first_id = first_id
        self.next_id = first_id
        self.remote = 0
        self.wrapped = False

    def __len__(self) -> int:
        return len(self._streams)

    def get(self, stream_id: int) -> Stream | None:
        """Return the open stream with that id, or None."""
        return self._streams.get(stream_id)

    def open_ours(self, kind: Kind) -> Stream:
        """Open a stream on this side, with the next free id.

        RSocket 1.0, Stream Identifiers, Lifetime: after the last id, ids start again, and those in use are
        skipped.
        """
        stream_id = self.take_id()
        stream = Stream.__new__(Stream)
        stream.begin(stream_id, kind, True, self._half_close)
        self._streams[stream_id] = stream
        return stream

    def take_id(self) -> int:
        """Return the next free id of this side, which is then used: see `open_ours`."""
        free = self.next_id
        stream_id = free
        while stream_id in self._streams:
            free = self._after(free)
            stream_id = free
        self.next_id = self._after(free)
        return stream_id

    def restore(self, stream_id: int, kind: Kind) -> Stream:
        """Add a stream that this side opened in an earlier process."""
        stream = Stream(stream_id, kind, True, self._half_close)
        self._streams[stream_id] = stream
        return stream

    def open_theirs(self, stream_id: int, kind: Kind) -> Stream:
        """Open a stream that the peer has requested."""
        stream = Stream.__new__(Stream)
        stream.begin(stream_id, kind, False, self._half_close)
        self._streams[stream_id] = stream
        self.remote += 1
        return stream

    def may_be_theirs(self, stream_id: int) -> bool:
        """Return whether the peer may open a stream with that id; its ids have their own parity or sign."""
        if self._own_ids:
            # ReactiveSocket 0.0: 64 bits and the sign.
            return stream_id < 0
        number = stream_id
        return number > 0 and (number ^ self._first_id) & 1 == 1

    def follow(self, stream_id: int) -> None:
        """Give this side the ids of the other parity, if it has not opened a stream yet; `stream_id` is the peer's."""
        if self.next_id == self._first_id and not self.wrapped:
            self._first_id = self.next_id = 1 if stream_id % 2 == 0 else 2

    def close(self, stream: Stream) -> None:
        """Remove a stream whose halves are done."""
        if self._streams.pop(stream.id, None) is not None and not stream.ours:
            self.remote -= 1

    def all(self) -> list[Stream]:
        """Return the open streams, in the order in which they were opened."""
        return list(self._streams.values())

    def _after(self, stream_id: int) -> int:
        if stream_id + 2 <= MAX_STREAM_ID:
            return stream_id + 2
        self.wrapped = True
        return self._first_id
