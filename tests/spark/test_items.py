from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from weirpool import LocalError
from weirpool.spark.items import Origin, Packer
from weirpool.spark.sink_options import SinkOptions

ORIGIN = Origin('the "query"', 12, 3)
ROWS = pa.record_batch({"id": [1, 2], "data": ["a", "é"], "key": [b"k1", None]})
SCHEMA = StructType(
    [StructField("id", LongType()), StructField("data", StringType()), StructField("key", BinaryType())]
)


def packer(schema: StructType = SCHEMA, **more: str) -> Packer:
    return Packer.of(SinkOptions.parse({"url": "rsocket+tcp://h:1", "route": "r", **more}), schema)


def pack(rows: pa.RecordBatch, *arguments: Any, **more: str) -> list[dict[str, Any]]:
    return packer(*arguments, **more).pack(rows, ORIGIN, 7).to_pylist()


def test_column_data_is_the_data() -> None:
    assert [row["data"] for row in pack(ROWS)] == [b"a", "é".encode()]


def test_named_columns_are_data_and_metadata() -> None:
    rows = pack(ROWS.slice(0, 1), dataColumn="key", metadataColumn="data")
    assert rows == [{"data": b"k1", "metadata": b"a"}]


def test_metadata_may_be_null() -> None:
    assert [row["metadata"] for row in pack(ROWS, metadataColumn="key")] == [b"k1", None]


def test_metadata_says_which_row_it_is() -> None:
    metadata = [row["metadata"] for row in pack(ROWS)]
    assert metadata[0] == b'{"query":"the \\"query\\"","batch":12,"partition":3,"index":7}'
    assert json.loads(metadata[1]) == {"query": 'the "query"', "batch": 12, "partition": 3, "index": 8}


@pytest.mark.parametrize("name", ["id", "value"])
def test_rows_without_data_become_json(name: str) -> None:
    schema = StructType([StructField(name, LongType()), StructField("data", LongType())])
    (row,) = pack(pa.record_batch({name: [1], "data": [5]}), schema)
    assert row["data"] == b'{"%s":1,"data":5}' % name.encode()


def test_json_has_every_type_of_a_row() -> None:
    values = {
        "time": pa.array([datetime(2013, 1, 1, 5, tzinfo=UTC)], pa.timestamp("us", tz="UTC")),
        "day": pa.array([date(2013, 1, 1)]),
        "price": pa.array([Decimal("1.50")]),
        "raw": pa.array([b"\x00\x01"]),
        "missing": pa.array([None], pa.int32()),
        "nan": pa.array([float("nan")]),
        "tags": pa.array([["a", "b"]]),
        "nested": pa.array([{"x": 1}]),
        "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    (row,) = pack(pa.record_batch(values), StructType([]))
    assert json.loads(row["data"]) == {
        "time": "2013-01-01T05:00:00Z", "day": "2013-01-01", "price": "1.50", "raw": "AAE=", "missing": None,
        "nan": None, "tags": ["a", "b"], "nested": {"x": 1}, "map": {"k": 1},
    }  # fmt: skip


def test_null_data_is_explained() -> None:
    with pytest.raises(LocalError, match="1 rows have a null in column 'key'; fill or drop"):
        pack(ROWS, dataColumn="key")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"dataColumn": "kee"}, "\"dataColumn\" is 'kee', which is not a column; did you mean 'key'"),
        ({"metadataColumn": "zzz"}, "the columns are id, data, key"),
        ({"dataColumn": "id"}, "'id' of type bigint; cast it to string or binary first"),
    ],
)
def test_columns_that_cannot_be_sent_are_explained(more: dict[str, str], message: str) -> None:
    with pytest.raises(LocalError, match=message):
        packer(**more)
