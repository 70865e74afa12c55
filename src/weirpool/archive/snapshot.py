"""What a log consists of at one moment: the files of one manifest, and the rows after them."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ..journal.layout import is_served
from ..journal.served import served_journal
from .file import check_files
from .manifest import Segment
from .reader import ArchiveReader

__all__ = ["Snapshot", "snapshot"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A log at one moment. Rows that are sealed later keep their positions, so it stays valid."""

    source: str
    """The log's name."""
    uuid: str
    """The log's UUID."""
    store: str
    """The URI of the store with the files; empty if nothing is sealed."""
    files: tuple[tuple[str, Segment], ...]
    """The files with sealed rows, in order: names in the store, and entries of the manifest."""
    first: int
    """The position of the first row."""
    sealed_end: int
    """The position after the last sealed row: rows from here on are in Arrow segments."""
    end: int
    """The position after the last row."""

    def files_between(self, start: int, end: int) -> list[tuple[str, Segment]]:
        """Return the files with rows between two positions."""
        return [(name, each) for name, each in self.files if each.first < end and each.end > start]

    def check(self) -> None:
        """Check that each file is the one that was sealed, before another program reads it.

        It reads only the footers. Bytes before them can still be damaged: let the other program verify the checksums of
        pages, or read everything with `verify_sealed`.

        Raises:
            JournalCorrupt: A file is missing, shorter or longer, or another one.
            StoreError: The store cannot be reached.

        """
        if self.files:
            check_files(self.store, self.files)


def snapshot(journal: str | os.PathLike[str], source: str) -> Snapshot:
    """Return a log as it is now; errors as for `ArchiveReader`.

    Of a log that a collector serves, all rows are after the files: the collector reads those.
    """
    path = os.fspath(journal)
    if is_served(path):
        served = served_journal(path).reader(source)
        return Snapshot(source, served.uuid, "", (), served.first, served.first, served.end)
    reader = ArchiveReader(journal, source)
    store, files = reader.sealed_files()
    sealed_end = files[-1][1].end if files else reader.first
    return Snapshot(source, reader.uuid, store, tuple(files), reader.first, sealed_end, max(reader.end, sealed_end))
