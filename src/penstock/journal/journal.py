"""A journal as a whole: its logs, and who reads and writes them."""

from __future__ import annotations

import os
from typing import Any

from .layout import log_folder
from .reader import JournalReader
from .retention import DEFAULT_READER, trim
from .storage import list_sources, resolve
from .writer import JournalWriter

__all__ = ["Journal"]


class Journal:
    """A folder of logs, one a collector.

    Args:
        path: The folder, or to read alone a URI that `pyarrow.fs.FileSystem.from_uri` knows.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"Journal({os.fspath(self.path)!r})"

    def sources(self) -> list[str]:
        """Return the names of its logs, sorted.

        Raises:
            JournalError: The journal cannot be reached.

        """
        return sorted(list_sources(*resolve(self.path)))

    def reader(self, source: str) -> JournalReader:
        """Return a reader of one log. Raises as :class:`JournalReader` does."""
        return JournalReader(self.path, source)

    def writer(self, source: str, **options: Any) -> JournalWriter:
        """Open one log for writing, with the options of :meth:`JournalWriter.open`, which says what it raises."""
        return JournalWriter.open(self.path, source, **options)

    def trim(self, source: str, position: int, *, reader: str = DEFAULT_READER, **margins: int) -> int:
        """Commit a reader's position in one log and free what nobody needs; see :func:`penstock.journal.trim`.

        Returns:
            The position of the first row that is left.

        """
        return trim(log_folder(self.path, source), position, reader=reader, **margins)

    def verify(self, source: str) -> int:
        """Read all of one log, and check every batch.

        Returns:
            How many rows there are.

        Raises:
            JournalCorrupt: A batch does not hold what was written; the message names the file and positions.

        """
        reader = self.reader(source)
        return sum(batch.num_rows for batch in reader.read(reader.first, reader.end))
