"""The Spark format "penstock", with its readers and writers."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamArrowWriter, DataSourceStreamReader
from pyspark.sql.types import StructType

from .gaps import GAP_COLUMNS, GapBatchReader, GapStreamReader
from .options import FORMAT, SinkOptions, SourceOptions
from .schema import COLUMNS, Projection
from .shown import plain_errors
from .sink import BatchSink, StreamSink
from .source import JournalBatchReader, JournalStreamReader

__all__ = ["PenstockSource"]


class PenstockSource(DataSource):
    """Journals as tables and streams, and RSocket channels as sinks.

    Spark finds it by its name, without registration, where this package is installed::

        flights = spark.readStream.format("penstock").option("reader", "flights").load("data/flights")
        query = flights.writeStream.format("penstock").option("url", "rsocket+tcp://…").option("route", "delays")

    `docs/how-to/spark.md` lists the options.
    """

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    @plain_errors()
    def schema(self) -> StructType:
        """Return all columns of a journal, or of its gaps.

        `.schema("data binary")` before `load` reads only some of them.
        """
        # Errors in options are raised by load(), not when the query runs.
        return GAP_COLUMNS if SourceOptions.parse(self.options).gaps else COLUMNS

    @plain_errors()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for a batch."""
        options = SourceOptions.parse(self.options)
        return GapBatchReader(options, schema) if options.gaps else JournalBatchReader(options, Projection(schema))

    @plain_errors()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader for a stream."""
        options = SourceOptions.parse(self.options)
        return GapStreamReader(options, schema) if options.gaps else JournalStreamReader(options, Projection(schema))

    @plain_errors()
    def writer(self, schema: StructType, overwrite: bool) -> BatchSink:
        """Return a writer for a batch."""
        return BatchSink(SinkOptions.parse(self.options), schema)

    @plain_errors()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        """Return a writer for a stream."""
        return StreamSink(SinkOptions.parse(self.options), schema)
