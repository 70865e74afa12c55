"""`penstock journal`: look at a journal."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ..errors import JournalError
from ..payload import Payload
from .arguments import Json
from .output import Printer

app = typer.Typer(help="Look at a journal: ls, tail, verify.")

Folder = Annotated[Path, typer.Argument(help="The journal's folder.")]
Source = Annotated[str | None, typer.Option("--source", help="One log of the journal; else all of them.")]
POLL_SECONDS = 0.2


@app.command()
def ls(folder: Folder) -> None:
    """List the logs of a journal, with their positions, sizes and gaps.

    Example: penstock journal ls data/flights
    """
    from ..journal import Journal

    journal = Journal(folder)
    for source in journal.sources():
        reader = journal.reader(source)
        reader.refresh()
        size = reader.bytes_between(reader.first, reader.end)
        gaps = len(reader.gaps())
        print(f"{source}: positions {reader.first:,} to {reader.end:,}, {size:,} bytes, {gaps} gaps")


@app.command()
def tail(
    folder: Folder,
    source: Source = None,
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="How many of the last rows.")] = 10,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new rows as they come.")] = False,
    json: Json = False,
) -> None:
    """Print the last rows of a log.

    Example: penstock journal tail data/flights -n 5 --json
    """
    from ..journal import Journal

    journal = Journal(folder)
    names = journal.sources() if source is None else [source]
    if len(names) != 1:
        raise JournalError(f"{folder} has {len(names)} logs ({', '.join(names)}); choose one with --source")
    reader = journal.reader(names[0])
    reader.refresh()
    at = max(reader.first, reader.end - rows)
    printer = Printer(json)
    while True:
        for batch in reader.read(at, reader.end):
            for data, metadata in zip(
                batch.column("data").to_pylist(), batch.column("metadata").to_pylist(), strict=True
            ):
                printer.item(Payload(data, metadata))
        at = reader.end
        if not follow:
            break
        time.sleep(POLL_SECONDS)
        reader.refresh()


@app.command()
def verify(folder: Folder) -> None:
    """Read every batch of a journal and check it; exit with 1 if one is damaged.

    Example: penstock journal verify data/flights
    """
    from ..journal import Journal

    journal = Journal(folder)
    for source in journal.sources():
        count = journal.verify(source)
        reader = journal.reader(source)
        print(f"{source}: {count:,} rows from {reader.first:,} to {reader.end:,} are sound; {len(reader.gaps())} gaps")
