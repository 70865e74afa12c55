"""How far the readers of a log are behind its end."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..errors import JournalError
from .layout import COMMITTED
from .ports import LogReader
from .retention import Committed, cursors

__all__ = ["Lag", "lags"]


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one reader is behind."""

    reader: str
    """Its name."""
    query: str | None
    """The query that the name belongs to; None if it belongs to none."""
    position: int
    """The position that it has committed: the lowest of its cursors."""
    rows: int
    """The rows after that."""
    size: int
    """Their bytes, nearly exact."""
    seconds: float | None
    """How long the oldest of them has been in the log; 0 if there are none, None if that row is not readable."""
    committed: datetime | None
    """When the reader last committed; None if its cursor is gone meanwhile."""


def lags(folder: Path, log: LogReader, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> list[Lag]:
    """Return how far each reader of a log is behind its end, in the order of their names.

    Args:
        folder: The log's folder on this machine, with the cursors.
        log: A reader of it, which may see other rows than there are now.
        now: Returns the current time.

    Raises:
        JournalCorrupt: A cursor is damaged.
        JournalError: The disk failed.

    """
    lowest: dict[str, tuple[str, Committed]] = {}
    for name, cursor in cursors(folder).items():
        reader = name.partition("@")[0]
        if reader not in lowest or cursor.position < lowest[reader][1].position:
            lowest[reader] = name, cursor
    return [_lag(folder, log, reader, name, cursor, now()) for reader, (name, cursor) in sorted(lowest.items())]


def _lag(folder: Path, log: LogReader, reader: str, name: str, cursor: Committed, now: datetime) -> Lag:
    # A reader may have committed rows that this view of the log does not show yet.
    position = min(cursor.position, log.end)
    rows = log.end - max(position, log.first)
    seconds = 0.0 if not rows else _age(log, max(position, log.first), now)
    committed = None
    with suppress(OSError):
        committed = datetime.fromtimestamp(os.stat(folder / COMMITTED / name).st_mtime, UTC)
    size = log.bytes_between(position, log.end)
    return Lag(reader, cursor.query, cursor.position, rows, size, seconds, committed)


def _age(log: LogReader, position: int, now: datetime) -> float | None:
    """Return the seconds since a row was appended; None if it is damaged or trimmed."""
    with suppress(JournalError):
        for batch in log.read(position, position + 1, skip_records=True):
            age: float = (now - batch["time"][0].as_py()).total_seconds()
            return max(0.0, age)
    return None
