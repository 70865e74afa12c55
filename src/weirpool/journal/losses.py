"""The losses of a log, and whether they were accepted.

Damage is never repaired by guessing: its positions remain lost. An accepted loss is recorded as a gap in the log's file
of gaps. Readers then skip it, and a writer continues after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import JournalCorrupt
from .damage import Damage
from .disk import disk_errors, sync_folder
from .gaps import Gap, add, time_of
from .layout import COMMITTED, DURABLE
from .mark import Mark
from .recovery import Tail, recover
from .storage import LogFolder

__all__ = ["DAMAGED", "Condition", "accept", "examine", "is_accepted", "set_aside"]

DAMAGED = ".damaged"
"""The suffix of a damaged file that was replaced by another."""


@dataclass(frozen=True, slots=True)
class Condition:
    """The state of a log as a writer finds it."""

    tail: Tail
    """Its end, with the losses there."""
    lost: list[tuple[str, Damage]] = field(default_factory=list)
    """The losses that were not accepted, with their files, according to headers."""
    error: JournalCorrupt | None = None
    """The error if they are not accepted; None if nothing is lost."""
    mark: Mark | None = None
    """The log's mark; None if there is none, or if it is damaged."""
    mark_is_damaged: bool = False
    """Whether the mark must be replaced."""


def examine(log: LogFolder, uuid: str, committed: tuple[int, str]) -> Condition:
    """Read the headers of a whole log; nothing is changed. `committed` is the highest position of a reader's cursor.

    It raises `JournalCorrupt` if the file of gaps, or the one that records trimming, is damaged.
    """
    mark, error = None, None
    durable = f"{log.path}/{DURABLE}"
    try:
        mark = log.mark()
    except JournalCorrupt as damaged:
        error = damaged
    mark_is_damaged = error is not None
    tail = recover(log, uuid, mark)
    lost = []
    if error is not None:
        why = "the mark is damaged: it is unknown whether rows followed"
        lost.append((durable, Damage(tail.position, tail.position, why)))
    at, cursor = committed
    if at > tail.position:
        why = f"{COMMITTED}/{cursor}: this reader has committed position {at}, but the log ends at {tail.position}"
        lost.append((log.path, Damage(tail.position, at, why)))
        tail = replace(tail, first=at, size=0, torn=0, position=at)
    lost += tail.damage
    known = log.kept_gaps() if lost else []
    # Accepting a damaged mark does not cover the rows after the next one.
    new = [each for each in lost if each[0] == durable or not is_accepted(each[1], known)]
    if new and error is None:
        name, damage = new[0]
        error = damage.error(name)
    return Condition(tail, new, error, mark, mark_is_damaged)


def is_accepted(damage: Damage, gaps: Sequence[Gap]) -> bool:
    """Return True if the log's gaps record that these positions are lost.

    Rows skipped by one query are lost for that query only: another one may find them restored.
    """
    position = damage.first
    end = damage.first if damage.end is None else damage.end
    known = False
    for first, stop in sorted(gap.lost for gap in gaps if gap.lost is not None and gap.query is None):
        if first <= position <= stop:
            position, known = stop, True
    return known and position >= end


def accept(folder: Path, lost: list[tuple[str, Damage]], time: float, tail: Tail | None = None) -> list[Gap]:
    """Record that positions of a log, each with its file, are permanently lost; the gaps are durable on return.

    The time is in seconds since 1970. With the log's `tail`, gaps at its end have the time of the last row.
    """
    now = time_of(int(time * 1_000_000))
    gaps = []
    for name, damage in lost:
        end = damage.first if damage.end is None else damage.end
        last = None if tail is None or tail.last_time is None or end < tail.position else tail.last_time
        previous = None if last is None else time_of(last)
        reason = f"accepted as lost: {Path(name).name}: {damage.why}"
        gaps.append(Gap(end, now, reason, previous, (damage.first, end)))
    add(folder, gaps)
    return gaps


def set_aside(path: Path) -> Path | None:
    """Rename a damaged file so that another can replace it; return its new name, if it exists."""
    aside = path.with_name(f"{path.name}{DAMAGED}")
    number = 2
    while aside.exists():
        aside = path.with_name(f"{path.name}.{number}{DAMAGED}")
        number += 1
    with disk_errors(path, "be renamed"):
        try:
            path.rename(aside)
        except FileNotFoundError:
            return None
        sync_folder(path.parent)
    return aside
