"""Decodes items into columns on the way to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ..decoding.decoded import Decoded, Decoder
from ..decoding.eventtime import EVENT_TIME, EventTime
from ..errors import Mismatch
from .decode_options import DecodeOptions, Mode
from .schema import COLUMNS, Projection, arrow_schema
from .typed_schema import CORRUPT, INDEX, columns_without_fields, grouped, requested_fields

__all__ = ["TypedProjection"]


class TypedProjection:
    """The columns that Spark requested, and the conversion of a journal's record batches.

    The schema has some of the columns of `typed_schema`, in any order, or `data`, the item itself. Only the fields in
    it are decoded. Other columns or types raise `LocalError`.
    """

    def __init__(self, options: DecodeOptions, schema: StructType) -> None:
        encoding = options.encoding()
        fields = requested_fields(options, encoding, schema)
        before, after = columns_without_fields(options)
        known = StructType([*before, COLUMNS["data"], *grouped(options, fields), *after])
        arrow = {field.name: field for field in to_arrow_schema(known, timezone="UTC")}
        may_be_null = {*known.names} - {*COLUMNS.names, INDEX} | {"metadata"}
        self._schema = arrow_schema(schema, known, arrow, may_be_null)
        # The source and the position are those of errors.
        needed = {*schema.names, "source", "position", "data"}
        self._journal = Projection(StructType([field for field in COLUMNS if field.name in needed]))
        self._options, self._encoding = options, encoding
        self._fields = to_arrow_schema(fields, timezone="UTC")
        # A mistake in a schema is an error of the driver, not of its workers.
        self._tools: tuple[Decoder, EventTime | None] | None = self._made_tools()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tools": None}

    @property
    def needs(self) -> list[str]:
        """The columns of a log to read for it."""
        return self._journal.needs

    def batches(self, batch: pa.RecordBatch, source: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a journal's batch in the format of Spark; see `typed`."""
        return self.typed(self._journal.apply(batch, source))

    def typed(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a batch with columns of `COLUMNS` in the format of Spark.

        Raises `Mismatch` at the first malformed item if the mode is FAILFAST.
        """
        if self._tools is None:
            self._tools = self._made_tools()
        decoder, event_time = self._tools
        at = 0
        for decoded in decoder.decode(batch.column("data")):
            rows = batch.slice(at, decoded.count)
            if decoded.items is not None:
                rows = rows.take(decoded.items)
            at += decoded.count
            yield self._arranged(rows, decoded if event_time is None else event_time.add(decoded))

    def _made_tools(self) -> tuple[Decoder, EventTime | None]:
        """Return what a process needs to decode: it is not pickled."""
        event_time = None
        if self._options.event_time is not None and EVENT_TIME.name in self._schema.names:
            event_time = EventTime(self._fields, self._options.event_time, self._options.unit)
        return self._encoding.decoder(self._fields), event_time

    def _arranged(self, rows: pa.RecordBatch, decoded: Decoded) -> pa.RecordBatch:
        """Return rows of a journal and their fields as the requested columns."""
        malformed = decoded.malformed
        if malformed and self._options.mode is Mode.FAILFAST:
            row, why = next(iter(malformed.items()))
            source, position = rows.column("source")[row].as_py(), rows.column("position")[row].as_py()
            problem = (
                f"the item is not the {self._options.format} that the schema describes: {why}. With the option mode "
                "set to PERMISSIVE, it becomes a row of nulls"
            )
            raise Mismatch(problems=[(f"source {source!r}, position {position}", problem)])
        columns = self._columns(rows, decoded)
        batch = pa.RecordBatch.from_arrays([columns[name] for name in self._schema.names], schema=self._schema)
        dropping = malformed and self._options.mode is Mode.DROPMALFORMED
        return batch.filter(_well_formed(rows, malformed)) if dropping else batch

    def _columns(self, rows: pa.RecordBatch, decoded: Decoded) -> dict[str, pa.Array]:
        """Return the requested columns by name, and perhaps more."""
        # By index, because with "decodeInto" a field may have any name.
        fields, more = decoded.fields.columns[: len(self._fields)], decoded.fields.columns[len(self._fields) :]
        columns = dict(zip([EVENT_TIME.name], more, strict=False))
        if self._options.into is None:
            columns.update(zip(self._fields.names, fields, strict=True))
        elif fields:
            malformed = pc.invert(_well_formed(rows, decoded.malformed))
            columns[self._options.into] = pa.StructArray.from_arrays(fields, fields=list(self._fields), mask=malformed)
        for name in self._schema.names:
            if name in COLUMNS.names:
                columns[name] = rows.column(name)
            elif name not in columns:
                columns[name] = _told(name, rows, decoded)
        return columns


def _told(name: str, rows: pa.RecordBatch, decoded: Decoded) -> pa.Array:
    """Return a column that tells about the decoding: the number of a row in its item, malformed items or reasons."""
    malformed, data = decoded.malformed, rows.column("data")
    if name == INDEX:
        assert decoded.items is not None
        counts = decoded.items.value_counts().field("counts").to_pylist()
        return pa.array(chain.from_iterable(map(range, counts)), pa.int32())
    if name == CORRUPT:
        return pc.if_else(_well_formed(rows, malformed), None, data) if malformed else pa.nulls(len(data), data.type)
    return (
        pa.array(map(malformed.get, range(len(data))), pa.string()) if malformed else pa.nulls(len(data), pa.string())
    )


def _well_formed(rows: pa.RecordBatch, malformed: dict[int, str]) -> pa.BooleanArray:
    return pa.array([row not in malformed for row in range(rows.num_rows)], pa.bool_())
