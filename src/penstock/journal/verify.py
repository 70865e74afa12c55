"""Looking through a whole log: every header, every body, and whether the positions follow one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from .format import Entry, Malformed, body_is_sound, corrupt, preamble_bytes, scan
from .gaps import Gap
from .index import gap_of
from .storage import LogFolder

__all__ = ["Report", "verify"]


@dataclass(slots=True)
class Report:
    """What was found in one log."""

    source: str
    first: int = 0
    """The position of the first row."""
    end: int = 0
    """The position behind the last row."""
    segments: int = 0
    batches: int = 0
    rows: int = 0
    """Sound ones."""
    size: int = 0
    """Bytes of all segments."""
    torn_bytes: int = 0
    """Bytes behind the durable mark: being written, or left by a crash. The next writer decides about them."""
    gaps: list[Gap] = field(default_factory=list)
    """Losses on the way here, as the collector recorded them."""
    problems: list[str] = field(default_factory=list)
    """A line for every range of rows that is damaged or missing."""

    @property
    def sound(self) -> bool:
        """Whether every row between `first` and `end` is what was written."""
        return not self.problems


def verify(log: LogFolder, source: str) -> Report:
    """Read a whole log and report on it; what is damaged goes into the report.

    Raises:
        JournalError: The log cannot be reached.

    """
    mark = log.mark()
    segments = [(first, size) for first, size in log.segments() if mark is None or first <= mark.segment]
    report = Report(source, first=segments[0][0] if segments else 0)
    report.end = report.first
    for place, (first, size) in enumerate(segments):
        following = segments[place + 1][0] if place + 1 < len(segments) else None
        content = log.content(first)
        if content is None:
            # Trimmed while we were on the way to it.
            continue
        if report.segments and first > report.end:
            report.problems.append(
                f"{log.path}: positions {report.end} to {first - 1} are missing before {log.name(first)}"
            )
        elif not report.segments:
            report.first = first
        report.segments += 1
        report.size += size
        report.end = first
        durable = mark.offset if mark is not None and mark.segment == first else content.size
        _look_through(report, content, log.name(first), first, following, min(durable, content.size))
    return report


def _look_through(
    report: Report, content: pa.Buffer, name: str, first: int, following: int | None, durable: int
) -> None:
    offset = 0
    try:
        for entry in _entries(content, first, durable):
            offset = entry.end_offset
            report.end = entry.end
            report.batches += 1
            gap = gap_of(entry)
            if gap is not None:
                report.gaps.append(gap)
            if body_is_sound(content, entry):
                report.rows += entry.note.rows
            else:
                why = "the CRC32C of its body is another"
                report.problems.append(str(corrupt(name, entry.position, entry.end, why)))
    except Malformed as bad:
        report.problems.append(str(corrupt(name, max(bad.position, first), following, bad.why)))
        report.end = following or report.end
        return
    if following is None:
        report.torn_bytes = content.size - offset
    elif offset < content.size:
        report.problems.append(str(corrupt(name, report.end, following, "a batch does not end where it should")))
        report.end = following


def _entries(content: pa.Buffer, first: int, durable: int) -> Iterator[Entry]:
    if durable:
        yield from scan(content, preamble_bytes(content), durable, first)
