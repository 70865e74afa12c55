"""The index of a segment's rows, as far as it has been read: only headers, and each once."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyarrow as pa

from .damage import Damage, Promise, salvage
from .format import Entry, Malformed, entry_at, genesis, preamble, preamble_bytes, scan
from .gaps import Gap, time_of
from .rows import check, decode

__all__ = ["Index", "Stored", "first_prev"]

_CHECKSUM_BYTES = 16
_DAMAGED = -1
"""The offset of missing rows."""


def first_prev(content: pa.Buffer | None, first: int, log: str) -> str | None:
    """Return the digest of the previous batch in a segment's first batch; None if it is unreadable."""
    if content is None:
        return None
    try:
        entry = entry_at(memoryview(content), preamble_bytes(content, log), content.size, 0)
    except Malformed:
        return None
    return entry.note.prev if entry is not None and entry.position == first else None


class Stored(NamedTuple):
    """Where a batch is, with its header."""

    first: int
    """The position of its first row."""
    end: int
    """The position after its last row."""
    path: str
    """The segment's file."""
    offset: int
    """The start of its message in the file, in bytes."""
    size: int
    """The bytes of its message."""


class Index:
    """The batches of one segment of `log`, in a chain: each names the previous one. `name` is its path, for errors."""

    __slots__ = (
        "_checksums", "_headers", "_offsets", "_sizes", "_sound", "_starts", "_times", "count", "damage", "end",
        "first", "gaps", "head", "last", "last_time", "log", "missing", "name", "offset", "prev", "sealed", "times",
    )  # fmt: skip

    def __init__(self, name: str, first: int, log: str) -> None:
        self.name = name
        self.first = first
        self.log = log
        self.sealed = False
        """True if it was read to its end, and no batch follows."""
        self.missing = False
        """True if the file is missing although it must exist."""
        self._clear()

    def _clear(self) -> None:
        self.end = self.first
        """The position after the last row that was found."""
        self.offset = 0
        """The end of what has been read, in bytes."""
        self.prev: str | None = None
        """The digest of the previous batch, from its first batch; None while there is no first batch."""
        self.head: str | None = genesis(self.log) if self.first == 0 else None
        """The digest of the last batch; None if unknown."""
        self.count = 0
        """The number of batches found."""
        self.last: Entry | None = None
        """The last batch found."""
        self.last_time: int | None = None
        """When its last row was appended: microseconds since 1970."""
        self.times: tuple[int, int] | None = None
        """When its earliest and its latest row were appended: a clock may go back. None if rows are damaged."""
        self.gaps: list[Gap] = []
        self.damage: list[Damage] = []
        """The damaged positions, according to headers."""
        # For each batch with rows: its first position, its start, the bytes of its header and of all of it, when it was
        # appended, the checksum of its body, and whether that was checked. Numbers instead of objects.
        self._starts = array("q")
        self._offsets = array("q")
        self._headers = array("q")
        self._sizes = array("q")
        self._times = array("q")
        self._checksums = bytearray()
        self._sound = bytearray()

    def extend(self, content: pa.Buffer, promise: Promise) -> None:
        """Read what has been added since the last time, and record any difference from the promise in `damage`.

        If nothing is known about the segment's end, an incomplete one is a torn tail.
        """
        limit = content.size if promise.size is None else min(promise.size, content.size)
        try:
            for entry in self.scan(content, limit, torn=promise.size is None):
                self.add(entry)
            why = self._broken(content, promise)
        except Malformed as bad:
            why = bad.why
        if why:
            self.rebuild(content, promise, why)

    def rebuild(self, content: pa.Buffer, promise: Promise, why: str) -> None:
        """Find the valid batches of a segment that differs from the promise."""
        entries, damage = salvage(content, self.first, self.log, promise, why)
        self._clear()
        at = 0
        for entry in entries:
            while at < len(damage) and (damage[at].end or 0) <= entry.position:
                self._skip(damage[at])
                at += 1
            self.add(entry)
        for each in damage[at:]:
            self._skip(each)
        if damage and damage[0].first == self.first:
            # The first batch may be the damaged one, even if it has no rows: then another one was first.
            self.prev = None
        self.damage = damage
        self.times = None if damage else self.times
        self.end = max(self.end, promise.end or 0)
        self.head = promise.head or self.head
        self.offset = self.offset if promise.size is None else promise.size

    def salvage(self, content: pa.Buffer) -> list[Entry]:
        """Return the batches in place of a segment whose end is unknown."""
        return salvage(content, self.first, self.log, Promise(), "")[0]

    def miss(self, promise: Promise) -> None:
        """Record that the file is missing although rows were promised."""
        self._clear()
        self.missing = True
        self.damage = [Damage(self.first, promise.end, "the file is missing")]
        self._skip(self.damage[0])
        self.head = promise.head

    def scan(self, content: pa.Buffer, limit: int, *, torn: bool) -> Iterator[Entry]:
        """Yield the batches after the known ones, up to `limit` bytes; `add` them one by one.

        With `torn` the segment may end within its schema. Raises `Malformed` where the next batch is not valid.
        """
        if self.offset == 0 < limit:
            expected = preamble(self.log)
            if torn and limit < len(expected) and expected.startswith(bytes(content.slice(0, limit))):
                return
            self.offset = preamble_bytes(content, self.log)
        if self.offset:
            yield from scan(content, self.offset, limit, self.end, self.head)

    def _broken(self, content: pa.Buffer, promise: Promise) -> str:
        """Return how the segment differs from the promise, or an empty string."""
        if promise.size is not None and content.size < promise.size:
            return f"the file has {content.size} bytes, but {promise.size} were durable"
        if promise.size is not None and self.offset != promise.size:
            return "a batch does not end at the expected place"
        if promise.end is not None and self.end != promise.end:
            return f"its rows end before position {self.end}, not {promise.end}"
        if promise.head is not None and self.head not in (promise.head, None):
            return "its last batch is not the one that was written"
        return ""

    def add(self, entry: Entry) -> None:
        """Add a batch, as yielded by `scan`, to the known ones."""
        note = entry.note
        end_offset = entry.end_offset
        if note.rows:
            self._starts.append(note.position)
            self._offsets.append(entry.offset)
            self._headers.append(entry.header_bytes)
            self._sizes.append(end_offset - entry.offset)
            self._times.append(note.time)
            self._checksums += entry.checksum
            self._sound.append(False)
            self.last_time = note.time
            earliest, latest = self.times or (note.time, note.time)
            self.times = min(earliest, note.time), max(latest, note.time)
        else:
            self.last_time = note.previous
            if note.gap is not None:
                previous = None if note.previous is None else time_of(note.previous)
                self.gaps.append(Gap(note.position, time_of(note.time), note.gap, previous))
        if self.prev is None:
            self.prev = note.prev
        self.count += 1
        self.end = note.position + note.rows
        self.offset = end_offset
        self.head = entry.digest
        self.last = entry

    def _skip(self, damage: Damage) -> None:
        if damage.end is not None and damage.end > damage.first:
            self._starts.append(damage.first)
            self._offsets.append(_DAMAGED)
            self._headers.append(0)
            self._sizes.append(0)
            self._times.append(0)
            self._checksums += bytes(_CHECKSUM_BYTES)
            self._sound.append(False)
            self.end = damage.end

    def locate(self, position: int) -> tuple[int, int]:
        """Return the first and the end position of the batch, or the damage, with a given row of this segment."""
        return self._bounds(bisect_right(self._starts, position) - 1)

    def parts(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield for each batch between two positions: first and end position within these, and its share of bytes."""
        for at in self._range(start, end):
            first, stop = self._bounds(at)
            cut_first, cut_stop = max(first, start), min(stop, end)
            yield cut_first, cut_stop, self._sizes[at] * (cut_stop - cut_first) // (stop - first)

    def batches(
        self, content: pa.Buffer, start: int, end: int, accepted: Callable[[int, int], bool]
    ) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield the rows between two positions as they were appended, without copying.

        Each comes with the bytes of the whole batch, because Arrow is slow to compute those of a slice. A batch that
        differs from what was written raises `JournalCorrupt`, unless `accepted` returns True for its positions.
        """
        self._check_records(start, end, accepted)
        for at in self._range(start, end):
            first, stop = self._bounds(at)
            try:
                batch, size = self._batch(content, at, stop - first)
            except Malformed as bad:
                if accepted(first, stop):
                    continue
                raise Damage(first, stop, bad.why).error(self.name) from None
            if start > first or end < stop:
                batch = batch.slice(max(start - first, 0), min(end, stop) - max(start, first))
            yield batch, size

    def _check_records(self, start: int, end: int, accepted: Callable[[int, int], bool]) -> None:
        """Raise `JournalCorrupt` for a damaged record without rows between two positions, unless it is accepted."""
        for damage in self.damage:
            at = damage.first
            within = start <= at < end or at == end == self.end
            if at == damage.end and within and not accepted(at, at):
                raise damage.error(self.name)

    def stored(self, start: int, end: int, accepted: Callable[[int, int], bool]) -> Iterator[Stored]:
        """Yield where the batches with rows between two positions are; errors as for `batches`, from headers alone."""
        self._check_records(start, end, accepted)
        for at in self._range(start, end):
            first, stop = self._bounds(at)
            if self._offsets[at] != _DAMAGED:
                yield Stored(first, stop, self.name, self._offsets[at], self._sizes[at])
            elif not accepted(first, stop):
                raise Damage(first, stop, self._reason(first)).error(self.name)

    def verify(self, content: pa.Buffer) -> Iterator[tuple[int, int, str]]:
        """Yield for each batch: first and end position, and its problem, or an empty string."""
        for at in range(len(self._starts)):
            first, stop = self._bounds(at)
            why = ""
            try:
                self._batch(content, at, stop - first)
            except Malformed as bad:
                why = bad.why
            yield first, stop, why

    def _batch(self, content: pa.Buffer, at: int, rows: int) -> tuple[pa.RecordBatch, int]:
        offset, size = self._offsets[at], self._sizes[at]
        if offset == _DAMAGED:
            raise Malformed(self._reason(self._starts[at]), 0, 0)
        if offset + size > content.size:
            raise Malformed("the file was cut while it was read", 0, 0)
        message = content.slice(offset, size)
        if self._sound[at]:
            return decode(message), size
        checksum = self._checksums[_CHECKSUM_BYTES * at : _CHECKSUM_BYTES * (at + 1)]
        batch = check(message, self._headers[at], rows, self._times[at], checksum)
        self._sound[at] = True
        return batch, size

    def _reason(self, first: int) -> str:
        return next((damage.why for damage in self.damage if damage.first == first), "")

    def _bounds(self, at: int) -> tuple[int, int]:
        stop = self._starts[at + 1] if at + 1 < len(self._starts) else self.end
        return self._starts[at], stop

    def _range(self, start: int, end: int) -> range:
        """Return the batches with rows between two positions."""
        if start >= end or not self._starts:
            return range(0)
        return range(max(bisect_right(self._starts, start) - 1, 0), bisect_right(self._starts, end - 1))
