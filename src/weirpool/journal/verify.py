"""Verifies a whole log: every header, every body, and whether each batch follows the previous one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from ..errors import JournalError
from .compare import Comparison, compare
from .counts import shown_number
from .damage import Damage, Promise
from .gaps import Gap, merge
from .index import Index
from .layout import COMMITTED
from .losses import is_accepted
from .mark import Mark
from .ports import LogReader
from .recovery import recover
from .retention import beyond, damaged
from .storage import LogFolder
from .survey import survey

__all__ = ["Report", "add_readers", "add_rows", "damaged_bodies", "verify"]


@dataclass(slots=True)
class Report:
    """The result of verifying one log."""

    source: str
    uuid: str = ""
    """The log's UUID; empty if it is unknown, or if nothing has been collected yet."""
    first: int = 0
    """The position of the first row."""
    end: int = 0
    """The position after the last row."""
    head: str = ""
    """The digest of the last batch: two valid copies with the same digest have the same rows."""
    segments: int = 0
    """All segments, also sealed ones."""
    sealed: int = 0
    """Rows in sealed segments."""
    batches: int = 0
    """Batches with a valid header."""
    rows: int = 0
    """Batches and sealed segments that are completely valid."""
    size: int = 0
    """Bytes of all segments."""
    torn_bytes: int = 0
    """Bytes after the durable mark: being written, or left by a crash. The next writer keeps or cuts them."""
    gaps: list[Gap] = field(default_factory=list)
    """Losses before the journal, and accepted ones."""
    compared: str = ""
    """The result of the comparison with another copy; empty if there was none."""
    problems: list[str] = field(default_factory=list)
    """A line for every range of rows that is damaged or missing, and for every other problem."""
    damage: list[tuple[int, int | None]] = field(default_factory=list)
    """These ranges: first and end position. If the end is None, the number of missing rows is unknown."""

    @property
    def sound(self) -> bool:
        """True if every row between `first` and `end` is valid, or recorded as lost by a gap."""
        return not self.problems

    def add(self, comparison: Comparison) -> None:
        """Add the result of the comparison with another copy."""
        self.compared = comparison.text
        if not comparison.agree:
            self.problems.append(comparison.text)


def verify(log: LogFolder, source: str, against: LogFolder | None = None) -> Report:
    """Read a whole log and report all damage, including unreadable files.

    Another copy, `against`, is compared only by the digests of its batches.
    """
    report = Report(source)
    try:
        if log.is_awaited():
            return report
        _read(report, log)
        if against is not None:
            report.add(compare(log, against))
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
    return survey(log, uuid, segments, mark, _read_tail if mark is None else _ignore_tail)


def _read_tail(index: Index, content: pa.Buffer) -> None:
    index.extend(content, Promise())


def _ignore_tail(index: Index, content: pa.Buffer) -> None:
    """Readers do not read past the mark."""


def _damage(log: LogFolder, index: Index, report: Report) -> Iterator[Damage]:
    """Yield the problems of a segment, including bodies, and count valid batches."""
    content = None if index.missing else log.content(index.first)
    yield from index.damage
    if content is None:
        return
    for first, end, why in index.verify(content):
        if not why:
            report.rows += end - first
        elif not any(damage.first == first != damage.end for damage in index.damage):
            # If only a record before the rows is damaged, the rows have a different problem.
            yield Damage(first, end, why)


def add_readers(report: Report, folder: Path) -> None:
    """Add to the report of a log on this machine what is wrong with its readers' cursors."""
    if not report.uuid:
        return
    for name in damaged(folder, report.uuid):
        report.problems.append(
            f"{folder / COMMITTED / name}: is not a cursor of this log; see `weirpool journal repair`"
        )
    try:
        # The log may have grown since it was read, and its readers with it.
        ahead = beyond(folder, report.uuid, report.end)
        log = LogFolder.local(folder)
        end = recover(log, report.uuid, log.mark()).position if ahead else report.end
    except JournalError as error:
        if str(error) not in report.problems:
            report.problems.append(str(error))
        return
    for name, cursor in ahead.items():
        if cursor.position > end:
            report.problems.append(
                f"{folder / COMMITTED / name}: this reader is at position {shown_number(cursor.position)}, but the log "
                f"ends at {end}; see `weirpool journal repair`"
            )


def add_rows(report: Report, log: LogReader) -> None:
    """Add to the report of a log's Arrow segments the rows before them, which are read wherever they are."""
    below = report.first
    for extent in log.segments():
        if extent.first >= below:
            break
        rows = 0
        try:
            for batch in log.read(extent.first, min(extent.end, below), skip_records=True):
                rows += batch.num_rows
        except JournalError as error:
            report.problems.append(str(error))
            report.damage.append((extent.first, extent.end))
        report.segments += 1
        report.sealed += rows
        report.rows += rows
    report.first = log.first
    report.gaps = merge(report.gaps, log.gaps())


def damaged_bodies(log: LogFolder, uuid: str, mark: Mark | None) -> Iterator[tuple[str, Damage]]:
    """Yield the batches with a valid header and a damaged body, each with its file, whose loss was not accepted."""
    kept = log.kept_gaps()
    ignored = Report("")
    for index in _survey(log, uuid, mark):
        known = set(index.damage)
        for damage in _damage(log, index, ignored):
            if damage not in known and not is_accepted(damage, kept):
                yield index.name, damage
