"""The Spark format "weirpool", with its readers and writers.

Spark imports this module in a process for each part of a query: one for the columns, one for the partitions, one for
the offsets, and one for each task that runs at a time. What only some of them need is imported where it is used,
because these processes do little else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamArrowWriter, DataSourceStreamReader
from pyspark.sql.types import StructType

from ..errors import LocalError
from .given import FORMAT
from .options import SourceOptions
from .schema import COLUMNS, Projection
from .shown import plain_errors

if TYPE_CHECKING:
    from .sink import BatchSink
    from .typed import TypedProjection

__all__ = ["WeirpoolSource"]


class WeirpoolSource(DataSource):
    """Journals as tables and streams, and RSocket channels as sinks.

    Spark finds it by its name, without registration, where this package is installed::

        flights = spark.readStream.format("weirpool").option("reader", "flights").load("data/flights")
        query = flights.writeStream.format("weirpool").option("url", "rsocket+tcp://…").option("route", "delays")

    `docs/how-to/spark.md` lists the options.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    @plain_errors()
    def schema(self) -> StructType | str:
        """Return all columns of a journal, with the decoded fields, or of its gaps.

        `.schema("data binary")` before `load` reads only some of them.
        """
        # Errors in options are raised by load(), not when the query runs.
        options = SourceOptions.parse(self.options)
        if options.gaps:
            from .gaps import GAP_COLUMNS

            return GAP_COLUMNS
        if options.decode is None:
            return COLUMNS
        from .typed_schema import typed_schema

        return typed_schema(options.decode)

    @plain_errors()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for a batch."""
        options = SourceOptions.parse(self.options)
        if options.gaps:
            from .gaps import GapBatchReader

            return GapBatchReader(options, schema)
        from .source import JournalBatchReader

        return JournalBatchReader(options, _projection(options, schema))

    @plain_errors()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader for a stream."""
        options = SourceOptions.parse(self.options)
        if options.gaps:
            from .gaps import GapStreamReader

            return GapStreamReader(options, schema)
        from .source import JournalStreamReader

        return JournalStreamReader(options, _projection(options, schema))

    @plain_errors()
    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        """Return a writer for a batch."""
        from .sink import BatchSink
        from .sink_options import SinkOptions

        if overwrite:
            raise LocalError('rows that were sent cannot be overwritten; use mode("append")')
        return BatchSink(SinkOptions.parse(self.options), schema)

    @plain_errors()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Return a writer for a stream."""
        from .sink import StreamSink
        from .sink_options import SinkOptions

        if overwrite:
            raise LocalError('rows that were sent cannot be replaced; use outputMode("append") or "update"')
        return StreamSink(SinkOptions.parse(self.options), schema)


def _projection(options: SourceOptions, schema: StructType) -> Projection | TypedProjection:
    if options.decode is None:
        return Projection(schema)
    from .typed import TypedProjection

    return TypedProjection(options.decode, schema)
