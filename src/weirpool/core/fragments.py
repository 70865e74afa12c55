"""Fragmentation and reassembly of items that are larger than a frame.

RSocket 1.0, Fragmentation and Reassembly: metadata goes before data, and only the first frame has the type
of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ..account import Account
from ..errors import LimitExceeded
from ..payload import Payload
from ..settings import Settings

__all__ = ["Partial", "Reassembly", "fragments"]

FRAGMENT_OVERHEAD: Final = 64
"""Memory that a fragment takes in addition to its bytes. It is counted, so that tiny fragments are limited too."""


def fragments(payload: Payload, size: int) -> Iterator[tuple[bytes | None, bytes, bool]]:
    """Split `payload` into fragments of at most `size` bytes of metadata and data together.

    Yields:
        The fragment's metadata or None, its data, and whether more fragments follow.

    """
    metadata, data = payload.metadata, payload.data
    end = 0 if metadata is None else len(metadata)
    offset = 0
    while metadata is not None:
        part = metadata[offset : offset + size]
        offset += len(part)
        if offset == end:
            # The fragment with the end of the metadata may also have the beginning of the data.
            piece = data[: size - len(part)]
            yield part, piece, len(piece) < len(data)
            offset = len(piece)
            break
        yield part, b"", True
    while offset < len(data) or metadata is None:
        piece = data[offset : offset + size]
        offset += len(piece)
        yield None, piece, offset < len(data)
        if offset == len(data):
            break


class Partial:
    """An item that has not arrived completely.

    Attributes:
        head: The first frame, which is needed to deliver the whole item.
        started: When the first frame arrived.
        held: The memory that the fragments take, in bytes.
        metadata_size: The size of its metadata so far.

    """

    __slots__ = ("_data", "_empty", "_metadata", "count", "head", "held", "metadata_size", "size", "started")

    def __init__(self, head: Any, now: float) -> None:
        self.head = head
        self.started = now
        self.count = 0
        self.size = 0
        self.held = 0
        self.metadata_size = 0
        self._empty = 0
        self._metadata: list[bytes] | None = None
        self._data: list[bytes] = []

    def append(self, metadata: bytes | None, data: bytes, settings: Settings) -> None:
        """Add the next fragment.

        Raises:
            LimitExceeded: The item is larger, or its fragments are smaller, than `settings` allow.

        """
        size = len(data) + (0 if metadata is None else len(metadata))
        self.count += 1
        self.size += size
        self.held += size + FRAGMENT_OVERHEAD
        self._empty = 0 if size else self._empty + 1
        if metadata is not None:
            self._metadata = [] if self._metadata is None else self._metadata
            self._metadata.append(metadata)
            self.metadata_size += len(metadata)
        if data:
            self._data.append(data)
        if self.size > settings.max_payload_bytes:
            raise LimitExceeded(f"a fragmented item exceeds max_payload_bytes ({settings.max_payload_bytes})")
        if self.count > settings.max_fragments:
            raise LimitExceeded(f"an item has more than max_fragments ({settings.max_fragments}) fragments")
        if self._empty > settings.max_empty_fragments:
            raise LimitExceeded(
                f"an item has more than max_empty_fragments ({settings.max_empty_fragments}) empty fragments"
            )

    def payload(self) -> Payload:
        """Return the whole item."""
        return Payload(b"".join(self._data), None if self._metadata is None else b"".join(self._metadata))


class Reassembly:
    """All unfinished items of one connection, and the memory that they take.

    The limit of the process is here that of one connection. The ledger lets all of them share it: who holds most pays.

    Args:
        settings: Limits.
        account: The account of the connection.

    Attributes:
        partials: The items by stream, the oldest first.
        held: The memory that they take, in bytes.

    """

    __slots__ = ("_account", "_settings", "held", "partials")

    def __init__(self, settings: Settings, account: Account) -> None:
        self._account = account
        self._settings = settings
        self.partials: dict[int, Partial] = {}
        self.held = 0

    def __len__(self) -> int:
        return len(self.partials)

    def begin(self, stream_id: int, head: Any, metadata: bytes | None, data: bytes, now: float) -> None:
        """Add the first fragment of an item. Raises LimitExceeded as :meth:`add` does."""
        self.partials[stream_id] = Partial(head, now)
        self.add(stream_id, metadata, data)

    def add(self, stream_id: int, metadata: bytes | None, data: bytes) -> None:
        """Add the next fragment of an item that was started with `begin`.

        Raises:
            LimitExceeded: The item is too large. It is dropped.

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
        """Return the stream of the oldest unfinished item, and why it must be dropped; None if no limit is exceeded."""
        settings = self._settings
        if self.held > settings.max_reassembly_bytes:
            why = f"unfinished items hold more than max_reassembly_bytes ({settings.max_reassembly_bytes})"
        elif self.held > settings.max_process_reassembly_bytes:
            limit = settings.max_process_reassembly_bytes
            why = f"unfinished items of all connections hold more than max_process_reassembly_bytes ({limit})"
        else:
            return None
        return next(iter(self.partials)), LimitExceeded(why)

    def largest(self) -> int | None:
        """Return the stream of the largest unfinished item; None if there is none."""
        partials = self.partials
        return max(partials, key=lambda stream_id: partials[stream_id].held, default=None)

    def finish(self, stream_id: int) -> Partial:
        """Remove and return the item whose last fragment was added."""
        partial = self.partials.pop(stream_id)
        self._hold(-partial.held)
        return partial

    def drop(self, stream_id: int) -> None:
        """Remove the unfinished item of a stream, if there is one."""
        if stream_id in self.partials:
            self.finish(stream_id)

    def clear(self) -> None:
        """Remove all unfinished items."""
        self.partials.clear()
        self._hold(-self.held)

    def _hold(self, count: int) -> None:
        self.held += count
        self._account.book_incomplete(count)

    def restart(self, now: float) -> None:
        """Restart the timeouts of all unfinished items, because the peer could not continue them without a link."""
        for partial in self.partials.values():
            partial.started = now

    def deadline(self) -> float | None:
        """Return when the oldest unfinished item times out; None if there is none."""
        oldest = min((partial.started for partial in self.partials.values()), default=None)
        return None if oldest is None else oldest + self._settings.reassembly_timeout

    def overdue(self, now: float) -> list[int]:
        """Return the streams whose unfinished items have timed out."""
        limit = now - self._settings.reassembly_timeout
        return [stream_id for stream_id, partial in self.partials.items() if partial.started <= limit]
