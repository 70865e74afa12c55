"""Readers of a served journal that wait for the next request: each has already read the headers of its segments."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from ..errors import JournalError, JournalMismatch
from ..journal.ports import LogReader

__all__ = ["Readers"]

MAX_IDLE = 64


R = TypeVar("R", bound=LogReader)


class Readers(Generic[R]):
    """Lends the readers of a journal, one to each request at a time. May be used in any thread.

    Args:
        create: Returns a new reader of a log.

    """

    def __init__(self, create: Callable[[str], R]) -> None:
        self._create = create
        self._idle: OrderedDict[int, R] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def lend(self, source: str, uuid: str | None = None) -> Iterator[R]:
        """Lend a reader of a log, as it is now; `JournalMismatch` if it is not the one with this UUID.

        After an error it is not used again: it may remember data that was trimmed or repaired since.
        """
        reader = self._refreshed(source) or self._create(source)
        if uuid is not None and reader.uuid != uuid:
            raise JournalMismatch(
                f"source {source!r} is log {reader.uuid} now, not log {uuid}: it was removed and collected again; read "
                "that one from its beginning"
            )
        try:
            yield reader
        except GeneratorExit:
            # What was read with it is continued later, perhaps with another one.
            self._keep(reader)
            raise
        self._keep(reader)

    def _keep(self, reader: R) -> None:
        with self._lock:
            self._idle[id(reader)] = reader
            if len(self._idle) > MAX_IDLE:
                self._idle.popitem(last=False)

    def _refreshed(self, source: str) -> R | None:
        """Return an idle reader; None if there is none, or if it knows a log that has changed otherwise than it may."""
        reader = self._taken(source)
        if reader is not None:
            try:
                reader.refresh()
            except JournalError:
                return None
        return reader

    def _taken(self, source: str) -> R | None:
        with self._lock:
            found = next((key for key in reversed(self._idle) if self._idle[key].source == source), None)
            return None if found is None else self._idle.pop(found)
