"""A driver that is killed in the middle: ``python -m tests.spark.killed POINT POSITION JOURNAL CHECKPOINT OUT LOSSY``.

It copies a journal to Parquet in small micro-batches. Once it has come to a position it kills at the named point,
as ``kill -9`` does, its whole process group: the driver, the JVM, and the reader beside it. Spark's worker
processes notice on their own. At the point "reader" it kills the reader alone.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from weirpool.spark.datasource import WeirpoolSource
from weirpool.spark.local import session
from weirpool.spark.options import SourceOptions
from weirpool.spark.partitions import JournalPartition
from weirpool.spark.reading import TaskReader
from weirpool.spark.schema import Projection
from weirpool.spark.source import JournalStreamReader

BATCH_ROWS = 2_000


@dataclass(frozen=True)
class Death:
    """Where the driver dies, with its process group; at the point "reader" the reader dies alone."""

    group: int
    point: str
    position: int

    def come_to(self, point: str, position: int) -> None:
        if point == self.point and position >= self.position:
            os.kill(os.getpid() if point == "reader" else -self.group, signal.SIGKILL)


class FragileTask(TaskReader):
    """Kills the driver in the middle of a micro-batch."""

    def __init__(self, options: SourceOptions, projection: Projection, death: Death) -> None:
        super().__init__(options, projection)
        self.death = death

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, JournalPartition)
        for batch in super().read(partition):
            yield batch
            self.death.come_to("task", partition.ranges[0].first)


class FragileReader(JournalStreamReader):
    """Kills the driver before or after a micro-batch is planned, in the middle of one, or when one is committed."""

    def __init__(self, options: SourceOptions, projection: Projection, death: Death) -> None:
        super().__init__(options, projection)
        self.death = death

    def __reduce__(self) -> Any:
        return FragileTask, (self._options, self._projection, self.death)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        first = start["sources"].get("a", 0)
        self.death.come_to("partitions", first)
        planned = super().partitions(start, end)
        self.death.come_to("planned", first)
        self.death.come_to("reader", first)
        return planned

    def commit(self, end: dict[str, Any]) -> None:
        super().commit(end)
        self.death.come_to("commit", end["sources"]["a"])


def main(point: str, position: str, journal: str, checkpoint: str, out: str, lossy: str) -> None:
    death = Death(os.getpgid(0), point, int(position))

    class Fragile(WeirpoolSource):
        @classmethod
        def name(cls) -> str:
            return "fragile"

        def streamReader(self, schema: StructType) -> FragileReader:
            parsed = SourceOptions.parse(self.options)
            return FragileReader(parsed, Projection(schema), death)

    spark = session("killed", master="local[2]", spark__driver__memory="1g")
    spark.dataSource.register(Fragile)
    stream = spark.readStream.format("fragile").options(reader="killed", maxRowsPerTrigger=BATCH_ROWS)
    rows = stream.option("failOnDataLoss", str(lossy != "lossy").lower()).load(journal)
    writer = rows.writeStream.format("parquet").option("checkpointLocation", checkpoint)
    writer.trigger(availableNow=True).start(out).awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
