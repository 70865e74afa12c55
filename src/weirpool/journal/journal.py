"""A journal: a folder of logs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import JournalError, JournalMissing, LocalError
from .coordinator import coordinator_of
from .layout import Extent, is_served, log_folder, source_of
from .opening import open_log
from .ports import Coordinator, LogReader
from .retention import DEFAULT_READER, DEFAULT_RETAIN_BYTES, Committed, trim
from .served import served_journal
from .storage import LogFolder, list_sources, resolve

if TYPE_CHECKING:
    # Imported where they are used: Spark starts a process for each query, which only reads.
    from .copying import Copied
    from .lag import Lag
    from .repair import Repair
    from .verify import Report
    from .writer import JournalWriter

__all__ = ["Journal"]

_STORES = ("s3", "s3a", "gs", "az", "abfs", "abfss", "memory")
"""The schemes of object stores; other URIs are file systems."""


def _is_store(path: str) -> bool:
    return path.partition("://")[0] in _STORES


class Journal:
    """A folder of logs, one per collector. It need not exist yet.

    Args:
        path: The folder; for reading also a URI that `pyarrow.fs.FileSystem.from_uri` supports, or the URL of a
            collector that serves its journal.

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
        if is_served(self.path):
            return served_journal(self.path).sources()
        if _is_store(self.path):
            return self._stored_sources()
        return list_sources(*resolve(self.path))

    def _stored_sources(self) -> list[str]:
        """Return the names of the logs with sealed segments in an object store."""
        from ..objects import open_store

        names = [name for folder in open_store(self.path).folders() if (name := source_of(folder)) is not None]
        if not names:
            raise JournalMissing(f"{self.path}: there is no journal in this store; check the URI")
        return names

    def is_awaited(self, source: str) -> bool:
        """Return True if the log `source` has a collector that has received nothing yet.

        Raises:
            JournalError: The journal cannot be reached.

        """
        if is_served(self.path):
            return served_journal(self.path).is_awaited(source)
        if _is_store(self.path):
            # Its logs are those with sealed rows.
            return False
        return LogFolder.of(self.path, source).is_awaited()

    def reader(self, source: str) -> LogReader:
        """Return a reader of the log `source`, one of :meth:`sources`, with its sealed segments.

        Raises:
            JournalMissing: There is no such log, or it cannot be seen from this machine.
            JournalCorrupt: The end of the log is unknown.
            JournalError: The log cannot be reached.

        """
        return open_log(self.path, source)

    def writer(self, source: str, **options: Any) -> JournalWriter:
        """Open or create a log for writing; close it after the last append.

        Args:
            source: Its name.
            options: Those of `JournalWriter.open`.

        """
        from .writer import JournalWriter

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

        See `weirpool.journal.retention.trim`; returns the position of the first remaining row.
        """
        if is_served(self.path) and not retain_rows:
            return self._desk().trim(source, reader, position, query=None, retain_bytes=retain_bytes)
        folder = log_folder(self.path, source)
        return trim(folder, position, reader=reader, retain_rows=retain_rows, retain_bytes=retain_bytes)

    def delete(self, source: str, position: int, *, force: bool = True) -> int:
        """Delete the segments below a position; the last segment stays.

        In a log with cold storage, segments stay until they are sealed, and sealed rows stay.

        Args:
            source: The log.
            position: Keep rows from here on.
            force: Delete rows although readers have not committed them. Otherwise this is a `LocalError`.

        Returns:
            The position of the first remaining row.

        """
        self._desk().delete(source, position, force=force)
        return self.reader(source).first

    def deletable(self, source: str, position: int) -> list[Extent]:
        """Return the rows and bytes of the segments that `delete` would delete; nothing is changed."""
        return self._desk().deletable(source, position)

    def seek(self, source: str, reader: str, position: int) -> int:
        """Set the position of a reader that belongs to no query, forward or back; it is created if necessary.

        Returns:
            The position, which is durable.

        Raises:
            LocalError: The log ends before the position.
            JournalMismatch: The name belongs to a query, or the reader's cursor to another log.

        """
        return self._desk().seek(source, reader, position)

    def lags(self, source: str) -> list[Lag]:
        """Return how far each reader of the log `source` is behind its end; see `weirpool.journal.lag`."""
        from .lag import lags

        desk = self._desk()
        # A log without a row has no reader yet, and no reader of it can be made.
        return lags(cursors, self.reader(source)) if (cursors := desk.cursors(source)) else []

    def copy(self, source: str, target: str | os.PathLike[str]) -> Copied:
        """Copy a log to another journal, or bring an earlier copy up to date; see `weirpool.journal.copying.copy`."""
        if not self._is_sealed(source):
            from .copying import copy

            return copy(self.path, source, target)
        if is_served(self.path):
            raise LocalError(
                f"{self.path}: log {source!r} has sealed rows, which are not copied over the network; copy it where it "
                "is collected, or copy its store"
            )
        from ..archive.copying import copy_log, copy_stored

        return copy_stored(self.path, source, target) if _is_store(self.path) else copy_log(self.path, source, target)

    def readers(self, source: str) -> list[str]:
        """Return the names of the readers that commit positions in the log `source`, in order."""
        return sorted({name.partition("@")[0] for name in self._desk().cursors_of(source, None)})

    def cursors(self, source: str, reader: str) -> Mapping[str, Committed | None]:
        """Return the content of each cursor of a reader in the log `source`, by the cursor's name.

        The content of a damaged one is None; without cursors, there is no such reader.
        """
        return self._desk().cursors_of(source, reader)

    def forget(self, source: str, reader: str) -> Mapping[str, Committed | None]:
        """Remove a reader that will not return, so that it holds nothing back.

        Args:
            source: The log that it read.
            reader: Its name, as passed to `trim`.

        Returns:
            The content of each of its cursors, by the cursor's name, and None for a damaged one; empty if there is no
            such reader.

        """
        return self._desk().forget(source, reader)

    def _desk(self) -> Coordinator:
        """Return where the readers of this journal are known; `LocalError` if that is elsewhere."""
        desk = coordinator_of(self.path)
        if desk is None:
            raise LocalError(
                f"{self.path} can only be read: its readers, and what is trimmed for them, are where the journal is "
                "collected; use that folder, or the URL of its collector"
            )
        return desk

    def repair(self, source: str, *, apply: bool = False, accept_loss: bool = False) -> Repair:
        """Find what a log needs to be readable and writable again, and do it with `apply`.

        See `weirpool.journal.repair.repair`. No collector may write to the log meanwhile.
        """
        from .repair import repair

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
        other = None if against is None else Journal(against)
        reports = {source: self._verified(source, other) for source in names}
        if self._is_local():
            from .verify import add_readers

            for source, report in reports.items():
                add_readers(report, log_folder(self.path, source))
        return reports

    def _verified(self, source: str, other: Journal | None) -> Report:
        """Return the report of a log, compared with its copy in another journal."""
        from .verify import Report, add_rows, verify

        sealed = self._is_sealed(source)
        if not sealed and (other is None or not other._is_sealed(source)):
            return verify(
                LogFolder.of(self.path, source), source, None if other is None else LogFolder.of(other.path, source)
            )
        from ..archive.compare import compare_sealed
        from ..archive.verify import add_sealed

        stored = _is_store(self.path)
        report = Report(source) if stored else verify(LogFolder.of(self.path, source), source)
        if sealed and is_served(self.path):
            add_rows(report, self.reader(source))
        elif sealed:
            add_sealed(report, self.path, stored=stored)
        if other is not None and (is_served(self.path) or is_served(other.path)):
            report.problems.append(
                f"log {source!r} has sealed rows, which are not compared over the network; compare it where it is "
                "collected"
            )
        elif other is not None:
            try:
                report.add(compare_sealed(self.path, other.path, source, stored=(stored, _is_store(other.path))))
            except JournalError as error:
                report.problems.append(str(error))
        return report

    def _is_sealed(self, source: str) -> bool:
        """Return True if a log may have sealed segments."""
        if _is_store(self.path):
            return True
        return (self._is_local() or is_served(self.path)) and LogFolder.of(self.path, source).is_sealed()

    def _is_local(self) -> bool:
        """Return True if the journal is a folder of this machine."""
        return "://" not in self.path or self.path.startswith("file://")
