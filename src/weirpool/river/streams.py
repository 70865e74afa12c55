"""The streams of a River session, by their names on the wire and by their numbers above the session."""

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
        number: Its id above the session.
        name: Its id on the wire.
        encoded: Its id on the wire, encoded.
        kind: A :class:`~weirpool.Kind` as a number.
        sends_items: Whether its client may send items after the first one.
        answers_items: Whether the server may send any number of items.
        inbound: The state of the peer's half, of :mod:`weirpool.core.halves`.
        outbound: The state of our half.
        reads_stopped: Whether a server's user stopped reading. River has no message for that, so items are dropped.
        granted: Items that its user has requested and not received.
        held: Items, and perhaps the end, that arrived before they were requested; None: there are none.
        held_seqs: The numbers of the messages with the events in `held`.
        opened_seq: On a client, the number of the message that opened it; -1 in a restored session.
        seen_until: In a restored session, the number of the first message that its user may not have seen.
        held_bytes: The size of `held`, with an allowance for each item.
        reports_errors: Whether errors between items are reported as items; otherwise they end the stream.

    """

    __slots__ = (
        "answers_items", "encoded", "granted", "held", "held_bytes", "held_seqs", "inbound", "kind", "name", "number",
        "opened_seq", "outbound", "reads_stopped", "reports_errors", "seen_until", "sends_items",
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
        self.reports_errors = False
        self.held: deque[Event] | None = None
        self.held_seqs: deque[int] | None = None
        self.opened_seq = -1
        self.seen_until = 0
        self.held_bytes = 0

    def hold(self, event: Event, seq: int) -> None:
        """Hold an event of the message `seq` until it is requested."""
        if self.held is None or self.held_seqs is None:
            self.held, self.held_seqs = deque(), deque()
        self.held.append(event)
        self.held_seqs.append(seq)

    def drop_held(self) -> None:
        """Drop the held events."""
        self.held = self.held_seqs = None
        self.held_bytes = 0


class RiverStreams:
    """The open streams, and the names of finished ones.

    Args:
        memory: The number of finished names to remember.

    Attributes:
        by_number: The open streams, in the order in which they were opened.
        by_name: The open streams, by name.
        finished: Names whose messages are ignored.

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
        """Return the open stream of that number."""
        return self.by_number.get(number)

    def named(self, name: str) -> RiverStream | None:
        """Return the open stream of that name."""
        return self.by_name.get(name)

    def sending(self, number: int) -> RiverStream | None:
        """Return the stream of that number if our half is open."""
        stream = self.by_number.get(number)
        return stream if stream is not None and stream.outbound == OPEN else None

    def open(self, name: str, encoded: bytes, kind: int, inbound: int, outbound: int) -> RiverStream:
        """Open a stream and return it."""
        self._last += 1
        number = self._last
        stream = RiverStream(number, name, encoded, kind, inbound, outbound)
        self.by_number[number] = self.by_name[name] = stream
        if self.finished:
            self.finished.pop(name, None)
        return stream

    def restore(self, number: int, name: str, encoded: bytes, kind: int, inbound: int, outbound: int) -> RiverStream:
        """Restore a stream that an earlier process opened, with its number, and return it."""
        last, self._last = self._last, number - 1
        stream = self.open(name, encoded, kind, inbound, outbound)
        self._last = max(last, number)
        return stream

    def close(self, stream: RiverStream) -> None:
        """Remove a stream."""
        self.by_number.pop(stream.number, None)
        if self.by_name.get(stream.name) is stream:
            del self.by_name[stream.name]

    def finish(self, name: str) -> None:
        """Ignore later messages of that name. The oldest names are forgotten beyond `memory` (THREATS 61)."""
        self.finished[name] = None
        self.finished.move_to_end(name)
        if len(self.finished) > self._memory:
            self.finished.popitem(last=False)

    def all(self) -> list[RiverStream]:
        """Return the open streams, in the order in which they were opened."""
        return list(self.by_number.values())
