"""Finds the end of a log after its writer closed it, was killed, or lost power; and its damage."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from .damage import Damage, Promise
from .format import BODY_DIFFERS, Malformed, body_is_sound, entry_at, genesis, preamble, preamble_bytes
from .index import Index
from .mark import Mark
from .storage import LogFolder
from .survey import missing_beginning, survey

__all__ = ["Tail", "recover"]


@dataclass(frozen=True, slots=True)
class Tail:
    """The end of a log."""

    first: int
    """The position of the first row of the segment to write to."""
    size: int
    """Its valid bytes; 0: it must be created."""
    torn: int
    """Bytes after them, of an incomplete batch."""
    position: int
    """The position of the next row."""
    head: str
    """The digest of the last batch."""
    state: bytes | None = None
    """The collector's last recorded state."""
    last_time: int | None = None
    """When the last row was appended: microseconds since 1970; None if there is none."""
    damage: list[tuple[str, Damage]] = field(default_factory=list)
    """The damage, with its files, according to headers."""
    leftovers: list[int] = field(default_factory=list)
    """Segments that were never durable."""


def recover(log: LogFolder, uuid: str, mark: Mark | None) -> Tail:
    """Return the end of a log; nothing is changed.

    Below the durable mark only headers are checked; readers check bodies. Data after the mark was never confirmed, but
    a mark may be older than the log: complete and valid batches there are kept, and the first other one is the torn
    tail.
    """
    segments = [first for first, _ in log.segments()]
    leftovers = []
    while segments and _is_after(segments[-1], mark) and _never_durable(log.content(segments[-1]), uuid, mark):
        leftovers.append(segments.pop())
    tail = _surveyed(log, uuid, segments, mark, leftovers)
    if any(first > tail.position for first in leftovers):
        # The name of a segment shows that the rows before it were durable once: their positions must not be reused.
        return _surveyed(log, uuid, [*segments, *reversed(leftovers)], mark, [])
    return tail


def _surveyed(log: LogFolder, uuid: str, segments: list[int], mark: Mark | None, leftovers: list[int]) -> Tail:
    """Return the end of a log with these segments."""
    torn: list[int] = []
    indexes = survey(log, uuid, segments, mark, lambda last, content: torn.append(_grow(last, content, mark)))
    if mark is None and segments:
        # Readers accept a copy without a mark; with a mark, its missing beginning is damage.
        indexes[:0] = missing_beginning(log, uuid, segments[0], log.trimmed(uuid))
    return _tail(indexes, uuid, mark, sum(torn), leftovers)


def _tail(indexes: list[Index], uuid: str, mark: Mark | None, torn: int, leftovers: list[int]) -> Tail:
    damage = [(index.name, each) for index in indexes for each in index.damage]
    last = indexes[-1] if indexes else None
    entry = next((index.last for index in reversed(indexes) if index.last), None)
    time = next((index.last_time for index in reversed(indexes) if index.last_time is not None), None)
    state = entry.note.state if entry else None
    if last is not None and _is_writable(last):
        return Tail(last.first, last.offset, torn, last.end, last.head or "", state, time, damage, leftovers)
    end = max(last.end if last else 0, mark.end if mark else 0)
    if last is not None and last.first == end:
        # The new segment takes the name of this one, and thereby its place in the chain.
        entry = next((index.last for index in reversed(indexes[:-1]) if index.last), None)
    # The lost batches cannot be named: the chain continues from the existing ones.
    head = entry.digest if entry else mark.head if mark and end else genesis(uuid)
    return Tail(end, 0, 0, end, head, state, time, damage, leftovers)


def _is_writable(index: Index) -> bool:
    """Return True if the last segment ends with the last batch of the log."""
    last = index.last
    if last is None or index.sealed or any(damage.end is None for damage in index.damage):
        return False
    return (last.end_offset, last.end, last.digest) == (index.offset, index.end, index.head)


def _is_after(first: int, mark: Mark | None) -> bool:
    return mark is None or first > mark.segment or (first == mark.segment and not mark.offset)


def _never_durable(content: pa.Buffer | None, uuid: str, mark: Mark | None) -> bool:
    """Return True if a segment after the mark has no complete first batch: it gets its name when that is durable."""
    if content is None or not any(memoryview(content)):
        return True
    start = preamble(uuid)
    if content.size <= len(start) and start.startswith(bytes(content)):
        return True
    try:
        entry = entry_at(memoryview(content), preamble_bytes(content, uuid), content.size, 0)
    except Malformed:
        return False
    return entry is None or (mark is not None and not body_is_sound(content, entry))


def _grow(index: Index, content: pa.Buffer, mark: Mark | None) -> int:
    """Read the data after the mark, and return the bytes of the torn tail."""
    why = ""
    try:
        for entry in index.scan(content, content.size, torn=True):
            if not body_is_sound(content, entry):
                raise Malformed(BODY_DIFFERS, entry.offset, entry.position)
            index.add(entry)
    except Malformed as bad:
        why = bad.why
    if index.damage:
        return max(0, int(content.size) - index.offset)
    end = index.end
    if why and (mark is None or (_is_after(index.first, mark) and index.last is None)):
        # A torn tail looks like damage; but a segment gets its name only when its first batch is durable.
        index.rebuild(content, Promise(), why)
        index.damage = index.damage or [Damage(end, index.end, why)]
        return 0
    if index.offset < content.size and _is_continued(index, content):
        index.rebuild(content, Promise(), why or "a batch does not end at the expected place")
        index.damage = [each for each in index.damage if each.end is not None]
    return max(0, int(content.size) - index.offset)


def _is_continued(index: Index, content: pa.Buffer) -> bool:
    """Return True if valid batches follow an invalid one: then that one was complete before, and is not a torn tail."""
    later = (entry for entry in index.salvage(content) if entry.position >= index.end)
    return any(body_is_sound(content, entry) for entry in later)
