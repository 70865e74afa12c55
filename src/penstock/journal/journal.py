"""A journal: a folder of logs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .layout import log_folder
from .reader import JournalReader
from .repair import Repair, repair
from .retention import DEFAULT_READER, DEFAULT_RETAIN_BYTES, Committed, forget, readers, trim
from .storage import LogFolder, list_sources, resolve
from .verify import Report, verify
from .writer import JournalWriter

__all__ = ["Journal"]


class Journal:
    """A folder of logs, one per collector. It need not exist yet.

    Args:
        path: The folder; for reading also a URI that `pyarrow.fs.FileSystem.from_uri` supports.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __repr__(self) -> str:
        return f"Journal({self.path!r})"

    def sources(self) -> list[str]:
        """Return the names of the logs, in order.

        Raises:
            JournalMissing: There is no such folder, or it cannot be seen from this machine.
            JournalError: It cannot be listed.

        """
        return list_sources(*resolve(self.path))

    def is_awaited(self, source: str) -> bool:
        """Return True if the log `source` has a collector that has received nothing yet.

        Raises:
            JournalError: The journal cannot be reached.

        """
        return LogFolder.of(self.path, source).is_awaited()

    def reader(self, source: str) -> JournalReader:
        """Return a reader of the log `source`, one of :meth:`sources`; see `JournalReader`."""
        return JournalReader(self.path, source)

    def writer(self, source: str, **options: Any) -> JournalWriter:
        """Open or create a log for writing; close it after the last append.

        Args:
            source: Its name.
            options: Those of `JournalWriter.open`.

        """
        return JournalWriter.open(self.path, source, **options)

    def trim(
        self,
        source: str,
        position: int,
        *,
        reader: str = DEFAULT_READER,
        retain_rows: int = 0,
        retain_bytes: int = DEFAULT_RETAIN_BYTES,
    ) -> int:
        """Commit a reader's position in one log, and delete the segments that are no longer needed.

        See `penstock.journal.retention.trim`; returns the position of the first remaining row.
        """
        folder = log_folder(self.path, source)
        return trim(folder, position, reader=reader, retain_rows=retain_rows, retain_bytes=retain_bytes)

    def readers(self, source: str) -> list[str]:
        """Return the names of the readers that commit positions in the log `source`, in order."""
        return readers(log_folder(self.path, source))

    def forget(self, source: str, reader: str) -> dict[str, Committed | None]:
        """Remove a reader that will not return, so that it holds nothing back.

        Args:
            source: The log that it read.
            reader: Its name, as passed to `trim`.

        Returns:
            The content of each of its cursors, by the cursor's name, and None for a damaged one; empty if there is no
            such reader.

        """
        return forget(log_folder(self.path, source), reader)

    def repair(self, source: str, *, apply: bool = False, accept_loss: bool = False) -> Repair:
        """Find what a log needs to be readable and writable again, and do it with `apply`.

        See `penstock.journal.repair.repair`. No collector may write to the log meanwhile.
        """
        return repair(self.path, source, apply=apply, accept_loss=accept_loss)

    def verify(
        self, sources: Sequence[str] | None = None, against: str | os.PathLike[str] | None = None
    ) -> dict[str, Report]:
        """Read everything in some logs, and report damage.

        Args:
            sources: The names of the logs; None: all of them.
            against: Another journal with copies of these logs. Each is compared with its copy.

        Returns:
            A report of each log, by name.

        Raises:
            JournalMissing: There is no such journal, or it cannot be seen from this machine.
            JournalError: The journal cannot be reached.

        """
        names = self.sources() if sources is None else sources
        others = {source: None if against is None else LogFolder.of(against, source) for source in names}
        return {source: verify(LogFolder.of(self.path, source), source, others[source]) for source in names}
