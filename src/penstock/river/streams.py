"""The streams of a River session: by the names that they have on the wire, and by the numbers that users know."""

from __future__ import annotations

from collections import OrderedDict, deque

from ..core.halves import OPEN
from ..events import Event
from ..kinds import Kind

__all__ = ["RiverStream", "RiverStreams"]

_STREAM = int(Kind.STREAM)
_UPLOAD = int(Kind.UPLOAD)
_CHANNEL = int(Kind.CHANNEL)


class RiverStream:
    """One procedure stream.

    Attributes:
        number: What users call it.
        name: Its id on the wire.
        encoded: The same, as messages have it.
        kind: What travels each way, as a number.
        sends_items: Whether its client sends items after the first one.
        answers_items: Whether any number of items come back.
        inbound: The state of the half in which the peer sends, of :mod:`penstock.core.halves`.
        outbound: The state of the half in which we send.
        reads_stopped: Its user reads no more. River cannot tell the peer, so what comes is dropped.
        granted: Items that its user asked for, and that have not come.
        held: What came before anybody asked for it: items, and then the end. None: nothing did.
        held_seqs: The numbers of the messages that brought it.
        seen_until: The number of the first message that its user may not have seen, in a session that was taken over.
        held_bytes: The size of `held`, with an allowance for each item.

    """

    __slots__ = (
        "answers_items", "encoded", "granted", "held", "held_bytes", "held_seqs", "inbound", "kind", "name", "number",
        "outbound", "reads_stopped", "seen_until", "sends_items",
    )  # fmt: skip

    def __init__(self, number: int, name: str, encoded: bytes, kind: int, inbound: int, outbound: int) -> None:
        self.number = number
        self.name = name
        self.encoded = encoded
        self.kind = kind
        self.sends_items = kind == _UPLOAD or kind == _CHANNEL
        self.answers_items = kind == _STREAM or kind == _CHANNEL
        self.inbound = inbound
        self.outbound = outbound
        self.granted = 0
        self.reads_stopped = False
        self.held: deque[Event] | None = None
        self.held_seqs: deque[int] | None = None
        self.seen_until = 0
        self.held_bytes = 0

    def hold(self, event: Event, seq: int) -> None:
        """Hold what the message `seq` brought."""
        if self.held is None or self.held_seqs is None:
            self.held, self.held_seqs = deque(), deque()
        self.held.append(event)
        self.held_seqs.append(seq)

    def drop_held(self) -> None:
        """Forget what is held."""
        self.held = self.held_seqs = None
        self.held_bytes = 0


class RiverStreams:
    """The streams that are open, and the names of some that were.

    Args:
        memory: How many names to remember.

    Attributes:
        by_number: Those that are open, in the order in which they were opened.
        by_name: The same, by their ids.
        finished: Ids for which what still comes is to be ignored.

    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self.by_number: dict[int, RiverStream] = {}
        self.by_name: dict[str, RiverStream] = {}
        self.finished: OrderedDict[str, None] = OrderedDict()
        self._last = 0

    def __len__(self) -> int:
        return len(self.by_number)

    def get(self, number: int) -> RiverStream | None:
        """Return the stream of that number."""
        return self.by_number.get(number)

    def named(self, name: str) -> RiverStream | None:
        """Return the stream of that id."""
        return self.by_name.get(name)

    def sending(self, number: int) -> RiverStream | None:
        """Return the stream of that number, if we may still send in it."""
        stream = self.by_number.get(number)
        return stream if stream is not None and stream.outbound == OPEN else None

    def open(self, name: str, encoded: bytes, kind: int, inbound: int, outbound: int) -> RiverStream:
        """Return a new stream."""
        self._last += 1
        number = self._last
        stream = RiverStream(number, name, encoded, kind, inbound, outbound)
        self.by_number[number] = self.by_name[name] = stream
        if self.finished:
            self.finished.pop(name, None)
        return stream

    def restore(self, number: int, name: str, encoded: bytes, kind: int, inbound: int, outbound: int) -> RiverStream:
        """Return a stream that an earlier process opened, and that its user knows by `number`."""
        last, self._last = self._last, number - 1
        stream = self.open(name, encoded, kind, inbound, outbound)
        self._last = max(last, number)
        return stream

    def close(self, stream: RiverStream) -> None:
        """Forget a stream."""
        self.by_number.pop(stream.number, None)
        if self.by_name.get(stream.name) is stream:
            del self.by_name[stream.name]

    def finish(self, name: str) -> None:
        """Remember that what still comes for that id is to be ignored (THREATS 61: not of endless many)."""
        self.finished[name] = None
        self.finished.move_to_end(name)
        if len(self.finished) > self._memory:
            self.finished.popitem(last=False)

    def all(self) -> list[RiverStream]:
        """Return the open streams, in the order in which they were opened."""
        return list(self.by_number.values())
