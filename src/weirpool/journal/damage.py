"""Finds the valid batches of a damaged segment, and the damaged positions.

A batch contains the digest of the previous one, and the mark, or the next segment, that of the last one. A segment is
therefore searched from its end: a batch named by a valid one is the right one, regardless of the others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from ..errors import JournalCorrupt
from .format import Entry, Malformed, body_is_sound, entry_at, genesis, preamble_bytes, scan

__all__ = ["Damage", "Promise", "headers", "salvage"]

_CONTINUATION = b"\xff\xff\xff\xff"
_START = re.compile(_CONTINUATION)
_EFFORT = 4
"""Bytes to search without result, in multiples of the segment's size: a hostile file could make it quadratic."""
_LEAST_EFFORT = 1 << 24


@dataclass(frozen=True, slots=True)
class Promise:
    """The expected end of a segment, according to the mark or the next segment."""

    end: int | None = None
    """The position after its last row; None if unknown."""
    head: str | None = None
    """The digest of its last batch; None if unknown."""
    size: int | None = None
    """The end of its last batch, in bytes; None if further batches may follow, or be torn."""
    known: str | None = None
    """The digest of a batch that the log has, in this segment or another one."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Damaged positions of a segment."""

    first: int
    """The first of them."""
    end: int | None
    """The position after the last one; None if unknown. If it equals `first`, no row is missing, but a record between
    rows: a gap, or the collector's state."""
    why: str
    """What is wrong."""

    def error(self, name: str) -> JournalCorrupt:
        """Return the error for it in the segment `name`."""
        if self.end is None:
            what = f"positions from {self.first} on are damaged"
        elif self.end == self.first:
            what = f"a record before position {self.first} is damaged"
        else:
            what = f"positions {self.first} to {self.end - 1} are damaged"
        return JournalCorrupt(
            f"{name}: {what} ({self.why}); restore this file from a copy, or see what `weirpool journal repair` can do"
        )


def salvage(content: pa.Buffer, first: int, log: str, promise: Promise, why: str) -> tuple[list[Entry], list[Damage]]:
    """Return the batches of a segment that are in place, and the damage between them, both in order.

    Args:
        content: The segment.
        first: The position of its first row.
        log: The UUID of its log.
        promise: What is known about its end.
        why: The first problem that was found.
    """
    try:
        start = preamble_bytes(content, log)
    except Malformed as bad:
        # A segment of another log may still contain batches that this log's own batches name.
        found = list(headers(content, 0))
        rest = [entry for entry in found if entry.digest == promise.known]
        chain = _chain(found, rest, first, None, 0, promise)
        return chain, list(_between(content, chain, first, None, promise, bad.why))
    sound = _in_order(content, start, first, genesis(log) if first == 0 else None)
    end, offset = (sound[-1].end, sound[-1].end_offset) if sound else (first, start)
    found = list(headers(content, start))
    # A batch directly after the valid ones is misplaced, or it would be one of them.
    later = [entry for entry in found if entry.position >= end]
    rest = sound + [entry for entry in later if entry.offset > offset or entry.digest == promise.known]
    chain = _chain(found, rest, first, start, offset, promise)
    return chain, list(_between(content, chain, first, start, promise, why))


def _in_order(content: pa.Buffer, offset: int, position: int, head: str | None) -> list[Entry]:
    """Return the batches from the start of a segment up to the first invalid one."""
    found: list[Entry] = []
    with suppress(Malformed):
        found.extend(scan(content, offset, content.size, position, head))
    return found


def headers(content: pa.Buffer, offset: int) -> Iterator[Entry]:
    """Yield every batch with a valid header, from an offset on, skipping junk."""
    view = memoryview(content)
    effort = max(_EFFORT * content.size, _LEAST_EFFORT)
    while effort > 0:
        match = _START.search(view, offset)
        if match is None:
            return
        offset = match.start()
        try:
            entry = entry_at(view, offset, content.size, 0)
        except Malformed:
            entry = None
        if entry is None:
            effort -= min(int.from_bytes(view[offset + 4 : offset + 8], "little"), 1 << 20)
            offset += 1
            continue
        if entry.note.rows or body_is_sound(content, entry):
            yield entry
        offset = entry.end_offset
        if offset < content.size and view[offset : offset + 4] != _CONTINUATION and not body_is_sound(content, entry):
            # Part of its body is missing, so the next batch starts too early.
            offset = entry.offset + entry.header_bytes


def _chain(
    found: list[Entry], rest: list[Entry], first: int, start: int | None, sound: int, promise: Promise
) -> list[Entry]:
    """Return the batches of a segment that are in place, in order.

    Batches of `found` count if a later batch, or the promise, names them; those of `rest` even if the batch that would
    name them is missing. The first batch starts at byte `start`, if that is known; batches up to byte `sound` are
    valid.
    """
    named: dict[str, list[Entry]] = {}
    for entry in found:
        if entry.position >= first:
            named.setdefault(entry.digest, []).append(entry)
    rest = sorted(rest, key=lambda entry: (entry.end, entry.offset))
    chain: list[Entry] = []
    position, want, begin = promise.end, promise.head, promise.size
    while True:
        limit = begin if chain else None
        # A batch may exist twice: prefer the one in the right place, otherwise the last one.
        fitting = [each for each in named.get(want or "", ()) if each.end == position and not _ends_after(each, limit)]
        last = _one_of(fitting, sound) if fitting else _before(rest, position, want, begin, limit)
        if last is None:
            return chain[::-1]
        # Batches without rows may exist twice at one position.
        rest = [each for each in rest if each.digest != last.digest] if not last.note.rows else rest
        chain.append(last)
        position, want, begin = last.position, last.note.prev, last.offset
        if begin == start:
            return chain[::-1]


def _one_of(fitting: list[Entry], sound: int) -> Entry:
    return next((entry for entry in fitting if entry.end_offset <= sound), fitting[-1])


def _ends_after(entry: Entry, limit: int | None) -> bool:
    return limit is not None and entry.end_offset > limit


def _before(
    rest: list[Entry], position: int | None, want: str | None, begin: int | None, limit: int | None
) -> Entry | None:
    """Return the last batch that ends before a position, if the batch that ends at it is missing."""
    while rest:
        entry = rest.pop()
        if (position is not None and entry.end > position) or _ends_after(entry, limit):
            continue
        # A batch exactly at the place of the missing batch has replaced it.
        if want is None or entry.end != position or entry.end_offset != begin:
            return entry
    return None


def _between(
    content: pa.Buffer, chain: list[Entry], first: int, start: int | None, promise: Promise, why: str
) -> Iterator[Damage]:
    """Yield the damage before, between and after the batches that are in place."""
    position, offset, digest = first, start, None
    moved = False
    for entry in chain:
        if entry.position > position:
            moved = True
            yield Damage(position, entry.position, why)
        elif (entry.offset != offset and not moved) or digest not in (None, entry.note.prev):
            moved = True
            yield Damage(position, position, why)
        position, offset, digest = entry.end, entry.end_offset, entry.digest
    if promise.end is None:
        if offset != content.size:
            yield Damage(position, None, why)
    elif promise.end > position:
        yield Damage(position, promise.end, why)
    elif (offset != promise.size and not moved) or (promise.head is not None and digest not in (None, promise.head)):
        yield Damage(position, position, why)
