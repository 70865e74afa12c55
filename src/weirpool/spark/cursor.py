"""Reports the committed position of a query to the journal, which may then delete the rows before it.

The option `reader` names the query in the journal. The name belongs to the query that first used it, identified by the
id in its checkpoint, until the reader is removed. A query without a first batch owns nothing. Until another query owns
the name, it may join one that the same driver uses. A self-join has one name in this way, because its two sources
cannot know of each other: each source has a cursor, and rows that either needs are kept. Its sources are processes
with the same parent, the JVM; sources of another driver are refused.

Only one process at a time holds a cursor, by a lock in ``_readers`` that the kernel releases when the process dies. The
Python process of a killed driver and the source of its successor therefore never commit at the same time.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
from collections.abc import Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ..errors import JournalError, JournalLocked, JournalMismatch, LocalError
from ..journal.coordinator import coordinator_of
from ..journal.layout import is_served
from ..journal.lock import Owner
from ..journal.ports import Hold, Refused
from ..journal.retention import reader_of

__all__ = ["Cursor"]

logger = logging.getLogger("weirpool.spark")

_LASTING: Final = {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.ENOTSUP, errno.ENOSYS}
"""What a disk answers that may not be written to, has no locks, or has another file in the way."""
PATIENCE: Final = 10.0
"""Seconds: the source of a killed driver ends at its next request, which takes a moment."""
RETRY: Final = 0.1
CLAIMS: Final = 32
"""Logs in which a name is claimed at once."""


class Cursor:
    """The committed positions of one source of a query, in each log of a journal, under the name of a reader."""

    def __init__(self, journal: str, reader: str, retain_bytes: int) -> None:
        coordinator = coordinator_of(journal)
        assert coordinator is not None
        self._coordinator = coordinator
        self._journal = journal
        self._reader = reader
        self._retain_bytes = retain_bytes
        self._name = reader
        self._query: str | None = None
        self._lock: Hold | None = None
        self._positions: dict[str, int] = {}

    @property
    def claimed(self) -> bool:
        """True if this source holds the name."""
        return self._lock is not None

    def claim(self, query: str, positions: Mapping[str, int], *, first: bool, settled: bool) -> None:
        """Claim the name, and set these positions, even if they were higher before.

        Call it whenever a micro-batch is planned, which also claims sources that have appeared since.

        Args:
            query: The query's id.
            positions: The next position in each existing source.
            first: Whether this is the query's first batch.
            settled: Whether Spark has stored the query's id. Before that the query owns nothing, because after a crash
                no query would have the id that owns it.

        Raises:
            JournalMismatch: The name belongs to another query.
            JournalLocked: Another process reads for this query, and continues.
            LocalError: This query may not write to the journal.
            JournalError: A disk or network does not respond. Call it again.

        """
        if not positions:
            return
        try:
            if self._lock is None:
                self._acquire(query, positions, first, settled)
            if settled and self._query is None:
                self._query = query
                self._positions.clear()
            # A source that has joined a name holds nothing before it has an id: its cursor would outlive a crash.
            if settled or self._name == self._reader:
                self._set_positions({s: positions[s] for s in positions.keys() - self._positions.keys()})
        except JournalError as error:
            if not _is_refused(error):
                raise
            raise LocalError(
                f"journal {self._journal} cannot record what this query commits ({error}); "
                "make it writable, or omit the option reader and let another query trim it"
            ) from error

    def commit(self, positions: Mapping[str, int]) -> None:
        """Let the journal delete the rows before these positions, if this source holds the name.

        A log that fails does not prevent the others from being updated. Call again after a `JournalError`.
        """
        errors = []
        for source, position in positions.items():
            if self._query is not None and position > self._positions.get(source, position):
                try:
                    self._commit(source, position)
                except JournalError as error:
                    errors.append(error)
        if len(errors) > 1:
            raise JournalError(f"{errors[0]} (and {len(errors) - 1} more)") from errors[0]
        if errors:
            raise errors[0]

    def _commit(self, source: str, position: int) -> None:
        self._coordinator.trim(source, self._name, position, query=self._query, retain_bytes=self._retain_bytes)
        self._positions[source] = position
        self._drop_orphan(source)

    def release(self) -> None:
        """Release the lock. The name stays with the query."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
            self._positions.clear()

    def _acquire(self, query: str, positions: Mapping[str, int], first: bool, settled: bool) -> None:
        """Choose this source's cursor, and lock it."""
        self._check_former_names(positions.keys(), query)
        part = f"{self._reader}@{query}"
        deadline = time.monotonic() + PATIENCE
        while self._lock is None:
            owners = self._owners(positions.keys(), query, first, settled)
            mine = owners.get(self._reader)
            if mine == query:
                self._lock = self._wait_for(self._reader)
            elif mine is not None or part in owners:
                self._join(part)
            else:
                self._lock = self._coordinator.hold(self._reader)
                if self._lock is None and self._is_sibling(self._reader):
                    self._join(part)
                elif self._lock is None and time.monotonic() > deadline:
                    raise self._in_use(
                        self._reader, "for another driver; stop it, or give this query a reader name of its own"
                    )
                elif self._lock is None:
                    time.sleep(RETRY)

    def _owners(self, sources: Set[str], query: str, first: bool, settled: bool) -> dict[str, str]:
        """Return the queries that own the name, by cursor; `JournalMismatch` if this query cannot be one of them."""
        owners = {
            name: cursor.query
            for source in sources
            for name, cursor in self._coordinator.cursors(source).items()
            if reader_of(name) == self._reader and cursor.query is not None
        }
        if owners and (not settled or (not first and query not in owners.values())):
            raise JournalMismatch(
                f"journal {self._journal}: the reader name {self._reader!r} belongs to another query "
                f"({next(iter(owners.values()))}), or this checkpoint is not the one that it had; choose another name "
                f"with the option reader, or run `weirpool journal forget` if that query will not come back"
            )
        return owners

    def _join(self, part: str) -> None:
        self._lock = self._wait_for(part)
        self._name = part

    def _check_former_names(self, sources: Set[str], query: str) -> None:
        """Check that no process reads from this checkpoint under another name, and warn about its former names."""
        former = {
            name
            for source in sources
            for name, cursor in self._coordinator.cursors(source).items()
            if cursor.query == query and reader_of(name) != self._reader
        }
        for name in sorted(former):
            self._wait_for(name).close()
            logger.warning(
                "journal %s: this query had the reader name %r before, which still holds back rows; drop that name "
                "with `weirpool journal forget`",
                self._journal,
                reader_of(name),
            )

    def _drop_orphan(self, source: str) -> None:
        """Remove the cursor of a source that died before its query's first batch; it would block this one forever."""
        if self._name == self._reader:
            return
        first = self._coordinator.cursors(source).get(self._reader)
        if first is not None and first.query is None:
            lock = self._coordinator.hold(self._reader)
            if lock is not None:
                self._coordinator.drop(source, self._reader)
                lock.close()

    def _wait_for(self, name: str) -> Hold:
        deadline = time.monotonic() + PATIENCE
        while (lock := self._coordinator.hold(name)) is None:
            if time.monotonic() > deadline:
                raise self._in_use(
                    name,
                    "from the same checkpoint; stop it, or give this query a checkpoint and a reader name of its own",
                )
            time.sleep(RETRY)
        return lock

    def _in_use(self, name: str, advice: str) -> JournalError:
        """Return the error for a name that was not given to this process in time."""
        owner = self._coordinator.holder(name)
        if self._is_own(owner):
            # The collector has not noticed yet that the link is gone over which it gave the name.
            return JournalError(
                f"journal {self._journal}: the collector still holds {name!r} for a broken connection of this process"
            )
        return JournalLocked(
            f"journal {self._journal}: {owner or 'another process'} reads it as {reader_of(name)!r} {advice}"
        )

    def _is_sibling(self, name: str) -> bool:
        """Return True if the owner of a lock has the same driver as this process, like the sources of one query."""
        owner = self._coordinator.holder(name)
        return (
            owner is not None
            and not self._is_own(owner)
            and owner.host == socket.gethostname()
            and owner.parent == os.getppid()
        )

    def _is_own(self, owner: Owner | None) -> bool:
        """Return True if a collector has given a name to this process."""
        here = owner is not None and owner.pid == os.getpid() and owner.host == socket.gethostname()
        return here and is_served(self._journal)

    def _set_positions(self, positions: Mapping[str, int]) -> None:
        """Set them together: in a group, each waits for the next object in its store."""
        with ThreadPoolExecutor(CLAIMS, "weirpool-claims") as pool:
            for _ in pool.map(self._set_position, positions.keys(), positions.values()):
                pass

    def _set_position(self, source: str, position: int) -> None:
        # After a query is rewound, its former position would free rows that it must read again.
        self._coordinator.commit(source, self._name, position, query=self._query)
        self._positions[source] = position


def _is_refused(error: JournalError) -> bool:
    """Return True if the same request will be refused again."""
    cause = error.__cause__
    return isinstance(error, Refused) or (isinstance(cause, OSError) and cause.errno in _LASTING)
