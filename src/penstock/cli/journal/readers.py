"""`penstock journal lag`, `readers`, `seek` and `forget`: the readers of a journal, and how far they are behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ...errors import LocalError
from ..console import say, say_json
from .selection import AsJson, Folder, Source, for_each_log, position_of, selected_logs

if TYPE_CHECKING:
    from ...journal.lag import Lag

__all__ = ["forget", "lag", "readers", "seek"]

Reader = Annotated[str, Argument(help="The reader's name: Spark's option reader.")]


def lag(folder: Folder, source: Source = None, as_json: AsJson = False) -> None:
    """Show how far each reader is behind the end of each log, in rows, bytes and seconds.

    Seconds are the age of the oldest row that the reader has not committed.

    Example: penstock journal lag data/flights
    """
    _for_each_reader(folder, source, as_json, _lag_fields, _lag_line)


def _for_each_reader(
    folder: str,
    source: str | None,
    as_json: bool,
    fields: Callable[[str, Lag], dict[str, Any]],
    line: Callable[[Lag], str],
) -> None:
    """Print all readers of the selected logs."""
    journal, names = selected_logs(folder, source)

    def show(name: str) -> None:
        found = journal.lags(name)
        for each in found:
            if as_json:
                say_json(fields(name, each))
            else:
                say(f"{name}: {line(each)}")
        if not found and not as_json:
            say(f"{name}: no readers")

    for_each_log(names, show)


def _lag_fields(source: str, lag: Lag) -> dict[str, Any]:
    return {
        "source": source,
        "reader": lag.reader,
        "position": lag.position,
        "rows": lag.rows,
        "bytes": lag.size,
        "seconds": lag.seconds,
    }


def _lag_line(lag: Lag) -> str:
    if not lag.rows:
        return f"{lag.reader} is at the end, position {lag.position:,}"
    age = "of unknown age" if lag.seconds is None else f"the oldest {lag.seconds:,.1f} s old"
    return f"{lag.reader} is at {lag.position:,}, {lag.rows:,} rows behind ({lag.size:,} bytes), {age}"


def readers(folder: Folder, source: Source = None, as_json: AsJson = False) -> None:
    """List the readers that hold back rows, with their query and when they last committed.

    Example: penstock journal readers data/flights --json
    """
    _for_each_reader(folder, source, as_json, _reader_fields, _reader_line)


def _reader_fields(source: str, reader: Lag) -> dict[str, Any]:
    return {
        "source": source,
        "reader": reader.reader,
        "query": reader.query,
        "position": reader.position,
        "committed": _committed(reader),
    }


def _reader_line(reader: Lag) -> str:
    owner = f"query {reader.query}" if reader.query else "no query"
    return f"{reader.reader} at {reader.position:,}, {owner}, committed {_committed(reader) or 'never'}"


def _committed(reader: Lag) -> str | None:
    return None if reader.committed is None else reader.committed.isoformat(timespec="seconds")


def seek(
    folder: Folder,
    reader: Reader,
    to: Annotated[str, Option("--to", metavar="PLACE", help="A position, -N from the end, earliest, latest, a time.")],
    source: Source = None,
    as_json: AsJson = False,
) -> None:
    """Set the position of a reader that does not belong to a Spark query, forward or back; create it if necessary.

    Rows from this position on are kept for it. A Spark query continues at its checkpoint, not at this position.

    Example: penstock journal seek data/flights export --to earliest
    """
    journal, names = selected_logs(folder, source)
    places = {name: position_of(journal.reader(name), to, "--to") for name in names}
    for name, position in places.items():
        owner = next((each.query for each in journal.lags(name) if each.reader == reader), None)
        if owner is not None:
            raise LocalError(
                f"reader {reader!r} of {name!r} belongs to Spark query {owner}, which continues at its checkpoint; to "
                "read other rows, start it with another checkpoint, startingOffsets and another reader name"
            )
        recorded = journal.seek(name, reader, position)
        if as_json:
            say_json({"source": name, "reader": reader, "position": recorded})
        else:
            say(f"{name}: reader {reader} is at {recorded:,}")


def forget(
    folder: Folder,
    reader: Reader,
    source: Source = None,
    as_json: AsJson = False,
) -> None:
    """Remove a reader that will not return, to release its name and its share of the collector's budget.

    The reader is removed from every log that it read. A query still running under this name starts a new reader.

    Example: penstock journal forget data/flights report
    """
    journal, names = selected_logs(folder, source)
    known = {name: journal.readers(name) for name in names}
    if not any(reader in found for found in known.values()):
        listed = "; ".join(f"{name}: {', '.join(found) or 'none'}" for name, found in known.items())
        raise LocalError(f"{folder!r} has no reader {reader!r}; its readers are {listed}")
    for name in names:
        cursors = journal.forget(name, reader)
        if not cursors:
            continue
        # As for retention, a reader's position is the lowest of its cursors.
        position = min((cursor.position for cursor in cursors.values() if cursor), default=None)
        if as_json:
            say_json({"source": name, "reader": reader, "position": position, "cursors": list(cursors)})
        else:
            last = "whose position was damaged" if position is None else f"which had committed position {position:,}"
            say(f"{name}: removed reader {reader}, {last}")
