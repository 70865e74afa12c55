"""`penstock journal`: inspects and repairs journals, and removes their readers."""

from __future__ import annotations

import dataclasses
import json
import time
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer import Argument, Option

from ..errors import LocalError
from ..payload import Payload
from ..texts import shown
from .exits import FAILED
from .groups import grouped
from .output import OutputOptions, Printer, complain

if TYPE_CHECKING:
    from ..journal import Journal, JournalReader, Report

app = typer.Typer(help="Inspect and repair a journal, and remove its readers: ls, tail, verify, repair, forget.")

Folder = Annotated[str, Argument(help="The journal: a folder, or a URI such as s3://…")]
Source = Annotated[str | None, Option("--source", help="One log of the journal; all logs by default.")]
AsJson = Annotated[bool, Option("--json", help="Print a JSON object for each log.")]
POLL_SECONDS: Final = 0.2
NOTHING_YET: Final = "nothing collected yet"
DAMAGED: Final = "rows are damaged; `penstock journal verify` shows which and why"


@app.command()
def ls(folder: Folder, source: Source = None, as_json: AsJson = False) -> None:
    """List the logs of a journal, with their positions, sizes and gaps.

    Damaged logs are named on standard error, the others are listed, and the exit code is 1.

    Example: penstock journal ls data/flights
    """
    journal, names = _logs(folder, source)
    sound = True
    for name in names:
        fields = _summary(journal, name)
        problem = fields.get("error") or (DAMAGED if fields.get("damaged") else "")
        if problem:
            complain(f"{name}: {problem}")
            sound = False
        if as_json:
            print(json.dumps({"source": name} | fields))
        elif "error" not in fields:
            print(f"{name}: {_line(fields)}")
    if not sound:
        raise typer.Exit(FAILED)


def _summary(journal: Journal, name: str) -> dict[str, Any]:
    """Return the fields of a log for `ls`, or only an error if the log cannot be read."""
    from ..errors import JournalError

    try:
        if journal.is_awaited(name):
            return {"uuid": ""}
        reader = journal.reader(name)
        return {
            "uuid": reader.uuid,
            "first": reader.first,
            "end": reader.end,
            "bytes": reader.bytes_between(reader.first, reader.end),
            "gaps": len(reader.gaps()),
            "damaged": reader.damage(),
        }
    except JournalError as error:
        return {"error": str(error)}


def _line(fields: dict[str, Any]) -> str:
    if not fields["uuid"]:
        return NOTHING_YET
    damaged = "".join(f", {first:,} to {end - 1:,} damaged" for first, end in fields["damaged"])
    span = f"positions {fields['first']:,} to {fields['end']:,}, {fields['bytes']:,} bytes"
    return f"{span}, {fields['gaps']} gaps{damaged}"


@app.command()
@grouped
def tail(
    folder: Folder,
    output: OutputOptions,
    source: Source = None,
    rows: Annotated[int, Option("--rows", "-n", min=0, help="Number of rows.")] = 10,
    follow: Annotated[bool, Option("--follow", "-f", help="Print new rows as they arrive.")] = False,
) -> None:
    """Print the last rows of a log.

    Example: penstock journal tail data/flights -n 5 --json
    """
    journal, names = _logs(folder, source)
    if len(names) > 1:
        raise LocalError(f"{folder} has several logs ({', '.join(names)}); select one with --source")
    reader = journal.reader(names[0])
    printer = output.printer()
    at = max(reader.first, reader.end - rows)
    _print_rows(reader, at, printer)
    while follow:
        at = reader.end
        time.sleep(POLL_SECONDS)
        reader.refresh()
        # Rows that were trimmed before they were printed are skipped.
        _print_rows(reader, max(reader.first, at), printer)


@app.command()
def verify(
    folder: Folder,
    source: Source = None,
    against: Annotated[
        str | None, Option("--against", metavar="OTHER", help="Another journal, with copies of these logs.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Read and check every batch of a journal; exit with 1 if one is damaged or differs from its copy.

    Example: penstock journal verify data/flights --against /mnt/backup/flights
    """
    journal, names = _logs(folder, source)
    reports = journal.verify(names, against)
    for name in names:
        report = reports[name]
        for problem in report.problems:
            complain(f"{name}: {problem}")
        if as_json:
            print(json.dumps(_fields(report)))
        elif report.uuid:
            span = f"{report.rows:,} rows from {report.first:,} to {report.end:,} are sound"
            compared = f"; {report.compared}" if report.compared and report.sound else ""
            print(f"{name}: {span}; {len(report.gaps)} gaps{compared}; head {report.head}")
        elif report.sound:
            print(f"{name}: {NOTHING_YET}")
    if not all(reports[name].sound for name in names):
        raise typer.Exit(FAILED)


def _fields(report: Report) -> dict[str, Any]:
    gaps = [{"position": gap.position, "reason": gap.reason, "lost": gap.lost} for gap in report.gaps]
    return dataclasses.asdict(report) | {"gaps": gaps, "sound": report.sound}


@app.command()
def repair(
    folder: Folder,
    source: Annotated[str | None, Argument(help="One log of the journal; all logs by default.")] = None,
    apply: Annotated[bool, Option("--apply", help="Repair; without it, the repair is only shown.")] = False,
    accept_loss: Annotated[
        bool, Option("--accept-loss", help="Repair even if rows are lost; record their positions as a gap.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show how to repair a damaged journal, and repair it with --apply. No collector may be running.

    Readable rows are kept. Damaged files are kept unchanged or renamed to end in .damaged.
    The exit code is 1 if anything remains to be repaired.

    Example: penstock journal repair data/flights --apply --accept-loss
    """
    from ..errors import JournalError

    journal, names = _logs(folder, source)
    done = True
    for name in names:
        try:
            found = journal.repair(name, apply=apply, accept_loss=accept_loss)
        except JournalError as error:
            complain(f"{name}: {error}")
            done = False
            continue
        done = done and not found.refused
        if as_json:
            print(json.dumps(dataclasses.asdict(found)))
            continue
        for action in found.actions or ["nothing to do"]:
            print(f"{name}: {shown(action)}")
        if found.refused:
            print(f"{name}: not repaired: {found.refused}")
    if not done:
        raise typer.Exit(FAILED)


@app.command()
def forget(
    folder: Folder,
    reader: Annotated[str, Argument(help="The reader's name: Spark's option reader.")],
    source: Source = None,
    as_json: AsJson = False,
) -> None:
    """Remove a reader that will not return, to release its name and its share of the collector's budget.

    The reader is removed from every log that it read. A query still running under this name starts a new reader.

    Example: penstock journal forget data/flights report
    """
    journal, names = _logs(folder, source)
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
            print(json.dumps({"source": name, "reader": reader, "position": position, "cursors": list(cursors)}))
        else:
            last = "whose position was damaged" if position is None else f"which had committed position {position:,}"
            print(f"{name}: removed reader {reader}, {last}")


def _logs(folder: str, source: str | None) -> tuple[Journal, list[str]]:
    """Return a journal and the names of the selected logs, at least one."""
    from ..errors import JournalMissing
    from ..journal import Journal

    journal = Journal(folder)
    try:
        names = journal.sources()
    except JournalMissing:
        names = []
    if not names:
        raise LocalError(f"there is no journal in {folder!r}; penstock collect creates one")
    if source is not None and source not in names:
        raise LocalError(f"{folder!r} has no log {source!r}; it has {', '.join(names)}")
    return journal, names if source is None else [source]


def _print_rows(reader: JournalReader, start: int, printer: Printer) -> None:
    """Print the rows of a log from `start`."""
    for batch in reader.read(start, reader.end):
        for data, metadata in zip(batch["data"].to_pylist(), batch["metadata"].to_pylist(), strict=True):
            printer.item(Payload(data, metadata))
