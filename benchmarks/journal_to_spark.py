"""Rows per second from a journal to Spark's noop sink, compared with a source of prebuilt Arrow batches.

The difference between the two is the cost of the journal: files, checksums and offsets. Both read the same columns, in
turns, in one session.

A sealed journal is compared with the same rows as Spark itself writes and reads them: in Parquet, with zstd. Each row
of it differs, because Spark stores equal ones once.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from weirpool.archive import SealOptions, seal
from weirpool.archive.snapshot import snapshot
from weirpool.journal.format import ITEMS, SCHEMA
from weirpool.journal.writer import JournalWriter
from weirpool.spark import history
from weirpool.spark.local import session
from weirpool.spark.schema import COLUMNS, Projection

from .report import Row, Table

ROWS = 4_000_000
HISTORY_ROWS = 2_000_000
SEGMENT_BYTES = 16 * 1024 * 1024
"""Of the sealed journal: its last one is the tail."""
BATCH_ROWS = 65_536
APPEND_ROWS = 16_384
"""Rows per append to the journal."""
PAYLOAD = bytes(range(100))
TASKS = 2
COLUMNS_READ = {"all columns": None, "position and data": "position long, data binary"}


def items(rows: int) -> pa.RecordBatch:
    data = pa.array([PAYLOAD] * rows, pa.binary())
    return pa.RecordBatch.from_arrays([data, pa.nulls(rows, pa.binary())], schema=ITEMS)


def rows() -> pa.RecordBatch:
    """Return a batch as a journal has it."""
    found = items(BATCH_ROWS)
    times = pa.array([0] * BATCH_ROWS, SCHEMA.field("time").type)
    streams = pa.array(["stream"] * BATCH_ROWS, pa.string())
    columns = [pa.array(range(BATCH_ROWS), pa.int64()), times, streams, *found.columns]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


class Batches:
    """Yields the same batch repeatedly, without reading or computing."""

    def __init__(self, rows: int, schema: StructType) -> None:
        self.rows = rows
        self.projection = Projection(schema)

    def partitions(self, start: object = None, end: object = None) -> list[InputPartition]:
        return [InputPartition(self.rows // TASKS) for _ in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = self.projection.apply(rows(), "source")
        left = partition.value
        while left:
            part = batch.slice(0, min(left, BATCH_ROWS))
            left -= part.num_rows
            yield part


class PrebuiltReader(Batches, DataSourceReader):
    pass


class PrebuiltStreamReader(Batches, DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:
        return {"row": 0}

    def latestOffset(self) -> dict[str, int]:
        return {"row": self.rows}


class Prebuilt(DataSource):
    @classmethod
    def name(cls) -> str:
        return "prebuilt"

    def schema(self) -> StructType:
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return PrebuiltReader(int(self.options["rows"]), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return PrebuiltStreamReader(int(self.options["rows"]), schema)


def fill(journal: Path) -> None:
    with JournalWriter.open(journal, "bench", fsync=False) as writer:
        while writer.position < ROWS:
            writer.append(items(min(APPEND_ROWS, ROWS - writer.position)), "stream")


def different(first: int, rows: int) -> pa.RecordBatch:
    """Return items of about 100 bytes of JSON, each with its number and a price."""
    texts = (
        b'{"sequence":%d,"venue":"XNAS","symbol":"SYM%03d","price":%d.%02d,"size":%d,"side":"buy"}'
        % (each, each % 200, each * 7919 % 1000, each * 104_729 % 100, each * 15_485_863 % 5000)
        for each in range(first, first + rows)
    )
    return pa.RecordBatch.from_arrays([pa.array(texts, pa.binary()), pa.nulls(rows, pa.binary())], schema=ITEMS)


def fill_sealed(journal: Path) -> None:
    """Fill a journal, and seal all of it but its last segment."""
    with JournalWriter.open(journal, "bench", fsync=False, segment_bytes=SEGMENT_BYTES) as writer:
        while writer.position < HISTORY_ROWS:
            writer.append(different(writer.position, min(APPEND_ROWS, HISTORY_ROWS - writer.position)), "stream")
    while seal(journal, "bench", SealOptions(), force=True) is not None:
        pass


def batch_read(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def stream_read(rows: DataFrame) -> None:
    checkpoint = tempfile.mkdtemp(prefix="weirpool-bench-")
    try:
        writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
    finally:
        shutil.rmtree(checkpoint)


def rates(runs: dict[str, Callable[[], None]], rounds: int, rows: int = ROWS) -> list[Row]:
    """Return the median rows per second, after one warm-up run of each."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            begun = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - begun)
    return [Row(name, rows / statistics.median(times)) for name, times in seconds.items()]


def tables(spark: SparkSession, journal: Path, rounds: int) -> Iterator[Table]:
    """Yield a table for each way to read and each choice of columns."""
    spark.dataSource.register(Prebuilt)
    formats = {
        "Weirpool's journal": ("weirpool", {"journal": str(journal), "trim": "false", "partitions": str(TASKS)}),
        "prebuilt Arrow batches": ("prebuilt", {"rows": str(ROWS)}),
    }
    for columns, schema in COLUMNS_READ.items():
        for mode, run in {"batch": batch_read, "streaming": stream_read}.items():
            runs: dict[str, Callable[[], None]] = {}
            for name, (form, options) in formats.items():
                reader = (spark.read if mode == "batch" else spark.readStream).format(form).options(**options)
                runs[name] = partial(run, (reader.schema(schema) if schema else reader).load())
            yield Table("spark", f"to Spark's noop sink, {mode}, {columns}", "rows", rates(runs, rounds))


def history_tables(spark: SparkSession, folder: Path, rounds: int) -> Iterator[Table]:
    """Yield tables of a sealed journal, without and with its tail, beside the same rows as Spark writes them."""
    journal = str(folder / "journal")
    fill_sealed(Path(journal))
    sealed = snapshot(journal, "bench").sealed_end
    for name, end in {"sealed rows": sealed, f"with a tail of {HISTORY_ROWS - sealed:,} rows": HISTORY_ROWS}.items():
        native = str(folder / f"{end}.parquet")
        frame = history(spark, journal, positions={"bench": (0, end)})
        frame.write.option("compression", "zstd").parquet(native)
        runs: dict[str, Callable[[], None]] = {
            "history() of Weirpool": partial(batch_read, frame),
            "Parquet that Spark wrote": partial(batch_read, spark.read.schema(COLUMNS).parquet(native)),
        }
        yield Table("spark", f"history to Spark's noop sink, {name}", "rows", rates(runs, rounds, end))


def measure(rounds: int) -> Iterator[Table]:
    """Fill journals, read them in all ways, and yield a table for each as it completes."""
    folder = Path(tempfile.mkdtemp(prefix="weirpool-bench-"))
    try:
        fill(folder / "live")
        spark = session("benchmarks", master=f"local[{TASKS}]", spark__log__level="ERROR")
        try:
            yield from tables(spark, folder / "live", rounds)
            yield from history_tables(spark, folder, rounds)
        finally:
            spark.stop()
    finally:
        shutil.rmtree(folder)
