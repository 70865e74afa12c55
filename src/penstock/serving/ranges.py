"""The rows of a range, as a collector sends them: bytes of its files, which it does not decode."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from ..errors import DataLost, JournalError
from ..journal.disk import converted
from ..journal.index import Stored
from ..journal.ports import LogReader
from ..journal.reader import JournalReader
from .frames import HEAD_BYTES, Form, Head, encode_rows

__all__ = ["chunks"]

_CHUNK_BYTES = 1 << 20
"""The bytes to read at once: what a range holds in memory, besides what waits to be sent."""
_SMALL_BYTES = 1 << 18
"""A batch up to this size is sent as it is, even if few of its rows are wanted."""


def chunks(
    hot: JournalReader,
    whole: Callable[[], LogReader],
    start: int,
    end: int,
    *,
    columns: Sequence[str] | None = None,
    skip_records: bool = False,
) -> Iterator[pa.Buffer]:
    """Yield the frames of a range, in parts of about a megabyte. Each step may wait for the disk: run it in a thread.

    Batches are sent as they are in the file, with their checksums, unless the larger part of one is not wanted.

    Args:
        hot: The segments on this disk.
        whole: Returns a reader that also has the rows before these, if they are anywhere.
        start: The first position.
        end: The position after the last.
        columns: The columns that are wanted; more of them may be sent.
        skip_records: As for `JournalReader.read`, which also describes the errors.

    """
    at = min(max(start, hot.first), end)
    if start < at:
        yield from _rows(whole(), start, at, start, columns, skip_records)
    if at < end and columns is not None and "data" not in columns:
        yield from _rows(hot, at, end, at, columns, skip_records)
        at = end
    elif at < end:
        for run in _runs(hot, at, end, skip_records):
            first, stop = max(run[0].first, at), min(run[-1].end, end)
            if _is_wanted(run, start, end):
                yield from _stored(run, at)
            else:
                yield from _rows(hot, first, stop, at, columns, skip_records)
            at = stop
    yield pa.py_buffer(Head(at, end, end, 0, Form.NOTHING).encode())


def _runs(reader: JournalReader, start: int, end: int, skip_records: bool) -> Iterator[list[Stored]]:
    """Yield batches that lie one after the other in a file, together up to the size of a chunk."""
    run: list[Stored] = []
    size = 0
    for each in reader.stored(start, end, skip_records=skip_records):
        adjacent = run and (run[-1].path, run[-1].offset + run[-1].size) == (each.path, each.offset)
        if run and (not adjacent or size + each.size > _CHUNK_BYTES):
            yield run
            run, size = [], 0
        run.append(each)
        size += each.size
    if run:
        yield run


def _is_wanted(run: list[Stored], start: int, end: int) -> bool:
    """Return True if a run is small, or at least half of its rows are in the range."""
    first, stop = run[0].first, run[-1].end
    size = sum(each.size for each in run)
    return size <= _SMALL_BYTES or 2 * (min(stop, end) - max(first, start)) >= stop - first


def _stored(run: list[Stored], begin: int) -> Iterator[pa.Buffer]:
    """Yield one frame with the bytes of a run."""
    first, end = run[0].first, run[-1].end
    size = sum(each.size for each in run)
    head = Head(min(begin, first), first, end, size, Form.STORED).encode()
    path, offset = run[0].path, run[0].offset
    try:
        with open(path, "rb", buffering=0) as file:
            stop = offset + size
            while offset < stop:
                part = min(_CHUNK_BYTES, stop - offset)
                # Not memory-mapped: a page that must be read from the disk would stop all threads.
                content = pa.allocate_buffer(len(head) + part)
                view = memoryview(content).cast("B")
                view[: len(head)] = head
                _fill(file.fileno(), view[len(head) :], offset, path)
                yield content
                offset += part
                head = b""
    except FileNotFoundError:
        raise DataLost(
            f"{path}: positions {first} to {end - 1} were trimmed while they were read; start at the earliest position"
        ) from None
    except OSError as error:
        raise converted(error, path, "be read") from error


def _fill(fd: int, view: memoryview, offset: int, path: str) -> None:
    filled = 0
    while filled < len(view):
        count = os.preadv(fd, [view[filled:]], offset + filled)
        if not count:
            raise JournalError(f"{path}: the file was cut while it was read; see `penstock journal verify`")
        filled += count


def _rows(
    reader: LogReader, start: int, end: int, begin: int, columns: Sequence[str] | None, skip_records: bool
) -> Iterator[pa.Buffer]:
    """Yield frames with rows that are encoded again."""
    names = None if columns is None else list(dict.fromkeys(["position", *columns]))
    for batch in reader.read(start, end, columns=names, skip_records=skip_records):
        positions = batch.column("position")
        first, stop = positions[0].as_py(), positions[-1].as_py() + 1
        body = encode_rows(batch)
        head = Head(begin, first, stop, body.size, Form.ROWS).encode()
        yield from _parts(head, body)
        begin = stop


def _parts(head: bytes, body: pa.Buffer) -> Iterator[pa.Buffer]:
    assert len(head) == HEAD_BYTES
    yield pa.py_buffer(head)
    for offset in range(0, body.size, _CHUNK_BYTES):
        yield body.slice(offset, min(_CHUNK_BYTES, body.size - offset))
