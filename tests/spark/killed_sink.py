"""A driver that is killed at a commit: ``python -m tests.spark.killed_sink POINT JOURNAL CHECKPOINT URL``.

It copies a journal to a collector that listens, in small micro-batches. In the second one it kills its whole process
group, as ``kill -9`` does: when all rows are staged, or when they are committed and Spark does not know it.
"""

from __future__ import annotations

import os
import signal
import sys

from pyspark.sql.datasource import WriterCommitMessage
from pyspark.sql.types import StructType

from weirpool.spark.datasource import WeirpoolSource
from weirpool.spark.local import session
from weirpool.spark.sink import StreamSink
from weirpool.spark.sink_options import SinkOptions

BATCH_ROWS = 2_000


class FragileSink(StreamSink):
    """Kills the driver before or after a commit."""

    def __init__(self, options: SinkOptions, schema: StructType, group: int, point: str) -> None:
        super().__init__(options, schema)
        self.group = group
        self.point = point

    def come_to(self, point: str) -> None:
        if point == self.point:
            os.killpg(self.group, signal.SIGKILL)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        if batchId % 2:
            self.come_to("staged")
        super().commit(messages, batchId)
        if batchId % 2:
            self.come_to("committed")


def main(point: str, journal: str, checkpoint: str, url: str) -> None:
    group = os.getpgid(0)

    class Fragile(WeirpoolSource):
        @classmethod
        def name(cls) -> str:
            return "fragile"

        def streamWriter(self, schema: StructType, overwrite: bool) -> FragileSink:
            return FragileSink(SinkOptions.parse(self.options), schema, group, point)

    spark = session("killed", master="local[2]", spark__driver__memory="1g")
    spark.dataSource.register(Fragile)
    rows = spark.readStream.format("weirpool").option("maxRowsPerTrigger", BATCH_ROWS).load(journal)
    writer = rows.writeStream.format("fragile").options(url=url, route="rows", delivery="transactional")
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
