"""Reads the rows that one subscriber of a journal asks for: history, then what is appended."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from ..errors import ApplicationError, DataLost
from ..journal.gaps import Gap
from ..journal.ports import LogReader
from ..payload import Payload
from .items import gap_item, row_items
from .messages import LogState
from .paced import Chunk
from .readers import Readers
from .subscriptions import Subscription

__all__ = ["CHUNK_BYTES", "CHUNK_ROWS", "Subscriber", "View"]

CHUNK_ROWS: Final = 8_192
"""Rows to read at once: what a subscriber holds besides its output, and how long it keeps a thread."""
CHUNK_BYTES: Final = 1 << 21
"""The same in bytes, unless a single row is larger."""
SMALL_BYTES: Final = 1 << 18
"""What is passed on at once, also if its subscriber has requested fewer rows: it then holds that much at most."""


class View:
    """How far a subscriber is.

    Attributes:
        source: The log.
        uuid: Its UUID.
        position: The position after what was taken.
        told: How many gaps just before that position were taken.

    """

    def __init__(self, source: str, uuid: str, position: int, end: int, last: int | None) -> None:
        self.source = source
        self.uuid = uuid
        self.position = position
        self.told = 0
        self._end = end
        self._last = last

    @property
    def stop(self) -> int:
        """The end of the rows that it may read now."""
        return self._end if self._last is None else min(self._end, self._last)

    @property
    def ready(self) -> bool:
        """True if there are rows to read."""
        return self.position < self.stop

    @property
    def complete(self) -> bool:
        """True if it has everything that it asked for."""
        return self._last is not None and self.position >= self._last

    def take(self, states: list[LogState]) -> None:
        """Take note of changes; raise the error that makes the log unreadable."""
        for state in states:
            if state.source == self.source and state.trouble:
                raise ApplicationError(message=f"{state.trouble.partition(':')[0]}: the log is not readable any more")
            if state.source == self.source and state.uuid != self.uuid:
                raise ApplicationError(message="JournalMismatch: the log was removed, and collected again")
            if state.source == self.source:
                self._end = max(self._end, state.end)


@dataclass(slots=True)
class _Piece:
    """Items that were read: a payload, or the rows of a record batch with the position of each."""

    content: Any
    positions: pa.Array | None
    size: int
    """Their bytes."""
    after: int
    """The position after them."""
    told: int = 0
    """The gaps just before that position that were told then."""
    taken: int = 0
    """How many of the rows were taken."""

    @property
    def left(self) -> int:
        """The items that were not taken."""
        return 1 if self.positions is None else len(self.positions) - self.taken

    @property
    def held(self) -> int:
        """About their bytes."""
        return self.size if self.positions is None else self.size * self.left // len(self.positions)

    def take(self, count: int) -> Chunk:
        """Return about as many of the items: more if they are small, because each step costs as much as many rows."""
        if self.positions is None:
            return Chunk(self.content, 1, self.size)
        rows = len(self.positions)
        count = min(max(count, rows * SMALL_BYTES // max(self.size, 1)), self.left)
        items = self.content if count == rows else self.content.slice(self.taken, count)
        self.taken += count
        return Chunk(items, count, self.size * count // rows)


class Subscriber:
    """A :class:`weirpool.serving.paced.Reading` of a log's rows, in the form that its subscriber asks for.

    Args:
        asked: The request.
        changes: The states of all logs, then their changes.
        begin: Returns the view of the subscriber for these states; called in a thread.
        readers: Lends readers.
        in_thread: Returns the result of work that waits for the disk.
        annotated: Whether the connection has metadata.

    """

    def __init__(
        self,
        asked: Subscription,
        changes: AsyncGenerator[list[LogState], None],
        begin: Callable[[list[LogState]], View],
        readers: Readers[LogReader],
        in_thread: Callable[[Callable[[], Any]], Awaitable[Any]],
        *,
        annotated: bool,
    ) -> None:
        self._asked = asked
        self._changes = changes
        self._begin = begin
        self._readers = readers
        self._in_thread = in_thread
        self._annotated = annotated
        self._view: View | None = None
        # What was read and not taken.
        self._pieces: list[_Piece] = []

    @property
    def ready(self) -> bool:
        """True if there are rows to read."""
        return bool(self._pieces) or (self._view is not None and self._view.ready)

    @property
    def held(self) -> int:
        """Bytes that were read and not taken."""
        return sum(piece.held for piece in self._pieces)

    async def more(self) -> bool:
        """Wait for rows; return False if all that were asked for were taken."""
        if self._view is None:
            states = await anext(self._changes)
            self._view = await self._in_thread(lambda: self._begin(states))
        while not self._view.ready:
            if self._view.complete:
                return False
            self._view.take(await anext(self._changes))
        return True

    async def fill(self) -> None:
        """Read rows; nothing if those that were there are gone, and the subscriber wants the next ones."""
        if not self._pieces:
            self._pieces = await self._in_thread(self._fill)

    def take(self, count: int) -> Chunk | None:
        """Return the next items; None if nothing was read."""
        if not self._pieces:
            return None
        assert self._view is not None
        piece = self._pieces[0]
        chunk = piece.take(count)
        if piece.positions is not None and piece.left:
            self._view.position, self._view.told = piece.positions[piece.taken].as_py(), 0
        else:
            self._view.position, self._view.told = piece.after, piece.told
            del self._pieces[0]
        return chunk

    async def rest(self) -> None:
        """Forget what was read and not taken."""
        self._pieces = []

    async def close(self) -> None:
        """Follow the journal no more."""
        await self.rest()
        await self._changes.aclose()

    def _fill(self) -> list[_Piece]:
        """Return the next items; none if the view has advanced without any."""
        view, asked = self._view, self._asked
        assert view is not None
        with self._readers.lend(view.source, view.uuid) as reader:
            if view.position < reader.first:
                return self._trimmed(view, reader.first)
            stop = min(view.stop, view.position + CHUNK_ROWS)
            if asked.tells_gaps:
                # Rows that a query has skipped are there for others.
                gaps = [gap for gap in reader.gaps(view.position, stop) if gap.query is None]
                here = [gap for gap in gaps if gap.position == view.position][view.told :]
                if here:
                    numbered = enumerate(here, view.told + 1)
                    return [_gap(gap_item(asked, gap), view.position, told) for told, gap in numbered]
                stop = min((gap.position for gap in gaps if gap.position > view.position), default=stop)
            try:
                return self._rows(view, reader, stop)
            except DataLost:
                reader.refresh()
                if view.position >= reader.first:
                    raise
                return self._trimmed(view, reader.first)

    def _rows(self, view: View, reader: LogReader, stop: int) -> list[_Piece]:
        """Return the rows before a position, as far as they fit into a chunk."""
        pieces: list[_Piece] = []
        room = CHUNK_BYTES
        for batch in reader.read(view.position, stop):
            rows, size = batch, batch.nbytes
            if size > room:
                rows = _fitting(batch, size, room)
                size = rows.nbytes
            if not rows.num_rows:
                return pieces
            pieces.append(self._piece(rows, size))
            room -= size
            if rows.num_rows < batch.num_rows:
                return pieces
        if pieces:
            # Rows between are lost, and that was accepted.
            pieces[-1].after = stop
        else:
            view.position, view.told = stop, 0
        return pieces

    def _piece(self, rows: pa.RecordBatch, size: int) -> _Piece:
        positions = rows.column("position")
        after = positions[-1].as_py() + 1
        items = row_items(self._asked, rows, annotated=self._annotated)
        if isinstance(items, pa.RecordBatch):
            return _Piece(items, positions, items.nbytes if self._asked.form == "json" else size, after)
        return _Piece(items, None, len(items.data), after)

    def _trimmed(self, view: View, first: int) -> list[_Piece]:
        """Return what a subscriber is told about rows that are gone."""
        lost = (view.position, first)
        if self._asked.loss == "fail":
            raise DataLost(f"positions {lost[0]} to {lost[1] - 1} are gone; start at {first} or later")
        if not self._asked.tells_gaps:
            # It would be taken for an item.
            view.position, view.told = first, 0
            return []
        gap = Gap(first, datetime.now(UTC), "trimmed before it was read", lost=lost)
        return [_gap(gap_item(self._asked, gap), first)]


def _gap(item: Payload, after: int, told: int = 0) -> _Piece:
    return _Piece(item, None, len(item.data) + len(item.metadata or b""), after, told)


def _fitting(batch: pa.RecordBatch, size: int, room: int) -> pa.RecordBatch:
    """Return the first rows of a batch that have at most so many bytes; at least one if there is room for a chunk."""
    count = batch.num_rows * max(room, 0) // size
    while count and batch.slice(0, count).nbytes > room:
        count //= 2
    return batch.slice(0, max(count, 1 if room == CHUNK_BYTES else 0))
