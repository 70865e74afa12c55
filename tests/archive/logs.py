"""Small logs with sealed segments, and what must be true of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.journal.logs import SOURCE, append
from weirpool.archive import SealOptions, seal
from weirpool.archive.catalog import Catalog
from weirpool.archive.stores import journal_store
from weirpool.errors import JournalError
from weirpool.journal import Journal, JournalWriter, LogReader
from weirpool.journal.layout import log_folder
from weirpool.objects import Store, open_store

__all__ = ["SMALL", "broken", "catalog", "fill", "glob_positions", "positions", "seal_all"]

SMALL = SealOptions(target_bytes=1)
"""Each segment is sealed by itself."""


def fill(path: Path, *counts: int, gaps: tuple[int, ...] = (), segment_bytes: int = 1) -> Path:
    """Append batches of so many rows, each a segment of its own; with gaps before these batches. Return the folder."""
    with JournalWriter.open(path, SOURCE, segment_bytes=segment_bytes, fsync=False) as writer:
        for number, count in enumerate(counts):
            if number in gaps:
                writer.append_gap(f"gap {number}")
            append(writer, count)
    return log_folder(path, SOURCE)


def seal_all(path: Path, options: SealOptions = SMALL) -> int:
    """Seal everything that can be sealed; return the number of files."""
    count = 0
    while seal(path, SOURCE, options, force=True):
        count += 1
    return count


def catalog(path: Path, uri: str | None = None) -> Catalog:
    """Return the catalog of a log."""
    return Catalog(journal_store(path, uri), SOURCE)


def positions(reader: LogReader, start: int | None = None, end: int | None = None) -> list[int]:
    """Return the positions of a range's rows, whose data is that number."""
    found: list[int] = []
    for batch in reader.read(reader.first if start is None else start, reader.end if end is None else end):
        numbers = batch["position"].to_pylist()
        assert [int(data) for data in batch["data"].to_pylist()] == numbers
        assert batch["metadata"].to_pylist() == [None if number % 2 else b"m%d" % number for number in numbers]
        assert batch["stream"].to_pylist() == ["numbers"] * len(numbers)
        found += numbers
    return found


def glob_positions(store: Store) -> list[int]:
    """Return the positions in all Parquet files that a glob over ``source=s/*.parquet`` finds, in order of names."""
    found: list[int] = []
    for name, _ in store.list(f"source={SOURCE}"):
        if name.endswith(".parquet") and name.count("/") == 1:
            content = store.get(name)
            assert content is not None
            found += pq.read_table(pa.BufferReader(content))["position"].to_pylist()
    return found


def broken(path: Path, end: int, gaps: set[int], uri: str | None = None) -> list[str]:
    """Return what is wrong with a log of so many rows that may be sealed in part, one sentence each."""
    wrong = []
    try:
        reader = Journal(path).reader(SOURCE)
        if (reader.first, reader.end) != (0, end):
            wrong.append(f"the log holds {reader.first} to {reader.end}")
        if positions(reader) != [*range(end)]:
            wrong.append("the rows are not what was appended")
        if missing := gaps - {gap.position for gap in reader.gaps()}:
            wrong.append(f"gaps at {sorted(missing)} are gone")
        if reader.damage():
            wrong.append(f"damage: {reader.damage()}")
    except JournalError as error:
        wrong.append(f"{type(error).__name__}: {error}")
    sealed = glob_positions(open_store(uri or path))
    if sealed != [*range(len(sealed))]:
        wrong.append("sealed rows are missing, or exist twice")
    return wrong
