"""The last micro-batch that each query has committed to a log."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from ..errors import JournalCorrupt
from ..journal.disk import disk_errors, read_file, replace_file

__all__ = ["Entry", "Ledger"]

NAME: Final = "_received"
MAX_QUERIES: Final = 1_000
"""Queries that are remembered."""
LAST_WRITES: Final = 100
"""Batch writes among them that are not forgotten before other queries."""
MAX_BYTES: Final = 1 << 20


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """The last micro-batch of a query."""

    batch: int
    """Its number."""
    first: int
    """The position of its first row."""
    end: int
    """The position after its last row."""
    single: bool = False
    """The query is a batch write, which has no other one."""


class Ledger:
    """The last micro-batch of each query, in a file of the log's folder.

    The state that the log has with its rows is newer: it is entered here before another one replaces it.

    Args:
        folder: The log's folder.
        fsync: Whether to wait for the disk.

    Raises:
        JournalCorrupt: The file is damaged.

    """

    def __init__(self, folder: Path, *, fsync: bool = True) -> None:
        self._path = folder / NAME
        self._fsync = fsync
        data = read_file(self._path, MAX_BYTES + 1)
        try:
            self._entries = {} if data is None else msgspec.json.decode(data, type=dict[str, Entry])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise JournalCorrupt(
                f"{self._path} does not say which micro-batches were committed ({error}); restore it from a copy, or "
                "remove it and give each query a new checkpoint"
            ) from None

    def last(self, query: str) -> Entry | None:
        """Return the last micro-batch of a query; None if it has committed none."""
        return self._entries.get(query)

    def enter(self, query: str, entry: Entry) -> None:
        """Enter a micro-batch. It is on disk when this returns."""
        if self._entries.get(query) == entry:
            return
        # In the order in which they were entered last.
        entries = {name: known for name, known in self._entries.items() if name != query}
        while len(entries) >= MAX_QUERIES:
            del entries[_least_needed(entries)]
        entries[query] = entry
        with disk_errors(self._path, "be written"):
            replace_file(self._path, msgspec.json.encode(entries), fsync=self._fsync)
        # Only now: what is not on disk must be entered again before the log has another state.
        self._entries = entries


def _least_needed(entries: dict[str, Entry]) -> str:
    """Return the query to forget: the oldest batch write, unless it is one of the last; otherwise the oldest query.

    A commit whose answer was lost is repeated, so the last batch writes must be known. Later nobody asks for them. A
    streaming query may come back after any time.
    """
    single = [query for query, entry in entries.items() if entry.single]
    return single[0] if len(single) > LAST_WRITES else next(iter(entries))
