"""A journal as a route: each subscriber gets history, then live items, at its own pace."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeVar

from ..aio.setup import current_connection
from ..errors import ApplicationError, DataLost, Invalid, JournalError, LocalError
from ..journal.counts import shown_number
from ..journal.gaps import Gap
from ..journal.journal import Journal
from ..journal.layout import check_name
from ..journal.ports import LogReader
from ..journal.since import first_since
from ..payload import Payload
from .items import gap_item, row_items
from .messages import LogState
from .readers import Readers
from .subscriptions import EARLIEST, NEW, Subscription
from .watch import Watch

__all__ = ["JournalFeed"]

logger = logging.getLogger("penstock.serving")

THREADS: Final = 4
CHUNK_ROWS: Final = 8_192
"""Rows to read at once: what a subscriber holds besides its output, and how long it keeps a thread."""

NEW_ITEMS: Final = Subscription()

T = TypeVar("T")


class JournalFeed:
    """The handler of a stream of a journal's rows, for any number of subscribers.

    Args:
        path: The journal's folder.
        source: The log; None: the one that the subscriber names, or the only one.
        default: What a subscriber without a request gets.

    """

    def __init__(
        self, path: str | os.PathLike[str], source: str | None = None, default: Subscription = NEW_ITEMS
    ) -> None:
        if source is not None:
            check_name(source, "source")
        self._journal = Journal(path)
        self._source = source
        self._default = default
        self._readers = Readers(self._journal.reader)
        self._threads = ThreadPoolExecutor(THREADS, "penstock-feed")
        self._watch = Watch(self._journal, self._threads)

    async def __call__(self, request: Payload) -> AsyncIterator[Any]:
        """Yield the rows that a subscriber asks for."""
        asked = Subscription.parse(request.data) if request.data else self._default
        async with aclosing(self._watch.changes()) as changes:
            view = await self._in_thread(partial(self._begin, asked, await anext(changes)))
            view.annotated = bool(current_connection().metadata_mime)
            while True:
                while view.ready:
                    for item in await self._in_thread(partial(self._next, asked, view)):
                        yield item
                if view.complete:
                    return
                view.take(await anext(changes))

    def _begin(self, asked: Subscription, states: list[LogState]) -> _View:
        """Return the view of a subscriber at its start."""
        source = self._chosen(asked, states)
        with self._readers.lend(source) as reader:
            end = reader.end if asked.end == "now" else asked.end
            return _View(source, reader.uuid, _start(asked, reader), reader.end, end)

    def _chosen(self, asked: Subscription, states: list[LogState]) -> str:
        if self._source is not None:
            if asked.source not in (None, self._source):
                raise Invalid(message=f"this route has the source {self._source!r} alone")
            return self._source
        names = [state.source for state in states]
        if asked.source is None and len(names) == 1:
            return names[0]
        if asked.source not in names:
            raise Invalid(
                message=f'name a source with {{"source": …}}; there are: {", ".join(sorted(names)) or "none yet"}'
            )
        return asked.source

    def _next(self, asked: Subscription, view: _View) -> list[Any]:
        """Return the next items of a subscriber, and step behind them."""
        with self._readers.lend(view.source, view.uuid) as reader:
            if view.position < reader.first:
                return self._trimmed(asked, view, reader.first)
            stop = min(view.stop, view.position + CHUNK_ROWS)
            items: list[Any] = []
            if asked.tells_gaps:
                # Rows that a query has skipped are there for others.
                gaps = [gap for gap in reader.gaps(view.position, stop) if gap.query is None]
                items += [gap_item(asked, gap) for gap in gaps if gap.position == view.position]
                stop = min((gap.position for gap in gaps if gap.position > view.position), default=stop)
            try:
                batches = list(reader.read(view.position, stop))
            except DataLost:
                reader.refresh()
                if view.position >= reader.first:
                    raise
                return self._trimmed(asked, view, reader.first)
            # Loops end here when rows between are lost, and that was accepted.
            view.position = stop
        return items + [row_items(asked, batch, annotated=view.annotated) for batch in batches]

    def _trimmed(self, asked: Subscription, view: _View, first: int) -> list[Any]:
        """Return what a subscriber is told about rows that are gone, and step behind them."""
        lost = (view.position, first)
        if asked.loss == "fail":
            raise DataLost(f"positions {lost[0]} to {lost[1] - 1} are gone; start at {first} or later")
        view.position = first
        if not asked.tells_gaps:
            # It would be taken for an item.
            return []
        return [gap_item(asked, Gap(first, datetime.now(UTC), "trimmed before it was read", lost=lost))]

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of work that may wait for the disk. Subscribers are not told paths of this machine."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except JournalError as error:
            logger.warning("a subscriber of journal %s: %s", self._journal.path, error)
            text = str(error) if type(error) is DataLost else "these rows cannot be read; see the server's log"
            raise ApplicationError(message=f"{type(error).__name__}: {text}") from error
        except LocalError as error:
            raise Invalid(message=str(error)) from error


class _View:
    """How far a subscriber is."""

    def __init__(self, source: str, uuid: str, position: int, end: int, last: int | None) -> None:
        self.source = source
        self.uuid = uuid
        self.position = position
        self.annotated = True
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


def _start(asked: Subscription, reader: LogReader) -> int:
    if asked.start == NEW:
        return reader.end
    if asked.start == EARLIEST:
        return reader.first
    if not isinstance(asked.start, int):
        return first_since(reader, asked.since())
    if asked.start > reader.end:
        raise LocalError(
            f"there is no position {shown_number(asked.start)} to start at: the log of {reader.source!r} ends at "
            f"{reader.end}; start there, or at new for new items"
        )
    return asked.start
