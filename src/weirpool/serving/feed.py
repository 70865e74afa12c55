"""A journal as a route: each subscriber gets history, then live items, at its own pace."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Final, TypeVar

from ..aio.setup import current_connection
from ..aio.shares import client_of
from ..errors import ApplicationError, DataLost, Invalid, JournalError, JournalUnavailable, LocalError, Rejected
from ..journal.counts import shown_number
from ..journal.journal import Journal
from ..journal.layout import check_name
from ..journal.ports import LogReader
from ..journal.since import first_since
from ..payload import Payload
from .capacity import Capacity
from .messages import LogState
from .paced import Paced
from .readers import Readers
from .subscriber import Subscriber, View
from .subscriptions import EARLIEST, NEW, Subscription
from .watch import Watch

__all__ = ["JournalFeed"]

logger = logging.getLogger("weirpool.serving")

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
        self._capacity = Capacity()
        self._watch = Watch(self._journal, self._capacity.threads)

    def __call__(self, request: Payload) -> Paced:
        """Return the rows that a subscriber asks for, which are read as its credit allows."""
        asked = Subscription.parse(request.data) if request.data else self._default
        connection = current_connection()
        subscriber = Subscriber(
            asked,
            self._watch.changes(),
            lambda states: self._begin(asked, states),
            self._readers,
            self._in_thread,
            annotated=bool(connection.metadata_mime),
        )
        return Paced(subscriber, self._capacity.reads, connection)

    def _begin(self, asked: Subscription, states: list[LogState]) -> View:
        """Return the view of a subscriber at its start."""
        source = self._chosen(asked, states)
        with self._readers.lend(source) as reader:
            end = reader.end if asked.end == "now" else asked.end
            return View(source, reader.uuid, _start(asked, reader), reader.end, end)

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

    async def _in_thread(self, work: Callable[[], T]) -> T:
        """Return the result of work that may wait for the disk. Subscribers are not told paths of this machine."""
        try:
            return await self._capacity.in_thread(client_of(current_connection()), work)
        except JournalUnavailable as error:
            logger.warning("a subscriber of journal %s: %s", self._journal.path, error)
            raise Rejected(message="these rows cannot be read at the moment; try again later") from error
        except JournalError as error:
            logger.warning("a subscriber of journal %s: %s", self._journal.path, error)
            text = str(error) if type(error) is DataLost else "these rows cannot be read; see the server's log"
            raise ApplicationError(message=f"{type(error).__name__}: {text}") from error
        except LocalError as error:
            raise Invalid(message=str(error)) from error


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
