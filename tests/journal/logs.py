"""Small logs to try things on: rows whose data is the text of their number."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from weirpool.journal import ITEMS, JournalReader, JournalWriter
from weirpool.journal.format import Entry, preamble_bytes, scan
from weirpool.journal.layout import DURABLE, log_folder, segment_name
from weirpool.journal.mark import Mark
from weirpool.journal.storage import LogFolder

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


def all_numbers(path: Path) -> list[int]:
    """Return the numbers in all rows of a journal's log."""
    return numbers(JournalReader(path, SOURCE))


def all_positions(path: Path) -> list[int]:
    """Return the positions of all rows of a journal's log."""
    reader = JournalReader(path, SOURCE)
    return [position for batch in reader.read(reader.first, reader.end) for position in batch["position"].to_pylist()]


def segment(folder: Path, first: int = 0) -> Path:
    """Return the path of a log's segment."""
    return folder / segment_name(first)


def uuid(folder: Path) -> str:
    """Return the UUID of a log."""
    identity = LogFolder.local(folder).identity()
    assert identity is not None
    return identity.uuid


def entries(folder: Path) -> list[tuple[int, Entry]]:
    """Return the batches of a log that is sound, each with the segment that it is in."""
    found = []
    for path in sorted(folder.glob("*.arrows")):
        content = pa.py_buffer(path.read_bytes())
        first = int(path.stem)
        found += [
            (first, entry) for entry in scan(content, preamble_bytes(content, uuid(folder)), content.size, first, None)
        ]
    return found


def set_mark(folder: Path, end: int) -> Mark:
    """Have the mark of a log that is sound tell the last batch that ends at a position, and return it."""
    first, entry = [each for each in entries(folder) if each[1].end == end][-1]
    mark = Mark(first, entry.end_offset, end, entry.digest)
    (folder / DURABLE).write_bytes(mark.encode(1))
    return mark


def flip(path: Path, offset: int, bit: int = 0) -> None:
    """Turn one bit of a file."""
    with open(path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)[0]
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))
