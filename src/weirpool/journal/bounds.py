"""Checks that a range of positions is in a log, wherever its rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import DataLost
from .counts import check_span, shown_number

if TYPE_CHECKING:
    from .ports import LogReader

__all__ = ["check_range", "lost_rows"]


def check_range(reader: LogReader, where: str, start: int, end: int) -> None:
    """Check that a log, which is shown as `where`, has a range of positions. The reader is refreshed if it ends before.

    Raises:
        DataLost: Some of the rows are trimmed, or not in the log yet.
        LocalError: There is no such range.

    """
    check_span(where, start, end)
    if end > reader.end:
        reader.refresh()
    if start < min(reader.first, end):
        raise lost_rows(reader, where, start, min(reader.first, end))
    if end > reader.end:
        raise lost_rows(reader, where, max(start, reader.end), end)


def lost_rows(reader: LogReader, where: str, start: int, end: int) -> DataLost:
    """Return the error for positions that a log does not hold."""
    held = f"holds {reader.first} to {reader.end - 1}" if reader.first < reader.end else "is empty"
    return DataLost(
        f"{where}: positions {shown_number(start)} to {shown_number(end - 1)} are not in the log, which {held}; read "
        "the existing rows, or start again at the earliest position"
    )
