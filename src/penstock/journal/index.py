"""Which rows lie where in a segment, as far as it has been looked through: headers only, and each once."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from .format import Entry, Malformed, body_is_sound, corrupt, decode, preamble_bytes, scan
from .gaps import Gap

__all__ = ["Index", "gap_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def gap_of(entry: Entry) -> Gap | None:
    """Return the gap that a batch records, or None if it is of another kind."""
    note = entry.note
    if note.gap is None:
        return None
    return Gap(note.position, _EPOCH + timedelta(microseconds=note.time), note.gap)


class Index:
    """The batches of one segment.

    Args:
        name: The segment's path, for errors.
        first: The position of its first row.

    """

    __slots__ = ("_offsets", "_sound", "_starts", "end", "first", "gaps", "name", "offset")

    def __init__(self, name: str, first: int) -> None:
        self.name = name
        self.first = first
        self.end = first
        """The position behind the last row that was found."""
        self.offset = 0
        """Up to where the segment has been looked through, in bytes."""
        self.gaps: list[Gap] = []
        # Of each batch that has rows, its first position, where it starts, and whether its body was checked: a
        # worker may read a batch often. Numbers, no objects.
        self._starts = array("q")
        self._offsets = array("q")
        self._sound = bytearray()

    def extend(self, content: pa.Buffer, limit: int, following: int | None, *, whole: bool) -> None:
        """Look through what has come since the last time.

        Args:
            content: The segment.
            limit: Where to stop, in bytes.
            following: The first position of the next segment, if there is one.
            whole: Whether a batch must end at `limit`; else what is left before it is a torn tail.

        Raises:
            JournalCorrupt: What is there was never written so.

        """
        try:
            if self.offset == 0 < limit:
                self.offset = preamble_bytes(content)
            for entry in scan(content, self.offset, limit, self.end):
                self._add(entry)
        except Malformed as bad:
            raise corrupt(self.name, max(bad.position, self.end), following, bad.why) from None
        if whole and self.offset < limit:
            raise corrupt(self.name, self.end, following, "a batch does not end where it should")

    def _add(self, entry: Entry) -> None:
        if entry.note.rows:
            self._starts.append(entry.position)
            self._offsets.append(entry.offset)
            self._sound.append(False)
        gap = gap_of(entry)
        if gap is not None:
            self.gaps.append(gap)
        self.end = entry.end
        self.offset = entry.end_offset

    def locate(self, position: int) -> tuple[int, int]:
        """Return the first and the end position of the batch that holds a row which is in this segment."""
        return self._bounds(bisect_right(self._starts, position) - 1)

    def parts(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield of each batch between two positions: first and end position, cut to these, and its share of bytes."""
        for at in self._range(start, end):
            first, behind = self._bounds(at)
            offset = self._offsets[at + 1] if at + 1 < len(self._offsets) else self.offset
            cut_first, cut_behind = max(first, start), min(behind, end)
            yield cut_first, cut_behind, (offset - self._offsets[at]) * (cut_behind - cut_first) // (behind - first)

    def batches(self, content: pa.Buffer, start: int, end: int) -> Iterator[tuple[pa.RecordBatch, int]]:
        """Yield the rows between two positions as they were appended, cut to these; nothing is copied.

        With each come the bytes of the whole batch: Arrow takes long to count those of a slice.

        Raises:
            JournalCorrupt: A batch is not what was written.

        """
        for at in self._range(start, end):
            first, behind = self._bounds(at)
            entry = self._checked(content, at, first, behind)
            batch = decode(content, entry)
            if start > first or end < behind:
                batch = batch.slice(max(start - first, 0), min(end, behind) - max(start, first))
            yield batch, entry.body_bytes

    def _checked(self, content: pa.Buffer, at: int, first: int, behind: int) -> Entry:
        try:
            entry = next(scan(content, self._offsets[at], content.size, first), None)
        except Malformed as bad:
            raise corrupt(self.name, first, behind, bad.why) from None
        if entry is None or entry.end != behind:
            raise corrupt(self.name, first, behind, "the file was cut while it was read")
        if not self._sound[at]:
            if not body_is_sound(content, entry):
                raise corrupt(self.name, first, behind, "the CRC32C of its body is another")
            self._sound[at] = True
        return entry

    def _bounds(self, at: int) -> tuple[int, int]:
        behind = self._starts[at + 1] if at + 1 < len(self._starts) else self.end
        return self._starts[at], behind

    def _range(self, start: int, end: int) -> range:
        """Return the batches that hold rows between two positions."""
        if start >= end or not self._starts:
            return range(0)
        return range(max(bisect_right(self._starts, start) - 1, 0), bisect_right(self._starts, end - 1))
