"""The rows of a range, as a collector sends them: bytes of its files, which it does not decode."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from ..errors import DataLost, JournalError, JournalUnavailable
from ..journal.counts import check_span
from ..journal.disk import converted
from ..journal.index import Stored
from ..journal.ports import LogReader
from ..journal.reader import JournalReader
from .frames import HEAD_BYTES, Form, Head, encode_rows

__all__ = ["CHUNK_BYTES", "OVER", "Part", "Place", "chunks"]

CHUNK_BYTES: Final = 1 << 20
"""The most bytes to read at once: what a range holds in memory, besides what waits to be sent."""
_SMALL_BYTES = 1 << 18
"""A batch up to this size is sent as it is, even if few of its rows are wanted."""


class Place(NamedTuple):
    """Where a range continues."""

    position: int
    """The first position of the frame."""
    sent: int = 0
    """The bytes of the frame that were sent."""
    size: int = 0
    """The bytes of the frame, if some of them were sent: it must be the same frame again."""


OVER: Final = Place(-1)
"""The place after the last frame."""


class Part(NamedTuple):
    """Bytes of a frame."""

    content: pa.Buffer
    """The bytes."""
    after: Place | None
    """Where the range continues after them; None: within a frame that cannot be made again."""
    before: Place | None = None
    """Where they are in the frame, if it can be made again from there."""

    def split(self, size: int) -> tuple[Part, Part | None]:
        """Return at most so many bytes, and the rest."""
        if self.content.size <= size:
            return self, None
        middle = None if self.before is None else self.before._replace(sent=self.before.sent + size)
        return Part(self.content.slice(0, size), middle, self.before), Part(
            self.content.slice(size), self.after, middle
        )


def chunks(
    hot: JournalReader,
    whole: Callable[[], LogReader],
    place: Place,
    end: int,
    *,
    columns: Sequence[str] | None = None,
    skip_records: bool = False,
) -> Iterator[Part]:
    """Yield the frames of a range, in parts. Each step may wait for the disk: run it in a thread.

    Batches are sent as they are in the file, with their checksums, unless the larger part of one is not wanted. Between
    two parts no file is open.

    Args:
        hot: The segments on this disk.
        whole: Returns a reader that also has the rows before these, if they are anywhere.
        place: Where to begin: a position, or where earlier parts of the same range ended.
        end: The position after the last.
        columns: The columns that are wanted; more of them may be sent.
        skip_records: As for `JournalReader.read`, which also describes the errors.

    """
    start = place.position
    check_span(f"source {hot.source!r}", start, end)
    at = min(max(start, hot.first), end)
    as_stored = columns is None or "data" in columns
    if place.sent and (start < at or not as_stored):
        raise _moved(start)
    if start < at:
        yield from _rows(whole(), start, at, start, columns, skip_records)
    if at < end and not as_stored:
        yield from _rows(hot, at, end, at, columns, skip_records)
        at = end
    elif at < end:
        for run in _runs(hot, at, end, skip_records):
            first, stop = max(run[0].first, at), min(run[-1].end, end)
            if _is_wanted(run, start, end):
                yield from _stored(run, place if at == start else Place(at), stop)
            elif place.sent and at == start:
                raise _moved(start)
            else:
                yield from _rows(hot, first, stop, at, columns, skip_records)
            at = stop
    yield Part(pa.py_buffer(Head(at, end, end, 0, Form.NOTHING).encode()), OVER)


def _moved(position: int) -> JournalUnavailable:
    return JournalUnavailable(
        f"the rows from position {position} on were sealed or repaired while they were sent; ask for the rest again"
    )


def _runs(reader: JournalReader, start: int, end: int, skip_records: bool) -> Iterator[list[Stored]]:
    """Yield batches that lie one after the other in a file, together up to the size of a chunk."""
    run: list[Stored] = []
    size = 0
    for each in reader.stored(start, end, skip_records=skip_records):
        adjacent = run and (run[-1].path, run[-1].offset + run[-1].size) == (each.path, each.offset)
        if run and (not adjacent or size + each.size > CHUNK_BYTES):
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


def _stored(run: list[Stored], place: Place, stop: int) -> Iterator[Part]:
    """Yield one frame with the bytes of a run; or what is left of it. The range continues at `stop`."""
    first, end = run[0].first, run[-1].end
    size = sum(each.size for each in run)
    head = Head(min(place.position, first), first, end, size, Form.STORED).encode()
    total = len(head) + size
    sent = place.sent
    if sent and total != place.size:
        raise _moved(place.position)
    while sent < total:
        # The head is beside the bytes of the file.
        part = min(CHUNK_BYTES + max(len(head) - sent, 0), total - sent)
        # Not memory-mapped: a page that must be read from the disk would stop all threads.
        content = pa.allocate_buffer(part)
        view = memoryview(content).cast("B")
        begin = head[sent : sent + part]
        view[: len(begin)] = begin
        if len(begin) < part:
            _fill(run[0], view[len(begin) :], sent + len(begin) - len(head), end)
        before, sent = Place(place.position, sent, total), sent + part
        yield Part(content, Place(stop) if sent == total else before._replace(sent=sent), before)


def _fill(stored: Stored, view: memoryview, offset: int, end: int) -> None:
    """Read the bytes of a run, which begins with a batch, from an offset in the run on."""
    path, filled = stored.path, 0
    try:
        with open(path, "rb", buffering=0) as file:
            while filled < len(view):
                count = os.preadv(file.fileno(), [view[filled:]], stored.offset + offset + filled)
                if not count:
                    raise JournalError(f"{path}: the file was cut while it was read; see `weirpool journal verify`")
                filled += count
    except FileNotFoundError:
        raise DataLost(
            f"{path}: positions {stored.first} to {end - 1} were trimmed while they were read; start at the earliest "
            "position"
        ) from None
    except OSError as error:
        raise converted(error, path, "be read") from error


def _rows(
    reader: LogReader,
    start: int,
    end: int,
    begin: int,
    columns: Sequence[str] | None,
    skip_records: bool,
) -> Iterator[Part]:
    """Yield frames with rows that are encoded again."""
    names = None if columns is None else list(dict.fromkeys(["position", *columns]))
    for batch in reader.read(start, end, columns=names, skip_records=skip_records):
        for rows in _sliced(batch):
            positions = rows.column("position")
            first, stop = positions[0].as_py(), positions[-1].as_py() + 1
            body = encode_rows(rows)
            yield from _parts(Head(begin, first, stop, body.size, Form.ROWS).encode(), body, stop)
            begin = stop


def _sliced(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch, about as many at once as fit into a chunk."""
    step = max(1, batch.num_rows * CHUNK_BYTES // max(batch.nbytes, 1))
    for first in range(0, batch.num_rows, step):
        yield batch.slice(first, step)


def _parts(head: bytes, body: pa.Buffer, stop: int) -> Iterator[Part]:
    assert len(head) == HEAD_BYTES
    yield Part(pa.py_buffer(head), None)
    for offset in range(0, body.size, CHUNK_BYTES):
        part = body.slice(offset, min(CHUNK_BYTES, body.size - offset))
        yield Part(part, Place(stop) if offset + part.size == body.size else None)
