"""Brings the logs of a group to this machine, when it takes the group over."""

from __future__ import annotations

import mmap
import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ..archive.catalog import Catalog
from ..errors import JournalCorrupt
from ..journal import gaps
from ..journal import secret as secrets
from ..journal.disk import disk_errors, make_folder, write_at
from ..journal.gaps import LATE, Gap
from ..journal.journal import Journal
from ..journal.layout import LOCK, log_folder
from ..journal.lock import Lock
from ..journal.sealed import SealedState, record_store, write_sealed
from ..objects.ports import Store
from .bundle import Bundle, Part
from .readers import restore_readers
from .restore import Piece, restore
from .sequence import Sequence
from .vault import Vault

__all__ = ["recall"]

AHEAD: Final = 8
"""Bundles to request at once: most have less than 8 MiB."""
REQUESTS: Final = 16
"""Manifests to request at once."""


def recall(sequence: Sequence, numbers: range, parts: list[Part], journal: Path, vault: Vault) -> None:
    """Restore all logs of a group in a journal on this machine. The caller owns the group, and says so in new bundles.

    Args:
        sequence: The group's bundles.
        numbers: Those with rows that are in no sealed segment.
        parts: The condition of each log.
        journal: The journal's folder.
        vault: Decrypts secrets.

    Raises:
        JournalLocked: Another process uses one of the logs.
        JournalError: A log cannot be restored; the error says why.

    """
    with disk_errors(journal, "be created"):
        make_folder(journal)
    # Of some logs there is nothing but that they had a secret once.
    parts = [part for part in parts if part.uuid or part.secret or log_folder(journal, part.source).exists()]
    with ExitStack() as stack:
        for part in parts:
            folder = log_folder(journal, part.source)
            with disk_errors(folder, "be created"):
                make_folder(folder)
            stack.enter_context(Lock(folder / LOCK))
        _settle(sequence.store, [part for part in parts if part.uuid], journal)
        with disk_errors(journal, "be written to"), closing(_Spool(journal)) as spool:
            for bundle in _bundles(sequence, numbers):
                spool.add(bundle)
            pieces = spool.pieces()
            for part in parts:
                if part.uuid:
                    restore(log_folder(journal, part.source), part, pieces.get(part.source, ()))
                    restore_readers(log_folder(journal, part.source), part)
                    _keep_gap(journal, part, spool)
        for part in parts:
            folder = log_folder(journal, part.source)
            if part.secret:
                secrets.put(folder, vault.open(part.source, part.secret))
            else:
                secrets.drop(folder)


def _settle(store: Store, parts: list[Part], journal: Path) -> None:
    """Record how far each log is sealed: readers here find these rows in the store.

    From here on the former owner, which does not know what readers are promised here, can remove none of them.
    """
    record_store(journal, store.uri)
    with ThreadPoolExecutor(REQUESTS) as pool:
        manifests = pool.map(lambda part: Catalog(store, part.source).fence(part.uuid), parts)
        for part, manifest in zip(parts, manifests, strict=True):
            if manifest is not None:
                first = manifest.first
                state = SealedState(part.uuid, first, manifest.end, manifest.raw_bytes, stored=True, floor=first)
                write_sealed(log_folder(journal, part.source), state)


def _keep_gap(journal: Path, part: Part, spool: _Spool) -> None:
    """Record the gap before the rows in the bundles, if its own bundle is deleted, and no manifest has it."""
    position, reason = spool.gap(part.source)
    if reason and not Journal(journal).reader(part.source).gaps(position, position + 1):
        gap = Gap(position, datetime.now(UTC), reason, number=LATE)
        gaps.add(log_folder(journal, part.source), [gap])


def _bundles(sequence: Sequence, numbers: range) -> Iterator[Bundle]:
    """Yield bundles in order, and request some ahead."""
    waiting: deque[tuple[int, Future[Bundle | None]]] = deque()
    left = iter(numbers)
    with ThreadPoolExecutor(AHEAD) as pool:
        while True:
            while len(waiting) < AHEAD and (number := next(left, None)) is not None:
                waiting.append((number, pool.submit(sequence.read, number)))
            if not waiting:
                return
            number, result = waiting.popleft()
            bundle = result.result()
            if bundle is None:
                raise JournalCorrupt(f"{sequence.name(number)}: is missing; restore the object from a copy")
            yield bundle


class _Spool:
    """The batches of all logs in a temporary file: together they may not fit into memory."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)
        self._places: dict[str, list[tuple[Part, int]]] = {}
        self._size = 0

    def add(self, bundle: Bundle) -> None:
        """Keep the rows of a bundle."""
        at = self._size
        for part in bundle.header.parts:
            if part.size:
                self._places.setdefault(part.source, []).append((part, at))
            at += part.size
        self._size = write_at(self._file.fileno(), [bundle.content], self._size)

    def pieces(self) -> dict[str, list[Piece]]:
        """Return the pieces of each log, in order."""
        if not self._size:
            return {}
        content = memoryview(mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ))
        return {
            source: [Piece(part.first, part.end, content[at : at + part.size]) for part, at in places]
            for source, places in self._places.items()
        }

    def gap(self, source: str) -> tuple[int, str]:
        """Return where the rows of a log begin, and why others are missing before them; "" if they are not."""
        places = self._places.get(source)
        return (places[0][0].first, places[0][0].before) if places else (0, "")

    def close(self) -> None:
        """Remove the file."""
        self._file.close()
