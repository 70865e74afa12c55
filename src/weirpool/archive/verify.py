"""Verifies the sealed segments of a log: every byte of every file, and that the rows after them follow."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pyarrow as pa

from ..errors import JournalError
from ..journal.gaps import merge
from ..journal.index import first_prev
from ..journal.storage import LogFolder
from ..journal.verify import Report
from ..objects import Store, open_store
from .manifest import Segment, checksum
from .parquet import origin_of, segment_of
from .reader import ArchiveReader
from .snapshot import Snapshot, snapshot

__all__ = ["add_sealed", "verify_sealed"]


def verify_sealed(journal: str | os.PathLike[str], source: str) -> list[str]:
    """Read all files of the newest manifest of a log, and return their problems, one sentence each.

    Args:
        journal: The journal: a folder, or the URI of a store.
        source: The log's name.

    Raises:
        JournalMissing: There is no such log.
        JournalCorrupt: The manifest is damaged.
        JournalError: The log cannot be reached.

    """
    log = snapshot(journal, source)
    return [problem for _, problem in _problems(log) if problem]


def add_sealed(report: Report, journal: str | os.PathLike[str], *, stored: bool) -> None:
    """Verify the sealed segments of a log, and add the result to the report of its Arrow segments.

    Args:
        report: The report.
        journal: The journal: a folder, or with `stored` the URI of a store.
        stored: There are no Arrow segments.

    """
    try:
        log = snapshot(journal, report.source)
        gaps = ArchiveReader(journal, report.source).gaps()
        folder = None if stored else LogFolder.of(journal, report.source)
        # Rows that are in both forms count once.
        below = min((first for first, _ in folder.segments()), default=log.end) if folder is not None else log.end
        for segment, problem in _problems(log):
            report.segments += 1
            report.sealed += segment.rows
            report.size += segment.size
            if problem:
                report.problems.append(problem)
                report.damage.append((segment.first, segment.end))
            elif segment.end <= below:
                report.rows += segment.rows
        if folder is not None and (why := _seam(log, folder)):
            report.problems.append(why)
    except JournalError as error:
        if str(error) not in report.problems:
            report.problems.append(str(error))
        return
    report.uuid, report.first, report.end = log.uuid, log.first, max(report.end, log.sealed_end)
    report.head = report.head or (log.files[-1][1].head if log.files else "")
    report.gaps = merge(report.gaps, gaps)


def _seam(log: Snapshot, folder: LogFolder) -> str:
    """Return a problem if the Arrow segments of a log do not continue its sealed ones."""
    starts = [first for first, _ in folder.segments()]
    if not log.files or not starts:
        return ""
    last = log.files[-1][1]
    if starts[0] > last.end:
        return f"{folder.path}: positions {last.end} to {starts[0] - 1} are neither sealed nor in Arrow segments"
    if last.end in starts and first_prev(folder.content(last.end), last.end, log.uuid) not in (None, last.head):
        return f"{folder.path}: the rows from position {last.end} on follow other rows than the sealed ones"
    return ""


def _problems(log: Snapshot) -> Iterator[tuple[Segment, str]]:
    """Yield each sealed segment with its problem, if it has one."""
    if log.files:
        store = open_store(log.store)
        for name, segment in log.files:
            yield segment, _problem(log, store, name, segment)


def _problem(log: Snapshot, store: Store, name: str, segment: Segment) -> str:
    where = f"{store.uri.partition('?')[0]}/{name}"
    try:
        content = store.get(name, 0, segment.size + 1)
        if content is None:
            return f"{where}: the file is missing; positions {segment.first} to {segment.end - 1} cannot be read"
        if len(content) != segment.size or checksum(content) != segment.checksum:
            return f"{where}: the file differs from what was sealed: positions {segment.first} to {segment.end - 1}"
        file = pa.py_buffer(content)
        origin, rows = origin_of(file, where, segment.raw_bytes)
    except JournalError as error:
        return str(error)
    # With the checksums of columns that readers compare, and the times by which queries leave it out.
    if origin.log != log.uuid or segment_of(file, origin, rows, segment.raw_bytes) != segment:
        return f"{where}: contains other rows than the manifest says"
    return ""
