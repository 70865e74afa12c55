"""The logs of a group, as their writers see them: what is appended goes into bundles."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from itertools import takewhile
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ..errors import JournalCorrupt, JournalError, JournalMismatch
from ..journal.durability import StagedAppend, StagedLog
from ..journal.format import Entry, Malformed, preamble_bytes, scan
from ..journal.layout import IDENTITY
from ..journal.sealed import load_sealed, safe_position
from ..journal.storage import LogFolder
from .bundle import Part
from .bundler import Bundler
from .ownership import Update
from .readers import cursors
from .restore import extends
from .vault import Vault

__all__ = ["Logs"]

EMPTY: Final = b""
"""What a part has as the secret of a log without one."""


class Logs:
    """Keeps the logs of a group in its bundles; a `weirpool.journal.durability.Replica`.

    Args:
        bundler: Writes the bundles.
        vault: Encrypts secrets.
        parts: The condition of each log when the group was taken over.

    """

    def __init__(self, bundler: Bundler, vault: Vault, parts: Mapping[str, Part]) -> None:
        self._bundler = bundler
        self._vault = vault
        # The condition of each log after everything that was submitted.
        self._parts = dict(parts)
        self._lock = threading.Lock()

    def parts(self) -> list[Part]:
        """Return the condition of each log."""
        with self._lock:
            return list(self._parts.values())

    def write(self, appends: Sequence[StagedAppend]) -> None:
        """Put appends into the next bundle, and wait until that is in the store."""
        _wait([self._submit(append) for append in appends])

    def close(self) -> None:
        """Do nothing: the bundler is closed by its owner, after the last log."""

    def adopt(self, log: StagedLog) -> None:
        """Put the rows that a log has on this machine only into bundles, if the group does not have the log yet."""
        part = self._parts.get(log.source)
        if part is not None and part.uuid:
            if (part.uuid, part.end) == (log.uuid, log.position):
                return
            if part.end > log.position or not extends(log.folder, part):
                raise JournalMismatch(
                    f"{log.folder}: is log {log.uuid} up to {log.position}, and the group has log {part.uuid} up to "
                    f"{part.end}; move the folder away and start the collector again, which restores the log"
                )
        sealed = load_sealed(log.folder, log.uuid)
        if sealed is not None and not sealed.stored and sealed.end > sealed.first:
            raise JournalMismatch(
                f"{log.folder}: rows {sealed.first} to {sealed.end - 1} are sealed on this machine only, where a "
                "successor cannot read them; collect into another journal"
            )
        for update in _local_rows(log, part.end if part is not None else 0):
            self._update(update, log.folder).result()

    def state(self, source: str) -> bytes | None:
        """Return the last recorded state of a log."""
        part = self._parts.get(source)
        return None if part is None else part.state

    def keep(self, source: str, secret: bytes | None) -> Future[None]:
        """Put a secret into the next bundle, encrypted."""
        sealed = EMPTY if secret is None else self._vault.seal(source, secret)
        with self._lock:
            before = self._parts.get(source) or Part(source, "", 0, 0)
            part = replace(before, first=before.end, size=0, identity=None, secret=sealed, readers=None)
            return self._put(Update(part))

    def record(self, source: str, folder: Path) -> Future[None] | None:
        """Put the readers of a log into the next bundle, as its folder on this machine has them.

        Only one thread may call this. Returns None if the group does not have the log: when it gets it, it gets the
        readers as they are then.
        """
        with self._lock:
            part = self._parts.get(source)
            if part is None or not part.uuid:
                return None
        # Appends do not wait for this. Readers have only seen rows that were submitted.
        found = cursors(folder, part.uuid)
        with self._lock:
            part = self._parts[source]
            if part.readers == found:
                return self._bundler.confirm()
            return self._put(Update(replace(part, first=part.end, size=0, identity=None, readers=found)))

    def confirm(self) -> Future[None]:
        """Find out whether the group belongs to this process."""
        return self._bundler.confirm()

    def _submit(self, append: StagedAppend) -> Future[None]:
        log, note = append.log, append.note
        part = Part(
            log.source,
            log.uuid,
            note.position,
            note.position + note.rows,
            append.digest,
            append.record.size,
            note.state,
            gap=note.gap or "",
        )
        before = self._parts.get(part.source)
        if before is not None and before.uuid:
            if note.rows:
                part = replace(part, before=before.gap)
            elif note.gap is None:
                part = replace(part, gap=before.gap)
        else:
            part = replace(part, identity=(log.folder / IDENTITY).read_bytes())
        return self._update(Update(part, append.record.chunks), log.folder)

    def _update(self, update: Update, folder: Path) -> Future[None]:
        with self._lock:
            before = self._parts.get(update.part.source)
            if before is None or not before.uuid:
                # Under the lock: what is recorded later finds the log here.
                readers = cursors(folder, update.part.uuid)
                update = Update(replace(update.part, readers=readers), update.content)
            follows = before is None or not before.uuid or before.end == update.part.first
            # After a failure nothing follows, and the bundler says why.
            if not follows and self._bundler.is_open:
                raise JournalError(
                    f"log {update.part.source!r}: rows from {update.part.first} on do not follow those that the group "
                    f"has, up to {before and before.end}; please report this defect"
                )
            return self._put(update)

    def _put(self, update: Update) -> Future[None]:
        """Submit an update; the caller holds the lock, so that the order of a log's updates is that of its rows."""
        part, before = update.part, self._parts.get(update.part.source)
        readers = part.readers if part.readers is not None or before is None else before.readers
        self._parts[part.source] = replace(
            part, first=part.end, size=0, identity=None, secret=None, before="", readers=readers
        )
        return self._bundler.submit(update)


def _local_rows(log: StagedLog, begin: int) -> Iterator[Update]:
    """Yield the rows of a log from a position on that are in no store, a segment each."""
    folder = LogFolder.local(log.folder)
    mark, safe = folder.mark(), safe_position(log.folder)
    segments = [first for first, _ in folder.segments()]
    for first, end in zip(segments, [*segments[1:], log.position][: len(segments)], strict=True):
        if mark is None or first < begin or (end <= safe and first != mark.segment):
            continue
        content = folder.content(first)
        if content is None:
            raise JournalCorrupt(f"{folder.name(first)}: is missing; repair the log")
        try:
            start = preamble_bytes(content, log.uuid)
            entries = list(scan(content, start, mark.offset if first == mark.segment else content.size, first, None))
        except Malformed as bad:
            where = f"{folder.name(first)}: at position {bad.position}"
            raise JournalCorrupt(f"{where}: {bad.why}; repair the log") from None
        if not entries or entries[-1].end != end:
            raise JournalCorrupt(f"{folder.name(first)}: does not have all rows up to {end}; repair the log")
        last, batches = entries[-1], memoryview(content)[start : entries[-1].end_offset]
        identity = (log.folder / IDENTITY).read_bytes()
        part = Part(log.source, log.uuid, first, end, last.digest, len(batches), last.note.state, identity)
        yield Update(replace(part, gap=_last_gap(entries)), [batches])


def _last_gap(entries: Sequence[Entry]) -> str:
    """Return the reason of a gap after the last row; empty if there is none."""
    last = takewhile(lambda entry: not entry.note.rows, reversed(entries))
    return next((entry.note.gap for entry in last if entry.note.gap), "")


def _wait(submitted: Sequence[Future[None]]) -> None:
    """Wait for all results, then raise the first error."""
    wait(submitted)
    for each in submitted:
        each.result()
