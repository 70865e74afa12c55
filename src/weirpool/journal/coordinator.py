"""What readers record in a journal in a folder of this machine: `weirpool.journal.ports.Coordinator` for a disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from ..errors import JournalCorrupt, JournalError, JournalLocked, LocalError
from . import gaps, retention
from .asks import Ask
from .counts import check_span, shown_number
from .disk import disk_errors, make_folder
from .gaps import Gap
from .identity import locked
from .layout import Extent, check_name, is_served, log_folder
from .lock import Lock, Owner, owner_of
from .ports import Coordinator
from .retention import Committed, Wait
from .served import served_coordinator

__all__ = ["FolderCoordinator", "coordinator_of"]

HELD = "_readers"
"""The folder of the locks on readers' names."""
MAX_SKIPPED: Final = 10_000
"""Losses that queries have skipped in a log: each of them is read with the gaps of the log."""
MAX_REASON_CHARS: Final = 1_000


def coordinator_of(path: str | os.PathLike[str]) -> Coordinator | None:
    """Return where readers of a journal record their positions; None if it can only be read."""
    text = os.fspath(path)
    if is_served(text):
        return served_coordinator(text)
    return None if "://" in text and not text.startswith("file://") else FolderCoordinator(text)


class FolderCoordinator:
    """Records what readers of a journal in a folder commit and skip; the folder need not exist yet.

    Args:
        path: The folder.
        wait: Waits for the store of a group; see `weirpool.journal.retention.commit`.

    """

    def __init__(self, path: str, wait: Wait = Ask.wait) -> None:
        self._path = path
        self._wait = wait

    def cursors(self, source: str) -> dict[str, Committed]:
        """Return the content of each cursor of a log, by the cursor's name; `JournalCorrupt` if one is damaged."""
        return retention.cursors(log_folder(self._path, source))

    def commit(self, source: str, cursor: str, position: int, *, query: str | None) -> int:
        """Set a cursor's position; see `weirpool.journal.retention.commit`."""
        folder = log_folder(self._path, source)
        return retention.commit(folder, cursor, position, query=query, rewind=True, wait=self._wait)

    def trim(self, source: str, cursor: str, position: int, *, query: str | None, retain_bytes: int) -> int:
        """Commit a position, and delete the rows that no reader needs; see `weirpool.journal.retention.trim`."""
        folder = log_folder(self._path, source)
        return retention.trim(folder, position, reader=cursor, query=query, retain_bytes=retain_bytes, wait=self._wait)

    def seek(self, source: str, reader: str, position: int) -> int:
        """Set the position of a reader that belongs to no query, forward or back; it is created if necessary."""
        folder = log_folder(self._path, source)
        return retention.commit(folder, check_name(reader, "reader"), position, rewind=True, wait=self._wait)

    def drop(self, source: str, cursor: str) -> None:
        """Remove one cursor of a reader; see `weirpool.journal.retention.drop`."""
        retention.drop(log_folder(self._path, source), cursor, wait=self._wait)

    def forget(self, source: str, reader: str) -> dict[str, Committed | None]:
        """Remove a reader that will not return, so that it holds nothing back."""
        return retention.forget(log_folder(self._path, source), reader, wait=self._wait)

    def cursors_of(self, source: str, reader: str | None) -> dict[str, Committed | None]:
        """Return the content of each cursor of a reader, or of all, by the cursor's name; None for a damaged one."""
        return retention.cursors_of(log_folder(self._path, source), reader)

    def deletable(self, source: str, position: int) -> list[Extent]:
        """Return the segments that `delete` deletes, if no reader needs them."""
        return retention.deletable(log_folder(self._path, source), position)

    def delete(self, source: str, position: int, *, force: bool) -> list[Extent]:
        """Delete the segments below a position; see `weirpool.journal.retention.delete`."""
        return retention.delete(log_folder(self._path, source), position, force=force)

    def hold(self, name: str, owner: Owner | None = None) -> Lock | None:
        """Hold a name for a process, by default this one; return None if another process holds it.

        The name's file is removed with the lock, because clients choose names.
        """
        path = self._lock(name)
        with disk_errors(path.parent, "be created"):
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
        """Record losses of rows that a query skips; they are durable on return. Existing ones are ignored.

        Raises:
            LocalError: One is not a loss of this log's rows, or names no query.
            JournalError: There are too many, or the disk failed.

        """
        folder = log_folder(self._path, source)
        with locked(folder) as log:
            end = retention.durable_end(folder, log.uuid)
            found = [_checked(loss, folder, end) for loss in losses]
            known = [gap for gap in gaps.load(folder) if gap.query is not None]
            if len(gaps.merge(known, found)) > max(MAX_SKIPPED, len(known)):
                raise JournalError(
                    f"{folder}: queries have skipped {len(known):,} losses, and no more than {MAX_SKIPPED:,} are "
                    "recorded; `weirpool journal repair --accept-loss` records them once for all queries"
                )
            gaps.add(folder, found)

    def _lock(self, name: str) -> Path:
        retention.reader_of(name)
        return Path(self._path.removeprefix("file://"), HELD, name)


def _checked(loss: Gap, folder: Path, end: int) -> Gap:
    """Return a loss as it is recorded; `LocalError` unless a query names rows below the end of the log."""
    if loss.query is None or loss.lost is None:
        raise LocalError(f"{folder}: a loss that a query skips names the query, and the positions")
    check_name(loss.query, "query")
    check_span(str(folder), *loss.lost)
    first, stop = map(shown_number, loss.lost)
    if loss.lost[1] > end or loss.position != loss.lost[1]:
        raise LocalError(
            f"{folder}: the loss of positions {first} to {stop} cannot be recorded before position "
            f"{shown_number(loss.position)}: the log ends at {end}"
        )
    # The number is given by the log, which orders its losses by it.
    checked = replace(loss, reason=loss.reason[:MAX_REASON_CHARS], number=0)
    try:
        gaps.decode(gaps.encode([checked]), folder)
    except (TypeError, ValueError, JournalCorrupt):
        raise LocalError(f"{folder}: the times of a loss have a time zone, and are after 1970") from None
    return checked
