"""Rows a second from a journal to Spark's noop sink, next to a source that yields Arrow batches it has already.

What the journal costs is everything between the two: files, checksums, offsets. Both read the same columns, in
turns, in one session. ``python -m benchmarks.journal_to_spark`` prints a table; ``--json`` prints the numbers.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from penstock.journal.format import ITEMS, tabulate
from penstock.journal.writer import JournalWriter
from penstock.spark.local import session
from penstock.spark.schema import COLUMNS, Projection

BATCH_ROWS = 65_536
PAYLOAD = bytes(range(100))
TASKS = 2
FEW = "position long, data binary"


def items(rows: int) -> pa.RecordBatch:
    data = pa.array([PAYLOAD] * rows, pa.binary())
    return pa.RecordBatch.from_arrays([data, pa.nulls(rows, pa.binary())], schema=ITEMS)


class Batches:
    """Yields one batch again and again: nothing is read, nothing is computed."""

    def __init__(self, rows: int, schema: StructType) -> None:
        self.rows = rows
        self.projection = Projection(schema)

    def partitions(self, start: object = None, end: object = None) -> list[InputPartition]:
        return [InputPartition(self.rows // TASKS) for _ in range(TASKS)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = self.projection.apply(tabulate(items(BATCH_ROWS), "stream", 0, 0), "source")
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


def fill(journal: Path, rows: int, batch_rows: int) -> None:
    with JournalWriter.open(journal, "bench", fsync=False) as writer:
        while writer.position < rows:
            writer.append(items(min(batch_rows, rows - writer.position)), "stream")


def batch_read(rows: DataFrame) -> None:
    rows.write.format("noop").mode("overwrite").save()


def stream_read(rows: DataFrame) -> None:
    checkpoint = tempfile.mkdtemp(prefix="penstock-bench-")
    try:
        writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
    finally:
        shutil.rmtree(checkpoint)


def in_turns(runs: dict[str, Callable[[], None]], rows: int, repeats: int) -> dict[str, float]:
    """Return rows a second, medians, after one run of each that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, run in runs.items():
            begun = time.perf_counter()
            run()
            if turn:
                seconds[name].append(time.perf_counter() - begun)
    return {name: rows / statistics.median(times) for name, times in seconds.items()}


def measure(spark: SparkSession, journal: Path, rows: int, repeats: int) -> list[dict[str, object]]:
    """Return a result for each way to read, and each choice of columns."""
    spark.dataSource.register(Prebuilt)
    results: list[dict[str, object]] = []
    for columns, schema in (("all", None), ("position, data", FEW)):
        for mode, run in (("batch", batch_read), ("streaming", stream_read)):

            def rows_of(form: str, mode: str = mode, schema: str | None = schema, **options: object) -> DataFrame:
                reader = spark.read if mode == "batch" else spark.readStream
                reader = reader.format(form).options(**{name: str(value) for name, value in options.items()})
                return (reader.schema(schema) if schema else reader).load()

            def ours(run: Callable[[DataFrame], None] = run, rows_of: Callable[..., DataFrame] = rows_of) -> None:
                run(rows_of("penstock", journal=journal, trim="false", partitions=TASKS))

            def theirs(run: Callable[[DataFrame], None] = run, rows_of: Callable[..., DataFrame] = rows_of) -> None:
                run(rows_of("prebuilt", rows=rows))

            rates = in_turns({"prebuilt": theirs, "journal": ours}, rows, repeats)
            results.append({"mode": mode, "columns": columns, **rates, "ratio": rates["journal"] / rates["prebuilt"]})
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--batch-rows", type=int, default=16_384, help="rows of an append to the journal")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    journal = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    spark = session("journal_to_spark", master=f"local[{TASKS}]", spark__log__level="ERROR")
    try:
        fill(journal, arguments.rows, arguments.batch_rows)
        results = measure(spark, journal, arguments.rows, arguments.repeats)
    finally:
        spark.stop()
        shutil.rmtree(journal)
    if arguments.json:
        print(json.dumps(results, indent=2))
        return 0
    print(f"{'mode':10} {'columns':15} {'prebuilt, rows/s':>17} {'journal, rows/s':>17} {'ratio':>6}")
    for one in results:
        print(
            f"{one['mode']:10} {one['columns']:15} {one['prebuilt']:17,.0f} {one['journal']:17,.0f} {one['ratio']:6.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
