"""`weirpool journal tail` and `dump`: rows, as text or as a table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Option

from ...access.private import replacing
from ...errors import LocalError
from ...payload import Payload
from ...texts import shown, shown_line
from ..colors import colored
from ..confirm import Yes, allow_replacing
from ..groups import grouped
from ..output import FORMATS, OutputOptions, json_line, text_fields
from ..values import offering
from .selection import Folder, Source, one_log, position_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ...journal.ports import LogReader

__all__ = ["dump", "tail"]

POLL_SECONDS: Final = 0.2
TABLES: Final = ("arrow", "parquet")

Row = tuple[Any, ...]
"""The values of a row in some columns."""


@grouped
def tail(
    folder: Folder,
    output: OutputOptions,
    source: Source = None,
    rows: Annotated[int, Option("--rows", "-n", min=0, help="Number of rows.")] = 10,
    follow: Annotated[bool, Option("--follow", "-f", help="Print new rows as they arrive.")] = False,
) -> None:
    """Print the last rows of a log.

    Example: weirpool journal tail data/flights -n 5 --json
    """
    journal, name = one_log(folder, source)
    reader = journal.reader(name)
    printer = RowPrinter("json" if output.json else output.format)
    printer.range(reader, max(reader.first, reader.end - rows), reader.end)
    while follow:
        at = reader.end
        time.sleep(POLL_SECONDS)
        reader.refresh()
        # Rows that were trimmed before they were printed are skipped.
        printer.range(reader, max(reader.first, at), reader.end)


class RowPrinter:
    """Prints rows to standard output.

    JSON has their position, time and stream, and so has text on a terminal. Elsewhere text is the data alone, so that
    it can be used as it was received.

    Args:
        format: One of `FORMATS`.

    """

    def __init__(self, format: str) -> None:
        if format not in FORMATS:
            raise LocalError(f"unknown format {format!r}; use one of: {', '.join((*FORMATS, *TABLES))}")
        plain = FORMATS[format]
        self._columns: list[str] = ["data", "metadata"]
        self._written: Callable[[Row], bytes] = lambda row: plain(Payload(*row))
        terminal = sys.stdout.isatty()
        if format == "json" or (format == "text" and terminal):
            self._columns = ["position", "time", "stream", "data", "metadata"]
            self._written = _json_line if format == "json" else _text_line
        if terminal:
            self._written = colored(self._written)

    def range(self, reader: LogReader, first: int, end: int) -> None:
        """Print the rows between two positions of a log."""
        for batch in reader.read(first, end, columns=self._columns):
            for row in zip(*(batch[name].to_pylist() for name in self._columns), strict=True):
                sys.stdout.buffer.write(self._written(row))
            sys.stdout.flush()


def _json_line(row: Row) -> bytes:
    position, at, stream, data, metadata = row
    fields = {"position": position, "time": at.isoformat(), "stream": stream}
    return json_line(fields | text_fields("data", data) | text_fields("metadata", metadata))


def _text_line(row: Row) -> bytes:
    position, at, stream, data, _ = row
    text = shown(data.decode("utf-8", "replace"))
    return f"{position} {at.isoformat(timespec='milliseconds')} {shown_line(stream)} {text}\n".encode()


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
    yes: Yes = False,
) -> None:
    """Print or export a range of rows of a log.

    Example: weirpool journal dump data/flights --from 2026-01-31T12:00:00+00:00 --json

    Example: weirpool journal dump data/flights --from 1000 --to 2000 --format parquet -o flights.parquet
    """
    journal, name = one_log(folder, source)
    reader = journal.reader(name)
    first, stop = position_of(reader, start, "--from"), position_of(reader, end, "--to")
    stop = max(first, stop)
    if format in TABLES and not as_json:
        if out is None:
            raise LocalError(f"--format {format} writes a file; name it with --out")
        allow_replacing(out, yes)
        _write_table(out, format, reader.read(first, stop))
    elif out is not None:
        raise LocalError("--out is for --format arrow or parquet; redirect standard output for the other formats")
    else:
        RowPrinter("json" if as_json else format).range(reader, first, stop)


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
