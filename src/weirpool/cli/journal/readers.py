"""`weirpool journal lag`, `readers`, `seek` and `forget`: the readers of a journal, and how far they are behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from ...errors import JournalError, LocalError
from ...texts import counted, shown_line
from ..confirm import DryRun, Yes, confirm
from ..console import say, say_json
from .selection import AsJson, Folder, Source, for_each_log, limited_position, selected_logs

if TYPE_CHECKING:
    from ...journal import Journal
    from ...journal.lag import Lag

__all__ = ["forget", "lag", "readers", "seek"]

Reader = Annotated[str, Argument(help="The reader's name: Spark's option reader.")]


def lag(folder: Folder, source: Source = None, as_json: AsJson = False) -> None:
    """Show how far each reader is behind the end of each log, in rows, bytes and seconds.

    Seconds are the age of the oldest row that the reader has not committed.

    Example: weirpool journal lag data/flights
    """
    _for_each_reader(folder, source, as_json, _lag_fields, _lag_line)


def _for_each_reader(
    folder: str,
    source: str | None,
    as_json: bool,
    fields: Callable[[Lag], dict[str, Any]],
    line: Callable[[Lag], str],
) -> None:
    """Print all readers of the selected logs."""
    journal, names = selected_logs(folder, source)

    def show(name: str) -> None:
        found = journal.lags(name)
        for each in found:
            if as_json:
                say_json({"source": name} | fields(each))
            else:
                say(f"{name}: {line(each)}")
        if not found:
            if as_json:
                say_json({"source": name, "reader": None})
            else:
                say(f"{name}: no readers")

    for_each_log(names, show)


def _lag_fields(lag: Lag) -> dict[str, Any]:
    return {
        "reader": lag.reader,
        "position": lag.position,
        "end": lag.end,
        "rows": lag.rows,
        "bytes": lag.size,
        "seconds": lag.seconds,
    }


def _lag_line(lag: Lag) -> str:
    if lag.position > lag.end:
        return f"{lag.reader} is at {lag.position:,}, beyond the end of the log, {lag.end:,}"
    if not lag.rows:
        return f"{lag.reader} is at the end, position {lag.position:,}"
    age = "of unknown age" if lag.seconds is None else f"the oldest {lag.seconds:,.1f} s old"
    return f"{lag.reader} is at {lag.position:,}, {lag.rows:,} rows behind ({lag.size:,} bytes), {age}"


def readers(folder: Folder, source: Source = None, as_json: AsJson = False) -> None:
    """List the readers that hold back rows, with their query and when they last committed.

    Example: weirpool journal readers data/flights --json
    """
    _for_each_reader(folder, source, as_json, _reader_fields, _reader_line)


def _reader_fields(reader: Lag) -> dict[str, Any]:
    return {
        "reader": reader.reader,
        "query": reader.query,
        "position": reader.position,
        "committed": _committed(reader),
    }


def _reader_line(reader: Lag) -> str:
    owner = f"query {reader.query}" if reader.query else "no query"
    return f"{reader.reader} at {reader.position:,}, {owner}, committed {_committed(reader) or 'at an unknown time'}"


def _committed(reader: Lag) -> str | None:
    return None if reader.committed is None else reader.committed.isoformat(timespec="seconds")


def seek(
    folder: Folder,
    reader: Reader,
    to: Annotated[str, Option("--to", metavar="PLACE", help="A position, -N from the end, earliest, latest, a time.")],
    source: Source = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Set the position of a reader that does not belong to a Spark query, forward or back; create it if necessary.

    Rows from this position on are kept for it. A Spark query continues at its checkpoint, not at this position.

    Example: weirpool journal seek data/flights export --to earliest
    """
    journal, names = selected_logs(folder, source)
    places = {name: limited_position(journal.reader(name), to, "--to") for name in names}
    for name, position in places.items():
        before = next((each for each in journal.lags(name) if each.reader == reader), None)
        if before is not None and before.query is not None:
            raise LocalError(
                f"reader {reader!r} of {name!r} belongs to Spark query {before.query}, which continues at its "
                "checkpoint; to read other rows, start it with another checkpoint, startingOffsets and another reader "
                "name"
            )
        at = position if dry_run else journal.seek(name, reader, position)
        was = None if before is None else before.position
        if as_json:
            say_json({"source": name, "reader": reader, "position": at, "before": was, "dry_run": dry_run})
        else:
            moved = "it is new" if was is None else f"it was at {was:,}"
            say(f"{name}: reader {reader} {'would be' if dry_run else 'is'} at {at:,}; {moved}")


def forget(
    folder: Folder,
    reader: Reader,
    source: Source = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove a reader that will not return, to release its name and its share of the collector's budget.

    The reader is removed from every log that it read. On a terminal it asks first. A query that still runs under this
    name starts a new reader.

    Example: weirpool journal forget data/flights report
    """
    journal, names = selected_logs(folder, source)
    known = {name: journal.readers(name) for name in names}
    having = [name for name in names if reader in known[name]]
    if not having:
        listed = "; ".join(f"{name}: {', '.join(found) or 'none'}" for name, found in known.items())
        raise LocalError(f"{folder!r} has no reader {reader!r}; its readers are {listed}")
    found = {name: _cursors(journal, name, reader) for name in having}
    if not dry_run:
        listed = "".join(f"{name}: {each.line()}\n" for name, each in found.items())
        confirm(f"{listed}Remove the reader {shown_line(reader)}?", yes)
    for name, each in found.items():
        if not dry_run:
            journal.forget(name, reader)
        if as_json:
            say_json({"source": name, "reader": reader} | asdict(each) | {"dry_run": dry_run})
        else:
            say(f"{name}: {'would remove' if dry_run else 'removed'} reader {reader}, {each.line()}")


@dataclass(frozen=True)
class Forgotten:
    """What a log keeps for a reader."""

    position: int | None
    """The lowest of its positions; None if they are damaged."""
    cursors: list[str]
    rows: int | None
    """The rows after the position; None if unknown."""
    bytes: int | None

    def line(self) -> str:
        """Return it as a part of a line."""
        if self.position is None:
            return "whose position was damaged"
        kept = f"; {counted(self.rows, 'row')} after it ({self.bytes:,} bytes) were kept for it" if self.rows else ""
        return f"which had committed position {self.position:,}{kept}"


def _cursors(journal: Journal, name: str, reader: str) -> Forgotten:
    """Return what a log keeps for a reader."""
    cursors = journal.cursors(name, reader)
    # As for retention, a reader's position is the lowest of its cursors.
    position = min((cursor.position for cursor in cursors.values() if cursor), default=None)
    try:
        log = journal.reader(name)
    except JournalError:
        return Forgotten(position, list(cursors), None, None)
    if position is None:
        return Forgotten(None, list(cursors), None, None)
    first = min(max(position, log.first), log.end)
    return Forgotten(position, list(cursors), log.end - first, log.bytes_between(first, log.end))
