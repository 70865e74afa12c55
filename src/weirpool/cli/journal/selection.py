"""The journal, the logs and the positions that the verbs of `weirpool journal` work on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ...errors import JournalError, JournalMissing, LocalError
from ..console import complain
from ..exits import FAILED

if TYPE_CHECKING:
    from ...journal import Journal
    from ...journal.ports import LogReader

__all__ = ["AsJson", "Folder", "Source", "for_each_log", "limited_position", "one_log", "position_of", "selected_logs"]

Folder = Annotated[str, Argument(help="The journal: a folder, a URI such as s3://…, or a collector's URL.")]
Source = Annotated[str | None, Option("--source", help="One log of the journal; all logs by default.")]
AsJson = Annotated[bool, Option("--json", help="Print a JSON object for each log.")]


def selected_logs(folder: str, source: str | None) -> tuple[Journal, list[str]]:
    """Return a journal and the names of the selected logs, at least one."""
    from ...journal import Journal

    journal = Journal(folder)
    try:
        names = journal.sources()
    except JournalMissing:
        names = []
    if not names:
        raise LocalError(f"there is no journal in {folder!r}; weirpool collect creates one")
    if source is not None and source not in names:
        raise LocalError(f"{folder!r} has no log {source!r}; it has {', '.join(names)}")
    return journal, names if source is None else [source]


def one_log(folder: str, source: str | None) -> tuple[Journal, str]:
    """Return a journal and the name of its selected log; `LocalError` if there are several."""
    journal, names = selected_logs(folder, source)
    if len(names) > 1:
        raise LocalError(f"{folder} has several logs ({', '.join(names)}); select one with --source")
    return journal, names[0]


def for_each_log(names: Iterable[str], act: Callable[[str], None]) -> None:
    """Call `act` with each log; name those that fail on standard error, go on, and exit with 1 after the last."""
    failed = False
    for name in names:
        try:
            act(name)
        except JournalError as error:
            complain(f"{name}: {error}")
            failed = True
    if failed:
        raise typer.Exit(FAILED)


def position_of(reader: LogReader, place: str, option: str) -> int:
    """Return the position that an option names.

    The place is a position; a negative number, which counts from the end; "earliest" or "latest"; or an ISO 8601 time,
    for the first row received since then.
    """
    from ...journal.since import first_since

    if place == "earliest":
        return reader.first
    if place == "latest":
        return reader.end
    if place.removeprefix("-").isdecimal() and len(place) < 20:
        number = int(place)
        return max(reader.first, reader.end + number) if place.startswith("-") else number
    try:
        # Without a dash it would be a time in the basic format, and is more likely a long number.
        time = datetime.fromisoformat(place if "-" in place else "")
    except ValueError:
        raise LocalError(
            f"{option} is {place!r}; use a position, earliest, latest, or a time such as 2026-01-31T12:00:00+00:00"
        ) from None
    return first_since(reader, time.astimezone())


def limited_position(reader: LogReader, place: str, option: str) -> int:
    """Return the position that an option names, or the end of the log if that is before it, which is said."""
    position = position_of(reader, place, option)
    if position > reader.end:
        complain(f"{reader.source}: the log ends at {reader.end:,}, before {position:,}: its end is used")
    return min(position, reader.end)
