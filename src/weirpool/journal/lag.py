"""How far the readers of a log are behind its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from ..errors import JournalError
from .ports import LogReader
from .retention import Committed

__all__ = ["Lag", "age", "lags"]


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one reader is behind."""

    reader: str
    """Its name."""
    query: str | None
    """The query that the name belongs to; None if it belongs to none."""
    position: int
    """The position that it has committed: the lowest of its cursors."""
    end: int
    """The end of the log. A position beyond it was set before anybody compared the two, or the log has lost rows."""
    rows: int
    """The rows after the position."""
    size: int
    """Their bytes, nearly exact."""
    seconds: float | None
    """How long the oldest of them has been in the log; 0 if there are none, None if that row is not readable."""
    committed: datetime | None
    """When its position was last set; None if that is unknown."""


def lags(
    cursors: Mapping[str, Committed], log: LogReader, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> list[Lag]:
    """Return how far each reader of a log is behind its end, in the order of their names.

    Args:
        cursors: The content of each cursor, by its name.
        log: A reader of the log, which is refreshed if a position is beyond its end.
        now: Returns the current time.

    Raises:
        JournalError: The log cannot be reached.

    """
    lowest: dict[str, Committed] = {}
    if any(cursor.position > log.end for cursor in cursors.values()):
        log.refresh()
    for name, cursor in cursors.items():
        reader = name.partition("@")[0]
        if reader not in lowest or cursor.position < lowest[reader].position:
            lowest[reader] = cursor
    return [_lag(log, reader, cursor, now()) for reader, cursor in sorted(lowest.items())]


def _lag(log: LogReader, reader: str, cursor: Committed, now: datetime) -> Lag:
    position = min(cursor.position, log.end)
    rows = log.end - max(position, log.first)
    seconds = age(log, position, now)
    size = log.bytes_between(position, log.end)
    return Lag(reader, cursor.query, cursor.position, log.end, rows, size, seconds, cursor.time)


def age(log: LogReader, position: int, now: datetime) -> float | None:
    """Return how long the first row at or after a position has been in a log, in seconds, to the millisecond.

    This is the lag of a reader that is at the position, wherever it is shown: in lists, in the progress of Spark's
    queries, and in the status of feeds. Rows that are gone do not count.

    Args:
        log: A reader of the log.
        position: The position.
        now: The current time.

    Returns:
        0 if there is no such row; None if it cannot be read.

    """
    at = max(position, log.first)
    if at >= log.end:
        return 0.0
    with suppress(JournalError):
        for batch in log.read(at, at + 1, columns=["time"], skip_records=True):
            seconds: float = (now - batch["time"][0].as_py()).total_seconds()
            return round(max(0.0, seconds), 3)
    return None
