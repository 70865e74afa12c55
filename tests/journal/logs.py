"""Small logs to try things on: rows whose data is the text of their number."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.journal import ITEMS, JournalReader, JournalWriter
from penstock.journal.layout import log_folder, segment_name

SOURCE = "s"


def items(start: int, count: int, width: int = 0) -> pa.RecordBatch:
    """Return items whose data is their number, padded to `width`; those of even numbers have metadata."""
    numbers = range(start, start + count)
    data = pa.array([b"%0*d" % (width, number) for number in numbers], pa.binary())
    metadata = pa.array([None if number % 2 else b"m%d" % number for number in numbers], pa.binary())
    return pa.record_batch([data, metadata], schema=ITEMS)


def append(writer: JournalWriter, *counts: int, width: int = 0) -> int:
    """Append batches of so many rows, numbered by position, and return the position behind them."""
    for count in counts:
        writer.append(items(writer.position, count, width), "numbers", b"at %d" % (writer.position + count))
    return writer.position


def write(path: Path, *counts: int, segment_bytes: int = 1 << 26) -> Path:
    """Write a log of such batches and return its folder."""
    with JournalWriter.open(path, SOURCE, segment_bytes=segment_bytes, fsync=False) as writer:
        append(writer, *counts)
    return log_folder(path, SOURCE)


def numbers(reader: JournalReader, start: int | None = None, end: int | None = None) -> list[int]:
    """Return the numbers in the rows of a range, after a look at the other columns."""
    first = reader.first if start is None else start
    behind = reader.end if end is None else end
    found: list[int] = []
    for batch in reader.read(first, behind):
        values = [int(data) for data in batch["data"].to_pylist()]
        assert batch["position"].to_pylist() == list(range(first + len(found), first + len(found) + len(values)))
        assert batch["metadata"].to_pylist() == [None if value % 2 else b"m%d" % value for value in values]
        found += values
    return found


def segment(folder: Path, first: int = 0) -> Path:
    """Return the path of a log's segment."""
    return folder / segment_name(first)


def flip(path: Path, offset: int, bit: int = 0) -> None:
    """Turn one bit of a file."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))
