"""What the folder of a log says about its readers and its budget, without the process that writes it."""

from __future__ import annotations

import msgspec

from ..journal.layout import Extent, bytes_between, log_folder
from ..journal.retention import commits
from ..journal.sealed import safe_position, sealed_extents
from ..journal.storage import LogFolder

__all__ = ["Survey", "end_of", "survey"]


class Survey(msgspec.Struct, frozen=True):
    """The readers of a log, and its segments.

    Attributes:
        readers: The position that each reader has committed.
        used: Bytes that count towards the budget: neither in a store nor committed by all readers; nearly exact.

    """

    readers: dict[str, int]
    used: int


def end_of(journal: str, source: str) -> int:
    """Return the position of the next row of a log; 0 if there is no log. `JournalError` if it cannot be read."""
    mark = LogFolder.of(journal, source).mark()
    return 0 if mark is None else mark.end


def survey(journal: str, source: str, position: int) -> Survey | None:
    """Look at the folder of a log; return None if there is no log yet.

    Args:
        journal: The journal's folder.
        source: The log's name.
        position: The position of its next row.

    Raises:
        JournalError: The cursor of a reader is damaged, or the folder cannot be read.

    """
    folder = log_folder(journal, source)
    segments = LogFolder.local(folder).segments()
    if not segments:
        return None
    readers = commits(folder)
    ends = [*(first for first, _ in segments[1:]), max(position, segments[-1][0])]
    extents = [Extent(first, end, size) for (first, size), end in zip(segments, ends, strict=True)]
    extents = [*sealed_extents(folder, segments[0][0]), *extents]
    used = bytes_between(extents, max(min(readers.values(), default=0), safe_position(folder)), position)
    return Survey(readers, used)
