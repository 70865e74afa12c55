"""Finds the collector of a journal, for tasks on machines without the journal's folder."""

from __future__ import annotations

import os
from collections.abc import Iterable

from ..errors import JournalMissing, LocalError
from ..journal.layout import SERVED
from .options import SourceOptions
from .partitions import JournalPartition, Served

__all__ = ["collector_of", "with_collector"]


def with_collector(options: SourceOptions, partitions: Iterable[JournalPartition]) -> list[JournalPartition]:
    """Return partitions that name the collector which serves the journal at the moment, if there is one."""
    found = _collector(options)
    return [JournalPartition(each.ranges, found) for each in partitions]


def _collector(options: SourceOptions) -> Served | None:
    if options.remote or not os.path.exists(os.path.join(options.journal, SERVED)):
        return None
    from ..serving.discovery import discovered

    found = discovered(options.journal)
    return None if found is None else (found.url, found.host)


def collector_of(journal: str, served: Served) -> str:
    """Return the URL of a journal's collector, which the driver has found; `JournalMissing` if it may not be used."""
    from ..serving.discovery import Found

    try:
        return Found(*served).checked()
    except LocalError as error:
        raise JournalMissing(f"journal {journal} is not on this machine, and {error}") from None
