"""The journal's work on the simulated disk, and the guarantees to check afterwards."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from weirpool.errors import JournalError
from weirpool.journal import ITEMS, Journal, JournalWriter
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import trim

__all__ = ["Promises", "broken_promises", "unnoticed", "work"]

T = TypeVar("T")
SOURCE = "s"
READER = "r"
BATCH_ROWS = 5
ROUNDS = 3
BATCHES = 6
SEGMENT_BYTES = 3_000
"""Two or three batches each."""
RETRIES = 5


def rows_from(position: int) -> pa.RecordBatch:
    """Return the rows that belong at this position and after it."""
    data = [b"row %d" % number for number in range(position, position + BATCH_ROWS)]
    return pa.record_batch([pa.array(data, pa.binary()), pa.nulls(BATCH_ROWS, pa.binary())], schema=ITEMS)


@dataclass
class Promises:
    """The guarantees given before the power cut.

    Attributes:
        end: Rows before it are durable: `append` has returned for them.
        attempted: Rows from there on may be there: `append` was called with them.
        gaps: Positions of gaps that are durable.
        trimmed: Rows before it may be gone: their reader has committed.

    """

    end: int = 0
    attempted: int = 0
    gaps: list[int] = field(default_factory=list)
    trimmed: int = 0


def work(journal: Path, promises: Promises) -> None:
    """Open, append, record gaps, trim and close, several times; retry after an error of the disk."""
    for turn in range(ROUNDS):
        writer = _patiently(lambda: JournalWriter.open(journal, SOURCE, segment_bytes=SEGMENT_BYTES))
        promises.end = max(promises.end, writer.position)
        for number in range(BATCHES):
            _append(writer, promises)
            if number == turn:
                _record_gap(writer, promises)
        promises.trimmed = promises.end - 12
        _patiently(lambda: trim(log_folder(journal, SOURCE), promises.trimmed, reader=READER, retain_bytes=0))
        writer.refresh()
        # The next writer syncs data that an error left unsynced.
        with suppress(JournalError):
            writer.close()


def _record_gap(writer: JournalWriter, promises: Promises) -> None:
    _patiently(lambda: writer.append_gap("test", _state(writer.position)))
    promises.gaps.append(writer.position)


def _append(writer: JournalWriter, promises: Promises) -> None:
    position = writer.position
    promises.attempted = max(promises.attempted, position + BATCH_ROWS)
    _patiently(lambda: writer.append(rows_from(position), "route", _state(position + BATCH_ROWS)))
    promises.end = writer.position


def _state(position: int) -> bytes:
    return b"%d" % position


def _patiently(call: Callable[[], T]) -> T:
    """Call again after an error of the disk, as a collector does."""
    for _ in range(RETRIES):
        try:
            return call()
        except JournalError:
            pass
    return call()


def broken_promises(journal: Path, promises: Promises) -> list[str]:
    """Return the guarantees that a journal breaks after the power cut, one sentence each."""
    try:
        return _broken(journal, promises)
    except JournalError as error:
        return [f"{type(error).__name__}: {error}"]


def _broken(journal: Path, promises: Promises) -> list[str]:
    if not (journal / f"source={SOURCE}").is_dir():
        return ["the log is gone"] if promises.end or promises.gaps else []
    broken: list[str] = []
    with JournalWriter.open(journal, SOURCE, segment_bytes=SEGMENT_BYTES) as writer:
        position, state = writer.position, writer.state
        if not promises.end <= position <= promises.attempted:
            broken.append(f"the log ends at {position}, not between {promises.end} and {promises.attempted}")
        if position and state != _state(position):
            broken.append(f"the state is that of {state!r}, not of {position}")
        writer.append(rows_from(position), "route", _state(position + BATCH_ROWS))
    reader = Journal(journal).reader(SOURCE)
    if reader.first > max(0, promises.trimmed):
        broken.append(f"the log begins at {reader.first}; rows from {promises.trimmed} on are needed")
    held = [value for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]
    if held != [b"row %d" % number for number in range(reader.first, reader.end)]:
        broken.append("the rows are not what was appended")
    if missing := set(promises.gaps) - {gap.position for gap in reader.gaps(0)}:
        broken.append(f"gaps at {sorted(missing)} are gone")
    if problems := Journal(journal).verify()[SOURCE].problems:
        broken.append(f"verify says: {problems}")
    return broken


def unnoticed(journal: Path) -> list[str]:
    """Return the undetected errors of a log whose disk ignored fsync, one sentence each.

    A disk that lies can take durable rows away. Whatever survives must then be either refused, or a log that is
    whole up to its end: never rows in the place of others, and never less than a mark that has survived tells.
    """
    if not (journal / f"source={SOURCE}").is_dir():
        return []
    report = Journal(journal).verify()[SOURCE]
    try:
        reader = Journal(journal).reader(SOURCE)
        held = [value for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]
    except JournalError as error:
        return [] if report.problems else [f"verify finds the log sound, and reading says {error}"]
    wrong = []
    if held != [b"row %d" % number for number in range(reader.first, reader.end)]:
        wrong.append("rows stand in the place of others")
    # A writer may reject data that readers ignore, because it knows the data after the mark.
    with suppress(JournalError), JournalWriter.open(journal, SOURCE) as writer:
        if writer.position < reader.end:
            wrong.append(f"the writer goes on at {writer.position}, and readers have seen rows up to {reader.end}")
    return wrong
