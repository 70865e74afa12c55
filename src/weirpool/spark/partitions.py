"""The rows of a micro-batch, limited by number and bytes, and its partitions: parts of about equal bytes."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, pairwise

from pyspark.sql.datasource import InputPartition

from ..journal.layout import Extent

__all__ = ["JournalPartition", "Range", "Served", "Tasks", "limit_bytes", "limit_rows", "split"]

Ranges = Mapping[str, tuple[int, int]]
"""First and end position by source."""
_State = list[tuple[str, int, int, str]]
"""The values of ranges."""
Served = tuple[str, str]
"""The URL of a collector, and the name of its machine."""
TASK_BYTES = 128 * 1024 * 1024
"""Bytes of a task when nothing else is known of the cluster, as in Spark's file sources."""
MIN_ROWS = 10_000
"""Rows below which another task costs more than it saves, unless the user asked for it."""


@dataclass(frozen=True, slots=True)
class Range:
    """Consecutive rows of one source."""

    source: str
    """The source."""
    first: int
    """The position of the first row."""
    end: int
    """The position after the last."""
    log: str
    """The UUID of the log that these positions belong to."""


class JournalPartition(InputPartition):
    """The ranges that one task reads.

    Attributes:
        served: The collector to ask where the journal's folder is missing; None: there is none.

    """

    def __init__(self, ranges: list[Range], served: Served | None = None) -> None:
        super().__init__(None)
        self.ranges = ranges
        self.served = served

    def __reduce__(self) -> tuple[Callable[..., JournalPartition], tuple[_State, Served | None]]:
        # Spark sends it for each task, and there may be a range for each of 10,000 sources.
        return _partition, ([(each.source, each.first, each.end, each.log) for each in self.ranges], self.served)

    def __repr__(self) -> str:
        return f"JournalPartition({self.ranges})"


def _partition(rows: _State, served: Served | None = None) -> JournalPartition:
    return JournalPartition([Range(*row) for row in rows], served)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """How many tasks read a batch. By default it is one per core, or more if there are many bytes."""

    count: int | None = None
    """Their number, unless there are fewer rows."""
    at_least: int | None = None
    """The minimum, unless there are fewer rows."""
    max_rows: int | None = None
    """The maximum rows of each; None: no limit."""

    def number(self, rows: int, size: int) -> int:
        """Return the number of tasks for some rows of some bytes, apart from `max_rows`."""
        by_size = max(min(_cores(), -(-rows // MIN_ROWS)), -(-size // TASK_BYTES))
        return min(rows, self.count or max(by_size, self.at_least or 1))


@dataclass(frozen=True, slots=True)
class _Piece:
    """The part of a range in one segment."""

    range: Range
    size: int


def split(
    ranges: Sequence[Range], tasks: Tasks, segments: Callable[[str], Iterable[Extent]] = lambda source: ()
) -> list[JournalPartition]:
    """Split consecutive ranges into parts of about equal bytes, at the ends of segments if one is near.

    `segments` returns those of a source; rows outside them count by their number.
    """
    pieces = [piece for each in ranges if each.first < each.end for piece in _pieces(each, segments(each.source))]
    rows, size = sum(map(_rows, pieces)), sum(piece.size for piece in pieces)
    parts = _cut(pieces, tasks.number(rows, size), near=8)
    if tasks.max_rows is not None:
        by_rows = ([_Piece(each.range, _rows(each)) for each in part] for part in parts)
        parts = (each for part in by_rows for each in _cut(part, -(-sum(map(_rows, part)) // tasks.max_rows)))
    return [JournalPartition(_joined(part)) for part in parts]


def _rows(piece: _Piece) -> int:
    return piece.range.end - piece.range.first


def _pieces(whole: Range, segments: Iterable[Extent]) -> Iterator[_Piece]:
    at = whole.first
    for extent in segments:
        first, end = max(at, extent.first), min(whole.end, extent.end)
        if first < end:
            if at < first:
                yield _Piece(replace(whole, first=at, end=first), first - at)
            yield _Piece(replace(whole, first=first, end=end), max(extent.bytes_between(first, end), end - first))
            at = end
    if at < whole.end:
        yield _Piece(replace(whole, first=at), whole.end - at)


def _cut(pieces: Sequence[_Piece], count: int, near: int | None = None) -> Iterator[list[_Piece]]:
    """Yield up to `count` parts of equal sizes, none of them empty.

    With `near`, a part ends with a piece if that is not further away than one part's size divided by it.
    """
    if not pieces or not count:
        return
    ends = [*accumulate(piece.size for piece in pieces)]
    slack = ends[-1] // (count * near) if near else 0
    within = [_place(pieces, ends, ends[-1] * part // count, slack) for part in range(1, count)]
    cuts = [(0, pieces[0].range.first), *within, (len(pieces) - 1, pieces[-1].range.end)]
    for (begun, first), (last, end) in pairwise(cuts):
        part = [*pieces[begun : last + 1]]
        part[-1] = _clip(part[-1], 0, end)
        part[0] = _clip(part[0], first, part[0].range.end)
        if found := [piece for piece in part if _rows(piece) > 0]:
            yield found


def _clip(piece: _Piece, first: int, end: int) -> _Piece:
    whole = piece.range
    return replace(piece, range=replace(whole, first=max(whole.first, first), end=min(whole.end, end)))


def _place(pieces: Sequence[_Piece], ends: Sequence[int], target: int, slack: int) -> tuple[int, int]:
    """Return the piece and the position at which this size is reached, or nearly."""
    at = bisect_left(ends, target)
    piece = pieces[at]
    before = target - (ends[at] - piece.size)
    if before <= slack:
        return at, piece.range.first
    if piece.size - before <= slack:
        return at, piece.range.end
    return at, piece.range.first + _rows(piece) * before // piece.size


def _joined(pieces: Iterable[_Piece]) -> list[Range]:
    """Return the ranges of pieces, with consecutive ones of a log as one."""
    joined: list[Range] = []
    for each in (piece.range for piece in pieces):
        if joined and (joined[-1].source, joined[-1].end, joined[-1].log) == (each.source, each.first, each.log):
            each = replace(joined.pop(), end=each.end)
        joined.append(each)
    return joined


def _cores() -> int:
    """Return the number of this machine's cores that this process may use: in local mode, those of Spark."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def limit_rows(ranges: Ranges, max_rows: int) -> dict[str, tuple[int, int]]:
    """Reduce ranges to at most `max_rows` rows in total, each in proportion to its rows.

    If there are any rows, some remain, so that a query always makes progress.
    """
    total = sum(end - first for first, end in ranges.values())
    if total <= max_rows:
        return dict(ranges)
    limited = {}
    # The smallest range first: a quiet source gets its row even next to a busy one.
    for source, (first, end) in sorted(ranges.items(), key=lambda item: item[1][1] - item[1][0]):
        rows = end - first
        share = -(-max_rows * rows // total) if rows else 0
        limited[source] = (first, first + share)
        max_rows -= share
        total -= rows
    return limited


def limit_bytes(ranges: Ranges, max_bytes: int, size: Callable[[str, int, int], int]) -> dict[str, tuple[int, int]]:
    """Reduce ranges to about `max_bytes` in total, each in proportion to its bytes, but at least one row.

    `size` returns the approximate bytes between two positions of a source.
    """
    sizes = {source: size(source, first, end) for source, (first, end) in ranges.items()}
    total = sum(sizes.values())
    if total <= max_bytes:
        return dict(ranges)
    limited = {}
    for source, (first, end) in ranges.items():
        share = max_bytes * sizes[source] // total
        fitting = bisect_right(range(first, end), share, key=partial(size, source, first)) - 1
        limited[source] = (first, first + max(fitting, min(1, end - first)))
    return limited
