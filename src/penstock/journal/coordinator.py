"""What readers record in a journal in a folder of this machine: `penstock.journal.ports.Coordinator` for a disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ..errors import JournalError, JournalLocked
from . import gaps, retention
from .disk import make_folder
from .gaps import Gap
from .layout import is_served, log_folder
from .lock import Lock, Owner, owner_of
from .ports import Coordinator
from .retention import Committed
from .served import served_coordinator

__all__ = ["FolderCoordinator", "coordinator_of"]

HELD = "_readers"
"""The folder of the locks on readers' names."""


def coordinator_of(path: str | os.PathLike[str]) -> Coordinator | None:
    """Return where readers of a journal record their positions; None if it can only be read."""
    text = os.fspath(path)
    if is_served(text):
        return served_coordinator(text)
    return None if "://" in text and not text.startswith("file://") else FolderCoordinator(text)


class FolderCoordinator:
    """Records what readers of a journal in a folder commit and skip; the folder need not exist yet."""

    def __init__(self, path: str) -> None:
        self._path = path

    def cursors(self, source: str) -> dict[str, Committed]:
        """Return the content of each cursor of a log, by the cursor's name; `JournalCorrupt` if one is damaged."""
        return retention.cursors(log_folder(self._path, source))

    def commit(self, source: str, cursor: str, position: int, *, query: str | None) -> int:
        """Set a cursor's position; see `penstock.journal.retention.commit`."""
        return retention.commit(log_folder(self._path, source), cursor, position, query=query, rewind=True)

    def trim(self, source: str, cursor: str, position: int, *, query: str | None, retain_bytes: int) -> int:
        """Commit a position, and delete the rows that no reader needs; see `penstock.journal.retention.trim`."""
        folder = log_folder(self._path, source)
        return retention.trim(folder, position, reader=cursor, query=query, retain_bytes=retain_bytes)

    def drop(self, source: str, cursor: str) -> None:
        """Remove one cursor of a reader."""
        retention.drop(log_folder(self._path, source), cursor)

    def hold(self, name: str, owner: Owner | None = None) -> Lock | None:
        """Hold a name for a process, by default this one; return None if another process holds it.

        The name's file is removed with the lock, because clients choose names.
        """
        retention.reader_of(name)
        path = self._lock(name)
        make_folder(path.parent)
        try:
            return Lock(path, owner, temporary=True)
        except JournalLocked:
            return None

    def holder(self, name: str) -> Owner | None:
        """Return the process that holds a name, or held it when it was killed; None if unknown."""
        return owner_of(self._lock(name))

    def sweep(self) -> None:
        """Remove the files of names that nobody holds: those of processes that were killed."""
        found: list[Path] = []
        with suppress(OSError):
            found = list(Path(self._path.removeprefix("file://"), HELD).iterdir())
        for path in found:
            with suppress(JournalError):
                Lock(path, temporary=True).close()

    def recorded(self, source: str) -> list[Gap]:
        """Return the losses that were recorded apart from the rows, in order."""
        return gaps.load(log_folder(self._path, source))

    def record(self, source: str, losses: Iterable[Gap]) -> None:
        """Record losses of rows; they are durable on return."""
        gaps.add(log_folder(self._path, source), losses)

    def _lock(self, name: str) -> Path:
        return Path(self._path.removeprefix("file://"), HELD, name)
