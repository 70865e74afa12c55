"""Looking through a whole log: every header, every body, and whether each batch follows the one before it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from ..errors import JournalError
from .compare import compare
from .damage import Damage, Promise
from .gaps import Gap, merge
from .index import Index
from .losses import is_accepted
from .mark import Mark
from .storage import LogFolder
from .survey import survey

__all__ = ["Report", "damaged_bodies", "verify"]


@dataclass(slots=True)
class Report:
    """What was found in one log."""

    source: str
    uuid: str = ""
    """The log's; empty if it cannot be told, or if nothing has been collected yet."""
    first: int = 0
    """The position of the first row."""
    end: int = 0
    """The position behind the last row."""
    head: str = ""
    """The digest of the last batch: two copies that are sound and have the same one hold the same rows."""
    segments: int = 0
    batches: int = 0
    """Those with a sound header."""
    rows: int = 0
    """Those that are what was written."""
    size: int = 0
    """Bytes of all segments."""
    torn_bytes: int = 0
    """Bytes behind the durable mark: being written, or left by a crash. The next writer decides about them."""
    gaps: list[Gap] = field(default_factory=list)
    """Losses on the way here, and those that somebody has accepted."""
    compared: str = ""
    """What the comparison with another copy found; empty if there was none."""
    problems: list[str] = field(default_factory=list)
    """A line for every range of rows that is damaged or missing, and for whatever else is wrong."""
    damage: list[tuple[int, int | None]] = field(default_factory=list)
    """These ranges: first and end position. Where the end is None, nobody knows how many rows are missing."""

    @property
    def sound(self) -> bool:
        """Whether every row between `first` and `end` is what was written, or a gap tells that it is lost."""
        return not self.problems


def verify(log: LogFolder, source: str, against: LogFolder | None = None) -> Report:
    """Read a whole log and report on it: what is damaged, or cannot be read at all, goes into the report.

    Args:
        log: The log.
        source: Its name.
        against: Another copy of it, which is compared by the digests of its batches, and not read further.

    """
    report = Report(source)
    try:
        if log.is_awaited():
            return report
        _read(report, log)
        if against is not None:
            comparison = compare(log, against)
            report.compared = comparison.text
            if not comparison.agree:
                report.problems.append(comparison.text)
    except JournalError as error:
        report.problems.append(str(error))
    return report


def _read(report: Report, log: LogFolder) -> None:
    report.uuid = uuid = log.require().uuid
    mark = log.mark()
    indexes = _survey(log, uuid, mark)
    sizes = dict(log.segments())
    kept = log.kept_gaps()
    report.first = indexes[0].first if indexes else (mark.end if mark else 0)
    report.end = indexes[-1].end if indexes else report.first
    report.head = (indexes[-1].head if indexes else mark and mark.head) or ""
    report.gaps = merge(kept, *(index.gaps for index in indexes))
    for index in indexes:
        if not index.missing:
            report.segments += 1
            report.size += sizes.get(index.first, 0)
        report.batches += index.count
        for damage in _damage(log, index, report):
            if not is_accepted(damage, kept):
                report.problems.append(str(damage.error(index.name)))
                report.damage.append((damage.first, damage.end))
    if indexes and not indexes[-1].sealed and not indexes[-1].missing:
        report.torn_bytes = max(0, sizes.get(indexes[-1].first, 0) - indexes[-1].offset)


def _survey(log: LogFolder, uuid: str, mark: Mark | None) -> list[Index]:
    segments = [first for first, _ in log.segments() if mark is None or first <= mark.segment]
    return survey(log, uuid, segments, mark, _behind if mark is None else _nothing_behind)


def _behind(index: Index, content: pa.Buffer) -> None:
    index.extend(content, Promise())


def _nothing_behind(index: Index, content: pa.Buffer) -> None:
    """Readers look no further than the mark."""


def _damage(log: LogFolder, index: Index, report: Report) -> Iterator[Damage]:
    """Yield what is wrong in a segment, bodies included, and count what is sound."""
    content = None if index.missing else log.content(index.first)
    yield from index.damage
    if content is None:
        return
    for first, end, why in index.verify(content):
        if not why:
            report.rows += end - first
        elif not any(damage.first == first != damage.end for damage in index.damage):
            # Where only a record before the rows is damaged, what is wrong with the rows is something else.
            yield Damage(first, end, why)


def damaged_bodies(log: LogFolder, uuid: str, mark: Mark | None) -> Iterator[tuple[str, Damage]]:
    """Yield the batches with a sound header and a damaged body, each with its file, that nobody has accepted as lost.

    Args:
        log: The log.
        uuid: Its UUID.
        mark: Its mark, or None if it has none.

    """
    kept = log.kept_gaps()
    ignored = Report("")
    for index in _survey(log, uuid, mark):
        known = set(index.damage)
        for damage in _damage(log, index, ignored):
            if damage not in known and not is_accepted(damage, kept):
                yield index.name, damage
