"""The common part of the sending halves: sends items within a burst."""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Any, Final

from ..errors import ApplicationError, CreditExceeded
from ..payload import MetadataPush, Payload, PayloadRun
from .exchanges import Exchanges
from .scheduler import QUANTUM, SLOW_SECONDS
from .sources import many_of

if TYPE_CHECKING:
    from ..wire.columns import RowBuffers, WidthRows

__all__ = ["Half"]

FRAME_BYTES: Final = 16
"""The approximate overhead of an item on the wire. An empty batch or pushed metadata, which needs no credit, costs as
much: otherwise a source could yield it for ever in one burst."""
LOOK_ITEMS: Final = 32
"""Items after which a burst looks at the clock, because its source may be slow. At its beginning it does so earlier."""


def _error_item(session: Any, error: Exception) -> Payload:
    """Return the item for an error that was yielded. Raise the error, which ends the stream, if there is none."""
    if session.item_errors is None or not isinstance(error, ApplicationError):
        raise error
    item: Payload = session.item_errors.payload_of(error)
    return item


class Half:
    """Sends one item, or many.

    Attributes:
        credit: Items that may be sent now.
        put: The session's `send`, which is called for each item.
        burst_left: Bytes that may be sent before other halves have their turn; negative: what was sent too much.
        given: The value of `burst_left` when this turn began.
        begun: When this turn began.
        items: Items that were sent in it.
        look: The number of items after which it looks at the clock.
        quantum: Bytes that each turn adds to it: less than `QUANTUM` if the source is slow.
        many: Items that were yielded together, to be sent from index `offset` on before any others.
        part_bytes: The approximate size of the parts of the first of these items that were sent.
        fragment_bytes: The size above which an item is sent in fragments or parts.
        context: The context in which the source runs.
        over: Nothing more is sent.

    """

    __slots__ = (
        "begun", "burst_left", "context", "credit", "exchanges", "flow", "fragment_bytes", "given", "held", "items",
        "lane", "look", "many", "name", "offset", "over", "part_bytes", "put", "quantum", "session", "source",
        "stream_id"
    )  # fmt: skip

    def __init__(
        self, exchanges: Exchanges, stream_id: int, credit: int, source: Any, name: str, context: Context
    ) -> None:
        self.exchanges = exchanges
        self.flow = exchanges.flow
        self.lane = exchanges.flow.lane
        self.session = exchanges.session
        self.put = exchanges.session.send
        self.stream_id = stream_id
        self.credit = credit
        self.source = source
        self.name = name
        self.context = context
        self.burst_left = self.given = self.held = self.items = 0
        self.look = 2
        self.begun = self.lane.scheduler.begun
        self.quantum = QUANTUM
        self.many: PayloadRun | RowBuffers | WidthRows | None = None
        self.offset = 0
        self.part_bytes = 0
        self.fragment_bytes = exchanges.flow.settings.fragment_bytes
        self.over = False

    def send(self, item: object) -> None:
        """Send an item, or a burst of many. There must be credit.

        Raises:
            StreamClosed: The peer has canceled; the event for it has not been handled yet.

        """
        if type(item) is Payload:
            payload = item
        elif type(item) is bytes or type(item) is str:
            payload = Payload(item)
        elif type(item) is MetadataPush:
            self.session.push(item.metadata, self.stream_id)
            self.burst_left -= len(item.metadata) + FRAME_BYTES
            return
        elif isinstance(item, Exception):
            payload = _error_item(self.session, item)
        else:
            self.many = many_of(item)
            if self.many is not None:
                self.send_many()
                return
            payload = Payload(item)  # type: ignore[arg-type]
        if len(payload.data) > self.fragment_bytes:
            # A large item is sent part by part, so that other streams get turns if the protocol allows it.
            self.many = PayloadRun.of((payload,))
            self.send_many()
            return
        try:
            self.credit = self.put(self.stream_id, payload)
            self.burst_left -= len(payload.data) + FRAME_BYTES
        except CreditExceeded:
            # Another stream has used what all streams of a River session share.
            self.many, self.credit = PayloadRun.of((payload,)), 0

    def send_many(self) -> None:
        """Send as much of `many` as credit allows; at most a chunk of a record batch."""
        session = self.session
        many = self.many
        assert many is not None
        count = len(many)
        if isinstance(many, PayloadRun):
            if many.size > QUANTUM and many.width:
                # A run of numbers may be large, so it is sent a chunk at a time, like a record batch.
                stop = min(self.offset + max(QUANTUM // max(many.width, FRAME_BYTES // 4), 1), count)
                sent = session.send_run(self.stream_id, many.part(self.offset, stop))
            else:
                sent = session.send_run(self.stream_id, many, self.offset)
            if sent:
                self.burst_left -= max(many.size * sent // count - self.part_bytes, 0)
                self.part_bytes = 0
            elif count and session.credit(self.stream_id) > 0:
                # A part of a large item. Without credit, nothing was sent.
                self.burst_left -= self.fragment_bytes
                self.part_bytes += self.fragment_bytes
        elif count:
            # Only a chunk is encoded, and sent while cached. Adding to the credit could overflow: it may be 2^63-1.
            stop = self.offset + min(self.credit, count - self.offset)
            run = many.run(self.offset, stop, QUANTUM, FRAME_BYTES)
            sent = session.send_run(self.stream_id, run)
            self.burst_left -= run.size
        else:
            sent = 0
        self.burst_left -= max(sent, 1) * FRAME_BYTES
        self.offset += sent
        if self.offset == count:
            self.many = None
            self.offset = 0
        elif self.burst_left > 0:
            # The next chunk is for the next turn.
            self.given -= self.burst_left
            self.burst_left = 0
        self.credit = session.credit(self.stream_id)

    def begin_turn(self) -> bool:
        """Add the quantum of a turn; return False if it only pays for what was sent before."""
        self.quantum = min(2 * self.quantum, QUANTUM)
        self.burst_left = self.given = min(self.burst_left, 0) + self.quantum
        self.items, self.look = 0, 2
        self.begun = self.lane.scheduler.begun
        return self.burst_left > 0

    def limit_burst(self) -> None:
        """Count an item, and end the burst if it has used its time."""
        self.items += 1
        if self.items == self.look:
            self.look += min(self.look, LOOK_ITEMS)
            if self.burst_left > 0 and self.lane.scheduler.clock() - self.begun > SLOW_SECONDS:
                self.given -= self.burst_left
                self.burst_left = 0

    def slow(self, seconds: float) -> None:
        """Make the next burst smaller, because this one took long."""
        self.quantum = max(int(self.given * SLOW_SECONDS / seconds) // 2, 1)
