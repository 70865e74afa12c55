from __future__ import annotations

from collections.abc import Iterator

import polars
import pyarrow as pa
import pytest

from weirpool import LimitExceeded, LocalError
from weirpool.frames.tables import ITEMS, TableBuilder, frame_of
from weirpool.wire.columns import SCHEMA

BATCH = pa.record_batch({"a": [1, 2, 3]})


class Twice:
    """A conversion that yields rows twice."""

    schema = BATCH.schema

    def convert(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield from (batch, batch)


def test_table_has_the_rows_of_all_batches() -> None:
    builder = TableBuilder(None, 1_000)
    for _ in range(3):
        assert builder.room() > 3
        builder.add(BATCH)
    assert builder.finish().num_rows == 9


def test_table_is_full_at_its_limit() -> None:
    builder = TableBuilder(4, 1_000, Twice())
    assert builder.room() == 4
    builder.add(BATCH)
    assert builder.room() == 0
    assert builder.finish().to_pydict() == {"a": [1, 2, 3, 1]}


def test_table_that_is_too_large_is_refused() -> None:
    builder = TableBuilder(None, 30)
    builder.add(BATCH)
    with pytest.raises(LimitExceeded, match="more than 30 bytes after 3 rows; pass limit="):
        builder.add(BATCH)


def test_empty_table_has_the_known_columns() -> None:
    assert TableBuilder(None, 1).finish().schema == ITEMS == SCHEMA
    assert TableBuilder(None, 1, Twice()).finish().schema == BATCH.schema


def test_limits_below_one_are_refused() -> None:
    for limit, size in ((0, 1), (None, 0)):
        with pytest.raises(LocalError, match="at least one row and one byte"):
            TableBuilder(limit, size)


def test_frame_is_one_of_polars() -> None:
    frame = frame_of(pa.Table.from_batches([BATCH]))
    assert isinstance(frame, polars.DataFrame) and frame["a"].to_list() == [1, 2, 3]
