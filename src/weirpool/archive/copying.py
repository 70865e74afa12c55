"""Copies logs with sealed segments: `weirpool.journal.copying` copies the others.

A copy has its sealed segments in its own folder, and a manifest of its own: what the log retires later, the copy keeps.
"""

from __future__ import annotations

import os
import uuid as uuids
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ..errors import JournalCorrupt, JournalMismatch, JournalMissing, StoreError
from ..journal import copying
from ..journal.copying import Copied
from ..journal.disk import disk_errors, make_folder, replace_file
from ..journal.identity import Identity, encode
from ..journal.layout import DURABLE, IDENTITY, LOCK, TRIMMED, log_folder, segment_name
from ..journal.lock import Lock
from ..journal.mark import Mark, MarkFile, encode_trimmed
from ..journal.sealed import SealedState, load_sealed, record_sealed, store_uri
from ..journal.storage import LogFolder
from ..journal.trimming import delete_free
from ..objects import open_store
from .catalog import Catalog
from .manifest import Manifest, Segment, checksum
from .reader import ArchiveReader
from .stores import journal_store

__all__ = ["copy_log", "copy_stored"]

_BATCH: Final = 64
"""Files that are listed at once: what was listed need not be copied again."""


def copy_log(path: str | os.PathLike[str], source: str, target: str | os.PathLike[str]) -> Copied:
    """Copy a log of which some segments are sealed, here or in a store; see `weirpool.journal.copying.copy`."""
    # Sealing may have been prepared, and nothing sealed yet. What is sealed meanwhile has a manifest before it moves.
    state = load_sealed(log_folder(path, source))
    is_sealed = state is None or state.end > state.first
    transfer = _Transfer(Catalog(journal_store(path), source), source, target, is_sealed=is_sealed)
    copied = copying.copy(path, source, target, transfer.run)
    transfer.release()
    return Copied(ArchiveReader(target, source).first, copied.end, copied.size)


def copy_stored(uri: str, source: str, target: str | os.PathLike[str]) -> Copied:
    """Copy a log from a store, without rows that are not sealed; see `weirpool.journal.copying.copy`."""
    transfer = _Transfer(Catalog(open_store(uri), source), source, target)
    folder = transfer.folder
    with disk_errors(folder, "be created"):
        make_folder(folder)
    with Lock(folder / LOCK):
        size = transfer.run(folder)
        transfer.continue_log()
    reader = ArchiveReader(target, source)
    return Copied(reader.first, reader.end, size)


class _Transfer:
    """The sealed segments of one log on their way to a copy: with `is_sealed`, there must be some."""

    def __init__(self, log: Catalog, source: str, target: str | os.PathLike[str], *, is_sealed: bool = True) -> None:
        self._is_sealed = is_sealed
        self.folder = log_folder(target, source)
        self._log = log
        self._where = f"{log.store.uri.partition('?')[0]}/{log.folder}"
        store = open_store(self.folder.parent)
        self._copy = Catalog(store, source)
        elsewhere = store_uri(self.folder.parent)
        if elsewhere is not None:
            raise JournalMismatch(
                f"{self.folder.parent}: the sealed segments of this copy are in {elsewhere}; copy to another folder"
            )

    def run(self, folder: Path) -> int:
        """Copy what is missing, list it, and return its bytes."""
        manifest = self._log.newest()
        if manifest is None and not self._is_sealed:
            return 0
        if manifest is None:
            raise JournalMissing(f"{self._where}: there is no manifest of sealed segments; check the store")
        listed = self._known(manifest)
        missing = [each for each in self._log.segments(manifest) if each.end > listed.end]
        if (missing[0].first if missing else manifest.end) > listed.end:
            raise JournalMismatch(
                f"{folder}: ends at {listed.end}, and {self._where} was trimmed below {manifest.first}: the rows "
                "between are gone; remove the copy, or copy to another folder"
            )
        gaps = self._log.gaps(manifest)
        for start in range(0, len(missing), _BATCH):
            part = missing[start : start + _BATCH]
            for segment in part:
                self._transfer(segment)
            kept = self._copy.keep_gaps(listed, gaps)
            listed = self._list(listed.successor(segments=[*listed.segments, *part], gaps=kept))
        record_sealed(folder, SealedState(manifest.uuid, listed.first, listed.end, listed.raw_bytes, stored=False))
        return sum(each.size for each in missing)

    def release(self) -> None:
        """Remove the Arrow segments of rows that are sealed."""
        manifest = self._copy.newest()
        if manifest is not None:
            delete_free(self.folder, manifest.end, 0, 0)

    def continue_log(self) -> None:
        """Let the copy end where its sealed rows end, unless it has Arrow segments beyond."""
        manifest = self._copy.newest()
        assert manifest is not None
        log = LogFolder.local(self.folder)
        mark = log.mark()
        if mark is not None and mark.end >= manifest.end:
            return
        head = self._copy.segments(manifest, manifest.end - 1)[-1].head
        segments = log.segments()
        with disk_errors(self.folder, "be copied to"):
            replace_file(self.folder / IDENTITY, encode(self._identity(log, manifest.uuid)))
            replace_file(self.folder / TRIMMED, encode_trimmed(manifest.end, manifest.uuid))
            MarkFile(self.folder / DURABLE, Mark(manifest.end, 0, manifest.end, head), fsync=True).close()
            for first, _ in segments:
                (self.folder / segment_name(first)).unlink(missing_ok=True)

    @staticmethod
    def _identity(log: LogFolder, uuid: str) -> Identity:
        return log.identity() or Identity(uuid, datetime.now(UTC))

    def _known(self, manifest: Manifest) -> Manifest:
        """Return the manifest of the copy, which has the same rows as far as it goes."""
        known = self._copy.newest()
        existing = LogFolder.local(self.folder).identity()
        uuid = known.uuid if known is not None else existing.uuid if existing is not None else manifest.uuid
        if uuid != manifest.uuid:
            raise JournalMismatch(
                f"{self.folder}: holds log {uuid}, and {self._where} is log {manifest.uuid}; choose another folder"
            )
        if known is None:
            return Manifest(uuid=uuid, version=0, writer=uuids.uuid4().hex, first=manifest.first)
        theirs = {each.end: each.head for each in self._log.segments(manifest, 0, known.end)}
        if any(theirs.get(each.end, each.head) != each.head for each in self._copy.segments(known)) or (
            theirs and known.end < manifest.end and known.end not in theirs
        ):
            raise JournalMismatch(
                f"{self.folder}: was sealed on its own, at other positions or with other rows than {self._where}; "
                "remove the copy, and copy the log again"
            )
        return known

    def _transfer(self, segment: Segment) -> None:
        content = self._log.store.get(self._log.name(segment))
        if content is None or len(content) != segment.size or checksum(content) != segment.checksum:
            raise JournalCorrupt(
                f"{self._where}/{segment.name}: is missing, or differs from what was sealed; "
                "`weirpool journal verify` names all damage"
            )
        self._copy.store.put(self._copy.name(segment), content)

    def _list(self, manifest: Manifest) -> Manifest:
        if not self._copy.publish(manifest):
            raise StoreError(f"{self.folder}: another process seals this copy; copy again when it has ended")
        newest = self._copy.newest()
        assert newest is not None
        return newest
