"""Items that are larger than a frame: cutting them, and putting them together again.

RSocket 1.0, Fragmentation and Reassembly: metadata goes before data, and only the first frame says what
the fragments are of.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..errors import LimitExceeded
from ..payload import Payload
from ..settings import Settings

__all__ = ["PROCESS", "Budget", "Partial", "Reassembly", "fragments"]

FRAGMENT_OVERHEAD: Final = 64
"""What one fragment costs us to hold beyond its bytes: it counts, so that tiny fragments cannot slip by."""


def fragments(payload: Payload, size: int) -> Iterator[tuple[bytes | None, bytes, bool]]:
    """Cut `payload` into fragments of at most `size` bytes of metadata and data together.

    Yields:
        The metadata of the fragment or None, its data, and whether more fragments follow.

    """
    metadata, data = payload.metadata, payload.data
    end = 0 if metadata is None else len(metadata)
    at = 0
    while metadata is not None:
        part = metadata[at : at + size]
        at += len(part)
        if at == end:
            # The fragment that ends the metadata may begin the data.
            piece = data[: size - len(part)]
            yield part, piece, len(piece) < len(data)
            at = len(piece)
            break
        yield part, b"", True
    while at < len(data) or metadata is None:
        piece = data[at : at + size]
        at += len(piece)
        yield None, piece, at < len(data)
        if at == len(data):
            break


class Partial:
    """An item of which not all fragments have arrived.

    Attributes:
        head: The frame that began it, for whoever delivers the whole.
        started: When that was.

    """

    __slots__ = ("_data", "_empty", "_metadata", "count", "head", "held", "size", "started")

    def __init__(self, head: Any, now: float) -> None:
        self.head = head
        self.started = now
        self.count = 0
        self.size = 0
        self.held = 0
        self._empty = 0
        self._metadata: list[bytes] | None = None
        self._data: list[bytes] = []

    def append(self, metadata: bytes | None, data: bytes, settings: Settings) -> None:
        """Add the next fragment.

        Raises:
            LimitExceeded: The item is larger, or cut smaller, than `settings` allow.

        """
        size = len(data) + (0 if metadata is None else len(metadata))
        self.count += 1
        self.size += size
        self.held += size + FRAGMENT_OVERHEAD
        self._empty = 0 if size else self._empty + 1
        if metadata is not None:
            self._metadata = [] if self._metadata is None else self._metadata
            self._metadata.append(metadata)
        if data:
            self._data.append(data)
        if self.size > settings.max_payload_bytes:
            raise LimitExceeded(f"an item in fragments exceeds max_payload_bytes ({settings.max_payload_bytes})")
        if self.count > settings.max_fragments:
            raise LimitExceeded(f"an item has more than max_fragments ({settings.max_fragments}) fragments")
        if self._empty > settings.max_empty_fragments:
            raise LimitExceeded(
                f"more than max_empty_fragments ({settings.max_empty_fragments}) fragments held nothing"
            )

    def payload(self) -> Payload:
        """Return the whole item."""
        return Payload(b"".join(self._data), None if self._metadata is None else b"".join(self._metadata))


class Budget:
    """What all connections of a process hold together.

    Attributes:
        held: That, in bytes.

    """

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = 0


PROCESS: Final = Budget()
"""The unfinished items of this process."""


class Reassembly:
    """All unfinished items of one connection, and what they may hold together.

    Args:
        settings: Limits.
        budget: What this connection shares with others.

    Attributes:
        partials: The items, by stream, the oldest first.
        held: What they hold, in bytes.

    """

    __slots__ = ("_budget", "_settings", "held", "partials")

    def __init__(self, settings: Settings, budget: Budget = PROCESS) -> None:
        self._settings = settings
        self._budget = budget
        self.partials: dict[int, Partial] = {}
        self.held = 0

    def __del__(self) -> None:
        # A session that was dropped without a word has nothing left in the budget of all.
        self.clear()

    def __len__(self) -> int:
        return len(self.partials)

    def begin(self, stream_id: int, head: Any, metadata: bytes | None, data: bytes, now: float) -> None:
        """Take the first fragment of an item. Raises LimitExceeded as :meth:`add` does."""
        self.partials[stream_id] = Partial(head, now)
        self.add(stream_id, metadata, data)

    def add(self, stream_id: int, metadata: bytes | None, data: bytes) -> None:
        """Take a further fragment of the item that `begin` began.

        Raises:
            LimitExceeded: The item is too large; it is dropped.

        """
        partial = self.partials[stream_id]
        self._hold(-partial.held)
        try:
            partial.append(metadata, data, self._settings)
        except LimitExceeded:
            del self.partials[stream_id]
            raise
        self._hold(partial.held)

    def excess(self) -> tuple[int, LimitExceeded] | None:
        """Return the stream of the oldest unfinished item, and why it must be dropped; None where all is well."""
        settings = self._settings
        if self.held > settings.max_reassembly_bytes:
            why = f"unfinished items hold more than max_reassembly_bytes ({settings.max_reassembly_bytes})"
        elif self._budget.held > settings.max_process_reassembly_bytes and self.partials:
            limit = settings.max_process_reassembly_bytes
            why = f"unfinished items of all connections hold more than max_process_reassembly_bytes ({limit})"
        else:
            return None
        return next(iter(self.partials)), LimitExceeded(why)

    def finish(self, stream_id: int) -> Partial:
        """Return the item whose last fragment was added, and forget it."""
        partial = self.partials.pop(stream_id)
        self._hold(-partial.held)
        return partial

    def drop(self, stream_id: int) -> None:
        """Forget the unfinished item of a stream, if there is one."""
        if stream_id in self.partials:
            self.finish(stream_id)

    def clear(self) -> None:
        """Forget all unfinished items."""
        self.partials.clear()
        self._hold(-self.held)

    def _hold(self, count: int) -> None:
        self.held += count
        self._budget.held += count

    def restart(self, now: float) -> None:
        """Give all unfinished items their time anew: without a link nobody could go on with them."""
        for partial in self.partials.values():
            partial.started = now

    def deadline(self) -> float | None:
        """Return when the oldest unfinished item must be whole."""
        oldest = min((partial.started for partial in self.partials.values()), default=None)
        return None if oldest is None else oldest + self._settings.reassembly_timeout

    def overdue(self, now: float) -> list[int]:
        """Return the streams whose unfinished items have taken too long."""
        limit = now - self._settings.reassembly_timeout
        return [stream_id for stream_id, partial in self.partials.items() if partial.started <= limit]
