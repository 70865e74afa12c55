"""Journals to read, and readers as Spark drives them, without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import CaseInsensitiveDict, DataSourceReader
from pyspark.sql.types import StructType

from weirpool.journal.feedlog import FeedLog, Place
from weirpool.journal.format import ITEMS
from weirpool.journal.identity import Request
from weirpool.journal.reader import JournalReader
from weirpool.journal.writer import JournalWriter
from weirpool.spark import offsets
from weirpool.spark.datasource import WeirpoolSource
from weirpool.spark.driver import SourceDriver
from weirpool.spark.options import SourceOptions
from weirpool.spark.partitions import Range
from weirpool.spark.source import JournalStreamReader

Offset = dict[str, Any]
EARLIEST = offsets.Offset("earliest")
LATEST = offsets.Offset("latest")
NO_LIMITS = (None, None)


def item(position: int) -> bytes:
    """Return the data of a row, which tells its position."""
    return b"item %d" % position


def items(first: int, end: int) -> pa.RecordBatch:
    """Return what a collector appends: metadata is null in odd rows."""
    data = pa.array([item(position) for position in range(first, end)], pa.binary())
    metadata = pa.array([b"even" if position % 2 == 0 else None for position in range(first, end)], pa.binary())
    return pa.RecordBatch.from_arrays([data, metadata], schema=ITEMS)


def fill(journal: Path, source: str, *ends: int, segment_bytes: int = 1 << 26) -> None:
    """Append batches that end at these positions, one a call."""
    with JournalWriter.open(journal, source, segment_bytes=segment_bytes, fsync=False) as writer:
        for end in ends:
            writer.append(items(writer.position, end), "flights")


@contextmanager
def quiet_collector(journal: Path, source: str) -> Iterator[None]:
    """Have a collector run whose publisher has sent nothing yet."""
    log = FeedLog(Place(journal=journal, source=source, request=Request("flights"), options={"fsync": False}))
    try:
        yield
    finally:
        log.close()


def options(journal: Path | str, **more: str) -> SourceOptions:
    """Return parsed options of a source."""
    return SourceOptions.parse({"journal": str(journal), **more})


def datasource(journal: Path | str, **more: str) -> WeirpoolSource:
    """Return the format as Spark makes it."""
    return WeirpoolSource(CaseInsensitiveDict({"journal": str(journal), **more}))


def stream_reader(journal: Path | str, schema: StructType | None = None, **more: str) -> JournalStreamReader:
    """Return a reader as it is beside the driver."""
    source = datasource(journal, **more)
    reader = source.streamReader(schema or source.schema())
    assert isinstance(reader, JournalStreamReader)
    return reader


def over_the_wire(offset: Offset) -> Offset:
    """Return an offset as Spark gives it back: through JSON."""
    returned: Offset = json.loads(json.dumps(offset))
    return returned


def advance(reader: JournalStreamReader, start: Offset) -> Offset:
    """Ask for the end of the next micro-batch, as Spark does."""
    return over_the_wire(reader.latestOffset(start, reader.getDefaultReadLimit()))


def run_task(reader: Any, partition: Any) -> Iterator[pa.RecordBatch]:
    """Run a task as a worker does: with a reader and a partition that were pickled."""
    there = cloudpickle.loads(cloudpickle.dumps(reader))
    yield from there.read(cloudpickle.loads(cloudpickle.dumps(partition)))


def read_between(reader: JournalStreamReader, start: Offset, end: Offset) -> list[bytes]:
    """Return the data of a micro-batch's rows."""
    parts = reader.partitions(over_the_wire(start), over_the_wire(end))
    return [data for part in parts for batch in run_task(reader, part) for data in batch.column("data").to_pylist()]


def read_batch(reader: DataSourceReader) -> pa.Table:
    """Return all rows of a batch read."""
    batches = [batch for part in reader.partitions() for batch in run_task(reader, part)]
    return pa.Table.from_batches(batches)


def log_of(journal: Path, source: str) -> str:
    """Return the UUID of a log."""
    return JournalReader(journal, source).uuid


def span(journal: Path, source: str, first: int, end: int) -> Range:
    """Return a range of a log that is there."""
    return Range(source, first, end, log_of(journal, source))


def segments(journal: Path, source: str) -> list[Path]:
    """Return the files of a log, in order."""
    return sorted((journal / f"source={source}").glob("*.arrows"))


def damage(path: Path, text: bytes) -> None:
    """Flip a bit of the row with this data."""
    content = bytearray(path.read_bytes())
    at = content.index(text)
    content[at] ^= 1
    path.write_bytes(content)


def driver(journal: Path, **more: str) -> SourceDriver:
    return SourceDriver(options(journal, **more))


def numbers(offset: offsets.Offset | None) -> tuple[object, object]:
    """Return where a query began, and how far it is."""
    assert offset is not None and offset.query is not None
    assert offset.logs.keys() == offset.positions.keys()
    return offset.begun, offset.positions
