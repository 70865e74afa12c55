"""The sealed segments of one log, as its manifest lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import pyarrow as pa

from ..errors import JournalCorrupt, JournalMissing
from ..journal.gaps import Gap
from ..journal.sealed import SealedState
from ..objects import open_store
from .catalog import Catalog
from .cold import ColdFiles
from .manifest import Manifest, Segment
from .parquet import ROW_GROUP_ROWS
from .stores import journal_store

__all__ = ["SealedLog"]

T = TypeVar("T")


class SealedLog:
    """The sealed segments of a log, as of the last refresh.

    Attributes:
        manifest: What they are.

    """

    def __init__(self, catalog: Catalog, manifest: Manifest) -> None:
        self.manifest = manifest
        self._catalog = catalog
        self._files = ColdFiles(catalog.store)

    @classmethod
    def found(cls, uri: str, source: str) -> SealedLog | None:
        """Return the sealed segments in a store; None if it has no manifest."""
        catalog = Catalog(open_store(uri), source)
        manifest = catalog.newest()
        return None if manifest is None else cls(catalog, manifest)

    @classmethod
    def of_folder(cls, path: str, source: str, state: SealedState) -> SealedLog | None:
        """Return the sealed segments of a log in a journal's folder, which has recorded that they exist."""
        catalog = Catalog(journal_store(path), source)
        manifest = catalog.newest()
        if (manifest.end if manifest is not None else state.first) < state.end:
            raise JournalMissing(
                f"{catalog.store.uri}/{catalog.folder}: the manifest of positions up to {state.end - 1} is not there; "
                "check the store and the mount"
            )
        return None if manifest is None else cls(catalog, manifest)

    @property
    def where(self) -> str:
        """The folder of the log in its store."""
        return f"{self._catalog.store.uri}/{self._catalog.folder}"

    def refresh(self) -> None:
        """Read the newest manifest."""
        newest = self._catalog.newest(self.manifest)
        if newest is None or newest.uuid != self.manifest.uuid:
            raise JournalMissing(f"{self.where}: the manifest of this log is gone; check the store")
        self.manifest = newest

    def segments(self, start: int = 0, end: int = 1 << 62) -> list[Segment]:
        """Return the segments with rows between two positions, in order."""
        return self._looked_up(lambda manifest: self._catalog.segments(manifest, start, end))

    def files(self) -> tuple[str, list[tuple[str, Segment]]]:
        """Return the URI of the store, and the names and entries of all files, in order."""
        return self._catalog.store.uri, [(self._catalog.name(each), each) for each in self.segments()]

    def parts(self, segment: Segment) -> Iterator[tuple[int, int, int]]:
        """Yield first position, end and bytes of a segment's row groups."""
        return self._files.parts(segment, ROW_GROUP_ROWS)

    def read(self, segment: Segment, start: int, end: int, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a segment between two positions; None: all columns."""
        return self._files.read(self._catalog.name(segment), segment, start, end, columns)

    def gaps(self) -> list[Gap]:
        """Return the gaps of the log, in order."""
        return self._looked_up(self._catalog.gaps)

    def _looked_up(self, find: Callable[[Manifest], T]) -> T:
        """Return what is found by the manifest. If a page of it was removed meanwhile, the newest one is read."""
        try:
            return find(self.manifest)
        except JournalCorrupt:
            before = self.manifest
            self.refresh()
            if self.manifest == before:
                raise
            return find(self.manifest)
