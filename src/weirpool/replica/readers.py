"""The readers of a group's logs: what they record on the owner's machine goes into bundles, and to its successor."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Final

from ..errors import JournalCorrupt, JournalError
from ..journal import asks, retention
from ..journal.layout import is_source, log_folder
from ..journal.retention import MAX_CURSORS, Committed
from .bundle import MAX_POSITION, Cursor, Part

__all__ = ["ReadersThread", "cursors", "restore_readers"]

logger = logging.getLogger("weirpool.replica")

LOOK_SECONDS: Final = 0.1
"""Seconds between two looks at one folder of a disk, however many logs there are."""
CLOSE_SECONDS: Final = 1.0
"""How long the last positions may take at the end: without them, a successor keeps some more rows."""


def cursors(folder: Path, uuid: str) -> dict[str, Cursor]:
    """Return the readers of a log as bundles have them, by the names of their cursors.

    A damaged cursor holds all rows, as long as nobody knows which ones its reader needs. `JournalError` is raised if
    the disk fails, or there are too many.
    """
    found = {}
    for name, recorded in retention.cursors_of(folder).items():
        if not retention.is_cursor(name) or (recorded is not None and recorded.log != uuid):
            continue
        if recorded is None or (recorded.query is not None and not is_source(recorded.query)):
            found[name] = Cursor(0, None, None)
        else:
            found[name] = Cursor(min(recorded.position, MAX_POSITION), recorded.query, recorded.time)
    if len(found) > MAX_CURSORS:
        raise JournalError(f"{folder}: the log has {len(found)} readers; drop some with `weirpool journal forget`")
    return found


def restore_readers(folder: Path, part: Part) -> None:
    """Give a log on this machine the readers that its group has, and no others.

    Raises:
        JournalCorrupt: The bundles do not say which readers there are, which is not the same as none.
        JournalError: The disk failed.

    """
    if part.readers is None:
        raise JournalCorrupt(f"the bundles do not say which readers log {part.source!r} has; restore them from a copy")
    known = {
        # A position that is too high would keep the log from being opened.
        name: Committed(min(cursor.position, part.end), cursor.query, part.uuid, cursor.time)
        for name, cursor in part.readers.items()
    }
    retention.restore(folder, known)


class ReadersThread:
    """A thread that puts the readers of logs into bundles when they have changed, and answers those who wait for it.

    Args:
        journal: The journal's folder, which `weirpool.journal.asks.prepare` has prepared.
        record: Puts the readers of a log, given its source and folder, into the next bundle; the result is set when
            that is in the store. None: the group does not have the log.

    """

    def __init__(self, journal: Path, record: Callable[[str, Path], Future[None] | None]) -> None:
        self._journal = journal
        self._record = record
        self._problem = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weirpool-readers", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Record the last changes, and end. A disk or store that does not answer is not waited for."""
        self._stop.set()
        self._thread.join(CLOSE_SECONDS)

    def _run(self) -> None:
        last = False
        while not last:
            last = self._stop.wait(LOOK_SECONDS)
            try:
                self._look()
            except JournalError as error:
                # What was not recorded is not answered, and is looked at again.
                self._warn(error)

    def _look(self) -> None:
        waiting = []
        for source, files in asks.asked(self._journal).items():
            folder = log_folder(self._journal, source)
            try:
                waiting.append((self._record(source, folder), files))
            except JournalError as error:
                self._warn(error)
                asks.advanced(folder)
        for done, files in waiting:
            if done is not None and done.exception() is not None:
                # The group is given up or lost. Nobody answers, and those who wait are told so.
                self._stop.set()
                return
            for file in files:
                with suppress(OSError):
                    file.unlink()

    def _warn(self, error: JournalError) -> None:
        if self._problem != str(error):
            self._problem = str(error)
            logger.warning("what readers record cannot be stored: %s", error)
