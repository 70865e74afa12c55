"""`penstock journal tail` and `dump`: rows, as text or as a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Option

from ...access.private import replacing
from ...errors import LocalError
from ...payload import Payload
from ..console import say_json
from ..groups import grouped
from ..output import FORMATS, OutputOptions, Printer, text_fields
from ..values import offering
from .selection import Folder, Source, one_log, position_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ...journal.ports import LogReader

__all__ = ["dump", "tail"]

POLL_SECONDS: Final = 0.2
TABLES: Final = ("arrow", "parquet")


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
    journal, name = one_log(folder, source)
    reader = journal.reader(name)
    printer = output.printer()
    at = max(reader.first, reader.end - rows)
    _print_rows(reader, at, printer)
    while follow:
        at = reader.end
        time.sleep(POLL_SECONDS)
        reader.refresh()
        # Rows that were trimmed before they were printed are skipped.
        _print_rows(reader, max(reader.first, at), printer)


def _print_rows(reader: LogReader, start: int, printer: Printer) -> None:
    """Print the rows of a log from `start`."""
    for batch in reader.read(start, reader.end):
        _print_batch(batch, printer)


def _print_batch(batch: pa.RecordBatch, printer: Printer) -> None:
    for data, metadata in zip(batch["data"].to_pylist(), batch["metadata"].to_pylist(), strict=True):
        printer.item(Payload(data, metadata), flush=False)
    sys.stdout.flush()


def dump(
    folder: Folder,
    source: Source = None,
    start: Annotated[
        str, Option("--from", metavar="PLACE", help="First row: a position, -N from the end, earliest, or a time.")
    ] = "earliest",
    end: Annotated[
        str, Option("--to", metavar="PLACE", help="Where to stop: a position, -N, latest, or a time.")
    ] = "latest",
    format: Annotated[
        str,
        Option(
            "--format",
            help=f"{', '.join((*FORMATS, *TABLES))}; arrow and parquet need --out.",
            autocompletion=offering(*FORMATS, *TABLES),
        ),
    ] = "text",
    as_json: Annotated[bool, Option("--json", help="Print each row as an object with position, time and stream.")] = (
        False
    ),
    out: Annotated[Path | None, Option("--out", "-o", help="The file to write; by default standard output.")] = None,
) -> None:
    """Print or export a range of rows of a log.

    Example: penstock journal dump data/flights --from 2026-01-31T12:00:00+00:00 --json

    Example: penstock journal dump data/flights --from 1000 --to 2000 --format parquet -o flights.parquet
    """
    journal, name = one_log(folder, source)
    reader = journal.reader(name)
    first, stop = position_of(reader, start, "--from"), position_of(reader, end, "--to")
    batches = reader.read(first, max(first, stop))
    if format in TABLES:
        if out is None:
            raise LocalError(f"--format {format} writes a file; name it with --out")
        _write_table(out, format, batches)
    elif out is not None:
        raise LocalError("--out is for --format arrow or parquet; redirect standard output for the other formats")
    elif as_json:
        for batch in batches:
            _print_objects(batch)
    else:
        if format not in FORMATS:
            raise LocalError(f"unknown format {format!r}; use one of: {', '.join((*FORMATS, *TABLES))}")
        printer = Printer(format)
        for batch in batches:
            _print_batch(batch, printer)


def _print_objects(batch: pa.RecordBatch) -> None:
    columns = (batch[name].to_pylist() for name in ("position", "time", "stream", "data", "metadata"))
    for position, at, stream, data, metadata in zip(*columns, strict=True):
        fields: dict[str, Any] = {"position": position, "time": at.isoformat(), "stream": stream}
        fields |= text_fields("data", data) | text_fields("metadata", metadata)
        say_json(fields, flush=False)


def _write_table(path: Path, format: str, batches: Iterator[pa.RecordBatch]) -> None:
    """Write rows to a file, which appears when it is complete. Metadata may contain credentials."""
    import pyarrow as pa
    import pyarrow.parquet

    from ...journal import SCHEMA

    with replacing(path) as file:
        with (
            pyarrow.parquet.ParquetWriter(file, SCHEMA, compression="zstd")
            if format == "parquet"
            else pa.ipc.new_stream(file, SCHEMA)
        ) as writer:
            for batch in batches:
                writer.write_batch(batch)
