"""How far a query is behind its journal, for the query's progress.

Spark has no hook for metrics of a Python source, but it shows what a source reports as the latest offset.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from ..journal.lag import age
from ..journal.ports import LogReader

__all__ = ["report"]

MAX_SOURCES: Final = 20
"""Sources of which the report says more than the end: those with the most rows. It is made for each micro-batch."""


def report(readers: Mapping[str, LogReader], positions: Mapping[str, int]) -> dict[str, Any]:
    """Return the end of each log, and the lag behind it after a micro-batch that ends at these positions.

    ``{"sources": {"flights": 900}, "lag": {"rows": 30, "seconds": 1.5, "sources": {"flights": {"rows": 30, "seconds":
    1.5}}}}``. Seconds are the age of the oldest row that is not read yet, by this machine's clock; None if that row
    cannot be read.
    """
    rows = {source: max(0, reader.end - positions.get(source, reader.first)) for source, reader in readers.items()}
    behind = sorted((source for source in rows if rows[source]), key=lambda source: (-rows[source], source))
    now = datetime.now(UTC)
    lags = {
        source: {"rows": rows[source], "seconds": age(readers[source], positions.get(source, 0), now)}
        for source in behind[:MAX_SOURCES]
    }
    ages = [lag["seconds"] for lag in lags.values() if lag["seconds"] is not None]
    seconds = max(ages, default=0.0 if not behind else None)
    return {
        "sources": {source: readers[source].end for source in sorted(readers)},
        "lag": {"rows": sum(rows.values()), "seconds": seconds, "sources": lags},
    }
