"""Compares two copies of a log: each batch's digest covers all batches before it."""

from __future__ import annotations

from dataclasses import dataclass

from .damage import Promise, salvage
from .format import Entry
from .storage import LogFolder

__all__ = ["Comparison", "batches", "compare"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing two copies of a log."""

    agree: bool
    """True if they are equal up to the end of the shorter one."""
    end: int
    """The position up to which they are equal."""
    text: str
    """The result for people, in one line."""


def compare(log: LogFolder, other: LogFolder) -> Comparison:
    """Compare two readable copies of a log by the headers of their batches. One may be longer, or trimmed further."""
    uuid, another = log.require().uuid, other.require().uuid
    if uuid != another:
        return Comparison(False, 0, f"{other.path} is another log: its UUID is {another}, not {uuid}")
    mine, theirs = batches(log, uuid), batches(other, uuid)
    if not mine or not theirs or mine[0].position > theirs[-1].end or theirs[0].position > mine[-1].end:
        return Comparison(not mine and not theirs, 0, f"{other.path} has no positions in common with this copy")
    mine, theirs = _from_common(mine, theirs)
    end = max(mine[0].position, theirs[0].position)
    for one, two in zip(mine, theirs, strict=False):
        if one.digest != two.digest:
            at = min(one.position, two.position)
            return Comparison(False, at, f"{other.path} differs from this copy at position {at}")
        end = one.end
    longer = "" if len(mine) == len(theirs) else "this copy" if len(mine) > len(theirs) else other.path
    more = f"; {longer} continues to {max(mine[-1].end, theirs[-1].end)}" if longer else ""
    return Comparison(True, end, f"{other.path} has the same rows up to position {end}{more}")


def _from_common(mine: list[Entry], theirs: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Return both from the first batch that both have, or from the first common position."""
    where = {entry.digest: at for at, entry in enumerate(theirs)}
    for at, entry in enumerate(mine):
        other = where.get(entry.digest)
        if other is not None and (at == 0 or other == 0):
            return mine[at:], theirs[other:]
        if other is not None:
            break
    start = max(mine[0].position, theirs[0].position)
    return [each for each in mine if each.end >= start], [each for each in theirs if each.end >= start]


def batches(log: LogFolder, uuid: str) -> list[Entry]:
    """Return the batches of a log up to its mark, as far as their headers are valid."""
    mark = log.mark()
    found: list[Entry] = []
    for first, _ in log.segments():
        content = log.content(first)
        if mark is not None and first > mark.segment:
            continue
        if content is None:
            # It was trimmed meanwhile, with everything before it.
            found.clear()
            continue
        entries, _ = salvage(content, first, uuid, Promise(), "")
        limit = mark.offset if mark is not None and mark.segment == first else content.size
        found += [entry for entry in entries if entry.end_offset <= limit]
    return found
