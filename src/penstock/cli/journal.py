"""`penstock journal`: look at a journal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Final

import typer

from ..errors import LocalError
from ..payload import Payload
from .exits import FAILED
from .groups import grouped
from .output import OutputOptions, Printer, complain

if TYPE_CHECKING:
    from ..journal import Journal, JournalReader

app = typer.Typer(help="Look at a journal: ls, tail, verify.")

Folder = Annotated[str, typer.Argument(help="The journal: a folder, or a URI such as s3://…")]
Source = Annotated[str | None, typer.Option("--source", help="One log of the journal; else all of them.")]
POLL_SECONDS: Final = 0.2


@app.command()
def ls(folder: Folder, source: Source = None) -> None:
    """List the logs of a journal, with their positions, sizes and gaps.

    Example: penstock journal ls data/flights
    """
    journal, names = _logs(folder, source)
    for name in names:
        reader = journal.reader(name)
        size = reader.bytes_between(reader.first, reader.end)
        print(f"{name}: positions {reader.first:,} to {reader.end:,}, {size:,} bytes, {len(reader.gaps())} gaps")


@app.command()
@grouped
def tail(
    folder: Folder,
    output: OutputOptions,
    source: Source = None,
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="How many of the last rows.")] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new rows as they come.")] = False,
) -> None:
    """Print the last rows of a log.

    Example: penstock journal tail data/flights -n 5 --json
    """
    journal, names = _logs(folder, source)
    if len(names) > 1:
        raise LocalError(f"{folder} has several logs ({', '.join(names)}); choose one with --source")
    reader = journal.reader(names[0])
    printer = output.printer()
    at = max(reader.first, reader.end - rows)
    _print_rows(reader, at, printer)
    while follow:
        at = reader.end
        time.sleep(POLL_SECONDS)
        reader.refresh()
        # What was trimmed before it was printed is gone.
        _print_rows(reader, max(reader.first, at), printer)


@app.command()
def verify(folder: Folder, source: Source = None) -> None:
    """Read every batch of a journal and check it; exit with 1 if one is damaged.

    Example: penstock journal verify data/flights
    """
    journal, names = _logs(folder, source)
    reports = journal.verify(names)
    for name in names:
        report = reports[name]
        for problem in report.problems:
            complain(f"{name}: {problem}")
        span = f"{report.rows:,} rows from {report.first:,} to {report.end:,} are sound"
        print(f"{name}: {span}; {len(report.gaps)} gaps")
    if not all(reports[name].sound for name in names):
        raise typer.Exit(FAILED)


def _logs(folder: str, source: str | None) -> tuple[Journal, list[str]]:
    """Return a journal, and the names of its logs that are meant: at least one.

    Raises:
        LocalError: There is none.

    """
    from ..journal import Journal

    journal = Journal(folder)
    names = journal.sources()
    if not names:
        raise LocalError(f"there is no journal in {folder!r}; penstock collect makes one")
    if source is not None and source not in names:
        raise LocalError(f"{folder!r} has no log {source!r}; it has {', '.join(names)}")
    return journal, names if source is None else [source]


def _print_rows(reader: JournalReader, start: int, printer: Printer) -> None:
    """Print the rows of a log from position `start` to its end."""
    for batch in reader.read(start, reader.end):
        for data, metadata in zip(batch["data"].to_pylist(), batch["metadata"].to_pylist(), strict=True):
            printer.item(Payload(data, metadata))
