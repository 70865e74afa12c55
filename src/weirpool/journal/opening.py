"""Opening a log for reading, wherever it is: all that Spark's workers need of a journal."""

from __future__ import annotations

import os

from .layout import is_served
from .ports import LogReader
from .served import served_journal

__all__ = ["open_log"]


def open_log(journal: str | os.PathLike[str], source: str) -> LogReader:
    """Return a reader of a log, with its sealed segments; see `Journal.reader`.

    Raises:
        JournalMissing: There is no such log, or it cannot be seen from this machine.
        JournalCorrupt: The end of the log is unknown.
        JournalError: The log cannot be reached.

    """
    path = os.fspath(journal)
    if is_served(path):
        return served_journal(path).reader(source)
    from ..archive.reader import ArchiveReader

    return ArchiveReader(path, source)
