"""The streams of a River session: by the names that they have on the wire, and by the numbers that users know."""

from __future__ import annotations

from collections import OrderedDict, deque

from ..core.halves import DONE, OPEN
from ..events import Event
from ..kinds import Kind

__all__ = ["RiverStream", "RiverStreams"]


class RiverStream:
    """One procedure stream.

    Attributes:
        number: What users call it.
        name: Its id on the wire.
        kind: What travels each way.
        inbound: The state of the half in which the peer sends, of :mod:`penstock.core.halves`.
        outbound: The state of the half in which we send.
        deaf: Its user reads no more, of which River has no way to tell the peer: what comes is dropped.
        granted: Items that its user asked for, and that have not come.
        held: What came before anybody asked for it: items, and then the end.
        held_seqs: The numbers of the messages that brought it.
        heard: The number of the first message that its user may not have seen, in a session that was taken over.
        octets: Bytes of `held`.

    """

    __slots__ = (
        "deaf",
        "granted",
        "heard",
        "held",
        "held_seqs",
        "inbound",
        "kind",
        "name",
        "number",
        "octets",
        "outbound",
    )

    def __init__(self, number: int, name: str, kind: Kind, inbound: int, outbound: int) -> None:
        self.number = number
        self.name = name
        self.kind = kind
        self.inbound = inbound
        self.outbound = outbound
        self.granted = 0
        self.deaf = False
        self.held: deque[Event] = deque()
        self.held_seqs: deque[int] = deque()
        self.heard = 0
        self.octets = 0

    @property
    def over(self) -> bool:
        """Whether both halves are done, and nothing waits to be asked for."""
        return self.inbound == DONE and self.outbound == DONE and not self.held


class RiverStreams:
    """The streams that are open, and the names of some that were.

    Args:
        memory: How many names to remember.

    """

    def __init__(self, memory: int) -> None:
        self._memory = memory
        self._by_number: dict[int, RiverStream] = {}
        self._by_name: dict[str, RiverStream] = {}
        self._finished: OrderedDict[str, None] = OrderedDict()
        self._last = 0

    def __len__(self) -> int:
        return len(self._by_number)

    def get(self, number: int) -> RiverStream | None:
        """Return the stream of that number."""
        return self._by_number.get(number)

    def named(self, name: str) -> RiverStream | None:
        """Return the stream of that id."""
        return self._by_name.get(name)

    def sending(self, number: int) -> RiverStream | None:
        """Return the stream of that number, if we may still send in it."""
        stream = self._by_number.get(number)
        return stream if stream is not None and stream.outbound == OPEN else None

    def open(self, name: str, kind: Kind, inbound: int, outbound: int) -> RiverStream:
        """Return a new stream."""
        self._last += 1
        stream = RiverStream(self._last, name, kind, inbound, outbound)
        self._by_number[stream.number] = self._by_name[name] = stream
        self._finished.pop(name, None)
        return stream

    def restore(self, number: int, name: str, kind: Kind, inbound: int, outbound: int) -> RiverStream:
        """Return a stream that an earlier process opened, and that its user knows by `number`."""
        last, self._last = self._last, number - 1
        stream = self.open(name, kind, inbound, outbound)
        self._last = max(last, number)
        return stream

    def close(self, stream: RiverStream) -> None:
        """Forget a stream."""
        self._by_number.pop(stream.number, None)
        if self._by_name.get(stream.name) is stream:
            del self._by_name[stream.name]

    def finish(self, name: str) -> None:
        """Remember that what still comes for that id is to be ignored (THREATS 61: not of endless many)."""
        self._finished[name] = None
        self._finished.move_to_end(name)
        if len(self._finished) > self._memory:
            self._finished.popitem(last=False)

    def is_finished(self, name: str) -> bool:
        """Whether what comes for that id is to be ignored."""
        return name in self._finished

    def all(self) -> list[RiverStream]:
        """Return the open streams, in the order in which they were opened."""
        return list(self._by_number.values())
