"""Unreadable logs: which of them end a query, which it waits for, and which it continues without."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Final, TypeVar

from ..errors import DataLost, JournalCorrupt, JournalError, JournalLocked, JournalMismatch, JournalMissing
from ..journal.ports import Refused
from .options import SourceOptions
from .view import JournalView

__all__ = ["Troubles", "is_temporary"]

logger = logging.getLogger("weirpool.spark")

_LASTING: Final = (JournalCorrupt, JournalMismatch, DataLost)
_DAMAGE: Final = (JournalCorrupt, DataLost)
RETRY: Final = 0.2
"""Seconds between checks of a log that a planned micro-batch needs."""
_JOURNAL: Final = ""
"""Represents the journal itself among names of sources."""
_WAIT: Final = "/"
"""Represents whatever does not respond, among names of sources."""

T = TypeVar("T")


def is_temporary(error: JournalError) -> bool:
    """Return True if the same work may succeed later: a disk or network does not respond, or a disk is full."""
    return not isinstance(error, (*_LASTING, JournalMissing, JournalLocked, Refused))


class Troubles:
    """Reads a journal for a query, and decides about each problem.

    * The query waits for a disk or network that does not respond.
    * It waits for a journal or source that does not exist for `journalTimeout`, because it may be mounted or collected
      soon; if it existed before, not at all. With the option `url` the query's own collector creates it, unless the
      checkpoint has it.
    * It waits without limit for a source whose collector has no row yet.
    * Damage, and problems that last too long, end the query. With ``failOnDataLoss=false`` it continues without damaged
      logs, as long as there are others; never without logs that cannot be seen.

    Each problem is logged once.
    """

    def __init__(self, options: SourceOptions, view: JournalView, clock: Callable[[], float] = time.monotonic) -> None:
        self._options = options
        self._view = view
        self._clock = clock
        self._since: dict[str, float] = {}
        self._warned: dict[str, str] = {}

    def refresh(self, *, bounded: bool = False) -> bool:
        """Update the view of the journal; return whether it responded. A journal that does not exist has no readers.

        A `JournalError` ends the query; a bounded one never waits, because it would treat that as the end of the data.
        """
        try:
            self._view.refresh()
        except JournalMissing as error:
            if self._fatal(_JOURNAL, error, bounded, seen=bool(self._view.seen)):
                raise
            return True
        except JournalError as error:
            if self._fatal(_JOURNAL, error, bounded, seen=False):
                raise
            return False
        self._since.pop(_JOURNAL, None)
        troubles = self._view.troubles
        for name in (self._warned.keys() | self._since.keys()) & self._view.readers.keys():
            self._warned.pop(name, None)
            self._since.pop(name, None)
        for source, trouble in troubles.items():
            if self._fatal(source, trouble, bounded, seen=source in self._view.seen):
                self._continue_without(source, trouble)
        self._await_first_rows(bounded)
        return True

    def insist(self, work: Callable[[], T], *, bounded: bool = False) -> T:
        """Return the result of work, which is repeated while a disk or network does not respond.

        If it is bounded, not for longer than `journalTimeout`.
        """
        deadline = self._clock() + self._options.journal_timeout
        while True:
            try:
                result = work()
            except JournalError as error:
                if not is_temporary(error) or (bounded and self._clock() >= deadline):
                    raise
                self.wait_for(error)
                time.sleep(RETRY)
            else:
                self.responds()
                return result

    def wait_until_readable(self, sources: Collection[str]) -> None:
        """Read the journal until all sources of a planned micro-batch exist; see `insist`.

        Damage, and a source that is missing for too long, raise the error that ends the query.
        """
        deadline = self._clock() + self._options.journal_timeout
        while (not self.refresh() and sources) or not self._view.readers.keys() >= set(sources):
            try:
                for source in sorted(sources):
                    self._view.reader(source)
            except JournalMissing:
                if self._clock() >= deadline:
                    raise
            time.sleep(RETRY)

    def _await_first_rows(self, bounded: bool) -> None:
        """Report sources without rows, if nothing else is read."""
        named = self._options.sources is not None
        if not self._view.awaited or (self._view.readers and not named) or self._options.url is not None:
            self._warned.pop(_JOURNAL, None)
            return
        text = (
            f"journal {self._options.journal} has no rows of {', '.join(sorted(self._view.awaited))} yet: the "
            "collector has received none"
        )
        if bounded:
            raise JournalMissing(f"{text}; try again later, or check the collector's log")
        self._warn_once(_JOURNAL, f"{text}; the query waits")

    def wait_for(self, error: JournalError) -> None:
        """Report once that the query waits for a disk or network."""
        self._warn_once(_WAIT, f"{error}; the query waits")

    def responds(self) -> None:
        """Note that all disks and networks respond: the next time that one does not is reported again."""
        self._warned.pop(_WAIT, None)

    def skip_gaps(self, source: str, error: JournalError, *, bounded: bool = False) -> None:
        """Raise the error about the gaps of a source, or report once that the query continues without it."""
        passes = is_temporary(error) and not bounded
        skipped = isinstance(error, _DAMAGE) and not self._options.fail_on_data_loss and len(self._view.readers) > 1
        if not passes and not skipped:
            raise error
        # The slash keeps `refresh` from clearing this, so it is reported only once per query.
        self._warn_once(f"{source}/gaps", f"the query continues without source {source!r}: {error}")

    def _fatal(self, name: str, error: JournalError, bounded: bool, seen: bool) -> bool:
        """Return True if waiting for a problem is useless, or has taken too long."""
        if bounded or isinstance(error, _LASTING):
            return True
        if not isinstance(error, JournalMissing):
            self._warn_once(name, f"{error}; the query waits")
            return False
        if seen:
            return True
        if self._options.url is not None and not self._view.expected:
            return False
        now, timeout = self._clock(), self._options.journal_timeout
        if now - self._since.setdefault(name, now) >= timeout:
            return True
        self._warn_once(name, f"{error}; the query waits {timeout:g} s for it (option journalTimeout)")
        return False

    def _continue_without(self, source: str, error: JournalError) -> None:
        # THREATS 99: data that cannot be seen from here is not lost.
        if self._options.fail_on_data_loss or not self._view.readers or not isinstance(error, _DAMAGE):
            raise error
        self._warn_once(source, f"the query continues without source {source!r}: {error}")

    def _warn_once(self, name: str, text: str) -> None:
        if text not in self._warned.values():
            logger.warning("%s", text)
        self._warned[name] = text
