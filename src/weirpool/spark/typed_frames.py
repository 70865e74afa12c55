"""Typed rows from any DataFrame with the columns of a journal, such as its history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ..errors import LocalError
from .decode_options import DECODE_OPTIONS, DecodeOptions
from .given import Given
from .schema import COLUMNS
from .shown import plain_errors
from .typed import TypedProjection
from .typed_schema import typed_schema

__all__ = ["typed_rows"]

# Spark passes times in the time zone of the session.
_COLUMNS: Final = to_arrow_schema(COLUMNS, timezone="UTC")


def typed_rows(rows: DataFrame, **options: str) -> DataFrame:
    """Return the rows of a DataFrame with the fields of their items as columns.

    Args:
        rows: A DataFrame, batch or streaming, with the columns of a journal.
        options: Those of the source that concern decoding, such as ``decode="json", decodeSchema="id BIGINT"``;
            `docs/how-to/typed-rows.md` lists them.

    Returns:
        A DataFrame with the columns that the source would have with these options.

    Raises:
        LocalError: An option is missing or wrong, or the DataFrame does not have all columns of a journal.

    """
    parsed = DecodeOptions.of(Given(options, DECODE_OPTIONS, {}))
    if parsed is None:
        raise LocalError('option "decode" is missing: the format of the items')
    missing = [name for name in COLUMNS.names if name not in rows.columns]
    if missing:
        raise LocalError(f"the DataFrame has no column {missing[0]!r}; it needs {', '.join(COLUMNS.names)}")
    columns = typed_schema(parsed)
    schema = StructType.fromDDL(columns) if isinstance(columns, str) else columns
    assert isinstance(schema, StructType)
    projection = TypedProjection(parsed, schema)

    def convert(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with plain_errors():
            for batch in batches:
                yield from projection.typed(batch.cast(_COLUMNS))

    return rows.select(COLUMNS.names).mapInArrow(convert, schema)
