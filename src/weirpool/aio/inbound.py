"""The receiving half of a stream: items that have arrived and were not consumed, and the credit for more."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from ..account import Account
from ..errors import LimitExceeded
from ..payload import MetadataPush, Payload, PayloadRun
from .exchanges import Exchanges
from .sizes import size_of

if TYPE_CHECKING:
    from ..wire.columns import ColumnBuilder

__all__ = ["NEVER", "ReceiveBuffer"]

NEVER: Final = 1 << 62
"""A threshold that is never reached."""
GROW_SECONDS: Final = 0.1
"""A window may grow if half of it is consumed within this time. It then holds the items of 0.2 s, which covers any
round trip on earth."""
PINNED_BYTES: Final = 65_536
"""A run whose buffer is smaller is not copied when it waits, because a read of this size costs little memory."""
PINNED_RATIO: Final = 16
"""The size of a buffer, in sizes of the run in it, above which the run is copied when it waits."""
PUSH_OVERHEAD: Final = 64
"""Bytes of memory for pushed metadata beyond its content."""


class ReceiveBuffer:
    """Buffers at most a window of items between dispatch and the stream's consumers.

    If several tasks consume a stream, each item goes to one of them.

    The peer may send `window` items. Consumed items are requested again, half a window at a time, so that the peer
    does not have to stop and no item costs a frame of its own. The window grows while the consumer is fast and the
    window holds few bytes. If items are so large that a window does not fit into the stream's limit, fewer are
    requested. No more than `allowed` items are ever requested, which a bridge raises as its other side requests them.

    Attributes:
        account: The bytes of items that were not consumed.
        expected: Items that were requested and have not arrived.
        deferred: Items that may be requested when the account has room, and they are allowed.
        allowed: Items that may be requested, counted from the first.
        requested: Items that were requested, counted from the first.
        window: Items that the peer may send before more are requested.
        min_window: The initial window: the demand with which the stream was opened.
        max_window: The maximum window.
        threshold: Consumed items after which more are requested; NEVER if the consumer requests items itself.
        consumed: Items that were consumed and not requested again yet.
        began: At least one item was consumed.
        received_bytes: Bytes that have arrived since the last request for more items.
        requested_at: The time of that request.
        ready: An iterator over the next items as single objects, which keeps its position.
        ready_count: The number of items that `ready` started with.
        ready_bytes: The bytes of these items in the account.
        pending: Later items, in order of arrival.
        offset: Items of the first pending run that are in `ready`.
        builder: While a consumer waits for rows, items are appended to it on arrival and count as consumed. They
            are then still in the processor's cache, and the next read can reuse their memory.
        on_push: Called with metadata that was pushed between the items, in order; None ignores it.
        pushed: Bytes of such metadata that waits.
        over: No more items will arrive.
        refused: The peer has refused the stream for the time being.
        error: The error that ended the stream; None if it completed.

    """

    __slots__ = (
        "__weakref__", "_items", "account", "allowed", "began", "builder", "consumed", "deferred", "error", "exchanges",
        "expected", "flow", "max_bytes", "max_rows", "max_window", "min_window", "offset", "on_push", "over", "pending",
        "pushed", "ready", "ready_bytes", "ready_count", "received_bytes", "refused", "requested", "requested_at",
        "stream_id", "threshold", "waiters", "window"
    )  # fmt: skip

    def __init__(
        self, exchanges: Exchanges, stream_id: int, window: int, max_window: int, manual: bool, allowed: int = NEVER
    ) -> None:
        self.exchanges = exchanges
        self.flow = exchanges.flow
        self.account = Account(self.flow.settings.max_stream_bytes, self.flow.account)
        self.stream_id = stream_id
        self.window = window
        self.min_window = window
        self.max_window = max_window
        self.threshold = NEVER if manual else (window + 1) // 2
        self.consumed = 0
        self.began = False
        self.allowed = allowed
        self.requested = self.expected = min(window, allowed)
        self.deferred = window - self.expected
        self.received_bytes = 0
        self.requested_at: float = self.flow.loop.time()
        # The items that `ready` iterates over.
        self._items: list[Payload] = []
        self.ready: Iterator[Payload] = iter(())
        self.ready_count = 0
        self.ready_bytes = 0
        self.offset = 0
        self.pending: list[Payload | PayloadRun | MetadataPush] = []
        self.on_push: Callable[[bytes], None] | None = None
        self.pushed = 0
        self.builder: ColumnBuilder | None = None
        self.max_rows = self.max_bytes = 0
        self.over = self.refused = False
        self.error: Exception | None = None
        # Of consumers that wait for items: one, unless several tasks consume the stream.
        self.waiters: list[Future[None]] = []

    # For dispatch.

    def item(self, payload: Payload) -> None:
        """Receive an item."""
        size = size_of(payload)
        self.received_bytes += len(payload.data)
        self.expected -= 1
        if size > self.account.largest:
            self.account.largest = size
        builder = self.builder
        if builder is not None and not self.pending and self.has_room(builder, 1):
            builder.append_payload(payload)
            self.consume(1)
        else:
            self.pending.append(payload)
            self.account.book(size)
        if self.waiters:
            self.wake_consumers()

    def run(self, run: PayloadRun) -> None:
        """Receive a run of items."""
        size = run.size
        count = len(run)
        self.received_bytes += size
        self.expected -= count
        if size > self.account.largest * count:
            # The mean is enough: it only predicts how much a window holds.
            self.account.largest = size // count
        builder = self.builder
        if builder is not None and not self.pending and self.has_room(builder, count):
            builder.append(run)
            self.consume(count)
        else:
            if PINNED_BYTES <= len(run.buffer) > PINNED_RATIO * size:
                # It would keep all that was read with it.
                run = PayloadRun.of(run.payloads())
            self.pending.append(run)
            self.account.book(size_of(run))
        if self.waiters:
            self.wake_consumers()

    def push(self, metadata: bytes) -> None:
        """Receive pushed metadata, in order with the items."""
        if self.on_push is None or self.over:
            return
        # Credit does not apply to pushed metadata, so all that waits shares the limit for the metadata of one item.
        self.pushed += len(metadata) + PUSH_OVERHEAD
        limit = self.flow.settings.max_metadata_bytes
        if self.pushed > limit:
            why = f"stream {self.stream_id}: waiting pushed metadata exceeds max_metadata_bytes ({limit})"
            self.ended(LimitExceeded(f"{why}; consume items faster"))
            self.exchanges.cancel_stream(self.stream_id)
            return
        entry = MetadataPush(metadata)
        self.pending.append(entry)
        self.account.book(size_of(entry))
        self.wake_consumers()

    def ended(self, error: Exception | None) -> None:
        """Mark the stream as finished."""
        if not self.over:
            self.over = True
            self.error = error
            if self.account.held:
                self.exchanges.ended_unread(self)
            self.wake_consumers()

    def discard(self, error: Exception) -> None:
        """Drop all items that were not consumed, and end the stream with `error`."""
        self.over = True
        self.error = error
        self.pending.clear()
        # A consumer may be iterating over them.
        self._items.clear()
        self.ready_count = self.ready_bytes = self.offset = self.pushed = 0
        self.account.close()
        self.wake_consumers()

    def wake_consumers(self) -> None:
        """Wake all consumers; those that find no items wait again."""
        for waiter in self.waiters:
            if not waiter.done():
                waiter.set_result(None)
        self.waiters.clear()

    def has_room(self, builder: ColumnBuilder, count: int) -> bool:
        """Return True if `builder` may get `count` more rows."""
        return len(builder) + count <= self.max_rows and builder.size < self.max_bytes

    # For consumers.

    def arrival(self) -> Future[None]:
        """Return a future that is done when something has arrived, or the stream has ended."""
        waiter: Future[None] = self.flow.loop.create_future()
        if self.waiters:
            # Those of canceled consumers must not add up while no item arrives.
            self.waiters = [each for each in self.waiters if not each.done()]
        self.waiters.append(waiter)
        return waiter

    def consume(self, count: int) -> None:
        """Count `count` items as consumed; request as many once half a window is consumed."""
        self.consumed += count
        self.began = True
        if self.consumed >= self.threshold:
            self.request_more()
        elif self.deferred:
            self._request(0)

    def allow(self, total: int) -> None:
        """Allow `total` items to be requested, counted from the first."""
        self.allowed = total
        if self.deferred:
            self._request(0)

    def request_more(self) -> None:
        """Request as many items as were consumed, adjusted by the change of the window."""
        if not self.over:
            count = self.consumed
            if self.max_window > self.min_window:
                count += self._resize_window()
            self._request(count)
        self.consumed = 0

    def _request(self, count: int) -> None:
        """Request `count` items, and those that were deferred, if they are allowed and the account has room."""
        count += self.deferred
        self.deferred = 0
        if count <= 0 or self.over:
            return
        granted = min(count, self.allowed - self.requested)
        if granted > 0:
            granted = self.account.grantable(granted, self.expected)
        if granted > 0:
            count -= granted
            self.requested += granted
            self.expected += granted
            self.exchanges.request(self.stream_id, granted)
        self.deferred = count

    def _resize_window(self) -> int:
        """Let the window grow or shrink; return the difference in items."""
        now = self.flow.loop.time()
        quick = now - self.requested_at < GROW_SECONDS
        limit = self.flow.settings.max_credit_bytes
        before = self.window
        # The bytes of about half a window predict those of a whole one, and of one twice as large.
        if 2 * self.received_bytes > limit:
            self.window = max(self.min_window, before // 2)
        elif quick and 4 * self.received_bytes <= limit:
            self.window = min(2 * before, self.max_window)
        self.threshold = (self.window + 1) // 2
        self.requested_at = now
        self.received_bytes = 0
        return self.window - before

    def prepare(self) -> bool:
        """Count the items in `ready` as consumed, and move the next ones to it; return False if there are none.

        All items in `ready` must have been taken. It gets at most as many items as may be consumed before more must be
        requested.
        """
        if self.ready_count:
            count = self.ready_count
            self.ready_count = 0
            self._release_ready()
            self.consume(count)
        room = max(self.threshold - self.consumed, 1)
        items: list[Payload] = []
        taken = 0
        while room > 0 and taken < len(self.pending):
            entry = self.pending[taken]
            if type(entry) is PayloadRun:
                start = self.offset
                stop = min(len(entry), start + room)
                items.extend(entry.payloads(start, stop))
                room -= stop - start
                if stop < len(entry):
                    self.offset = stop
                    break
                self.offset = 0
                self.ready_bytes += size_of(entry)
            elif type(entry) is Payload:
                items.append(entry)
                room -= 1
                self.ready_bytes += size_of(entry)
            elif items:
                # It is delivered after these items are consumed.
                break
            else:
                self._pushed(entry)  # type: ignore[arg-type]
            taken += 1
        if taken:
            del self.pending[:taken]
        self._items = items
        self.ready = iter(items)
        self.ready_count = len(items)
        return self.ready_count > 0

    def _pushed(self, entry: MetadataPush) -> None:
        self.pushed -= len(entry.metadata) + PUSH_OVERHEAD
        self.account.release(size_of(entry))
        if self.on_push is not None:
            self.on_push(entry.metadata)

    def _release_ready(self) -> None:
        """Release the items in `ready`, which were consumed or are put back."""
        size = self.ready_bytes
        self.ready_bytes = 0
        self.account.release(size)

    def put_back(self, run: PayloadRun | None = None) -> None:
        """Move the items in `ready` that were not consumed back to `pending`, after the consumed items of `run`."""
        items: list[Payload | PayloadRun | MetadataPush] = list(self.ready)
        used = self.ready_count - len(items)
        self.ready_count = 0
        self._release_ready()
        if self.offset:
            self._keep_rest(0, self.offset)
            self.offset = 0
        if run is not None:
            # They were requested again, so the next ones are requested later.
            items.insert(0, run)
            used -= len(run)
        for item in items:
            self.account.book(size_of(item))
        self.pending[:0] = items
        if used:
            self.consume(used)

    def _keep_rest(self, index: int, start: int) -> None:
        """Keep the items of a pending run from `start` on; the others were taken."""
        run = self.pending[index]
        assert type(run) is PayloadRun
        rest = run.part(start, len(run))
        self.account.release(size_of(run) - size_of(rest))
        self.pending[index] = rest

    def gather(self, builder: ColumnBuilder, max_rows: int, max_bytes: int) -> None:
        """Append items to `builder` on arrival. All earlier items must have been taken."""
        self.builder = builder
        self.max_rows = max_rows
        self.max_bytes = max_bytes

    def stop_gathering(self, builder: ColumnBuilder) -> None:
        """Stop appending items to `builder`, unless another consumer's builder has replaced it."""
        if self.builder is builder:
            self.builder = None

    def fill(self, builder: ColumnBuilder, max_rows: int, max_bytes: int) -> bool:
        """Move pending items to `builder`; return True if it is full or the next entry would overfill it."""
        if self.ready_count or self.offset:
            self.put_back()
        rows = before = len(builder)
        full = rows >= max_rows or builder.size >= max_bytes
        taken = 0
        while not full and taken < len(self.pending):
            entry = self.pending[taken]
            if type(entry) is PayloadRun:
                count = len(entry)
                if rows + count > max_rows:
                    full = True
                    if not rows:
                        builder.append(entry, 0, max_rows)
                        rows = max_rows
                        self._keep_rest(taken, max_rows)
                    break
                builder.append(entry)
                rows += count
                self.account.release(size_of(entry))
            elif type(entry) is Payload:
                builder.append_payload(entry)
                rows += 1
                self.account.release(size_of(entry))
            elif rows:
                # It is delivered after these items are consumed.
                full = True
                break
            else:
                self._pushed(entry)  # type: ignore[arg-type]
            taken += 1
            full = rows >= max_rows or builder.size >= max_bytes
        if taken:
            del self.pending[:taken]
        if rows > before:
            self.consume(rows - before)
        return full
