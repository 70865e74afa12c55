from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, IntegerType, LongType, MapType, StringType, StructField, StructType

from tests.journal.arrow import tabulate
from weirpool import LocalError, Mismatch
from weirpool.journal.format import ITEMS
from weirpool.spark.decode_options import DecodeOptions, Mode
from weirpool.spark.schema import COLUMNS
from weirpool.spark.typed import TypedProjection
from weirpool.spark.typed_schema import columns_without_fields

from ..decoding.messages import record, stream, text

ITEMS_OF_JSON = [b'{"id":1,"s":"x"}', b'{"id":"no"}', b'{"id":3}']
ID = StructField("id", LongType())
TEXT = StructField("s", StringType())


def rows(*items: bytes, first: int = 10) -> pa.RecordBatch:
    metadata = pa.nulls(len(items), pa.binary())
    return tabulate(pa.RecordBatch.from_arrays([pa.array(items, pa.binary()), metadata], schema=ITEMS), "s", first, 5)


def every(options: DecodeOptions, *fields: StructField) -> StructType:
    before, after = columns_without_fields(options)
    return StructType([*before, *fields, *after])


def decoded(options: DecodeOptions, schema: StructType, *items: bytes) -> list[dict[str, Any]]:
    """Decode as a worker does, and check what Spark checks."""
    projection = pickle.loads(pickle.dumps(TypedProjection(options, schema)))
    batches = list(projection.batches(rows(*items), "a"))
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(to_arrow_schema(schema, timezone="UTC"))
    return [row for batch in batches for row in batch.to_pylist()]


def test_a_malformed_item_is_a_row_of_nulls_that_keeps_the_item() -> None:
    options = DecodeOptions(format="json")
    found = decoded(options, every(options, ID, TEXT), *ITEMS_OF_JSON)
    assert [(row["position"], row["id"], row["s"], row["_corrupt"]) for row in found] == [
        (10, 1, "x", None),
        (11, None, None, b'{"id":"no"}'),
        (12, 3, None, None),
    ]
    assert [row["_error"] for row in found] == [None, "Expected `int | null`, got `str` - at `$.id`", None]
    assert {row["source"] for row in found} == {"a"}


def test_a_malformed_item_fails_the_task_and_is_named() -> None:
    with pytest.raises(Mismatch, match=r"^source 'a', position 11: the item is not the json .*Expected `int"):
        decoded(DecodeOptions(format="json", mode=Mode.FAILFAST), StructType([ID]), *ITEMS_OF_JSON)


def test_a_malformed_item_is_dropped() -> None:
    schema = StructType([COLUMNS["position"], ID])
    found = decoded(DecodeOptions(format="json", mode=Mode.DROPMALFORMED), schema, *ITEMS_OF_JSON)
    assert found == [{"position": 10, "id": 1}, {"position": 12, "id": 3}]
    assert decoded(DecodeOptions(format="json", mode=Mode.DROPMALFORMED), schema, b"x") == []


def test_columns_come_in_the_order_that_was_asked_for() -> None:
    schema = StructType([TEXT, COLUMNS["data"], COLUMNS["position"]])
    assert decoded(DecodeOptions(format="json"), schema, ITEMS_OF_JSON[0]) == [
        {"s": "x", "data": ITEMS_OF_JSON[0], "position": 10}
    ]


def test_what_is_not_asked_for_is_not_checked() -> None:
    assert decoded(DecodeOptions(format="json", mode=Mode.FAILFAST), StructType([TEXT]), *ITEMS_OF_JSON)[1] == {
        "s": None
    }


def test_columns_without_fields_need_no_field() -> None:
    reasons = StructType([StructField("_error", StringType()), COLUMNS["position"]])
    found = decoded(DecodeOptions(format="json"), reasons, b"{}", b"x")
    assert [row["_error"] is None for row in found] == [True, False]
    options = DecodeOptions(format="arrow")
    assert decoded(options, StructType([COLUMNS["position"]]), stream(pa.table({"a": [1, 2]})), b"") == [
        {"position": 10},
        {"position": 10},
        {"position": 11},
    ]


def test_one_column_has_all_fields() -> None:
    options = DecodeOptions(format="json", into="event", event_time="id")
    event = StructField("event", StructType([ID, TEXT]))
    found = decoded(options, every(options, event), *ITEMS_OF_JSON)
    assert [row["event"] for row in found] == [{"id": 1, "s": "x"}, None, {"id": 3, "s": None}]
    assert [row["event_time"] and row["event_time"].timestamp() for row in found] == [1, None, 3]


def test_fields_in_one_column_may_have_any_name() -> None:
    options = DecodeOptions(format="json", into="event", event_time="event_time")
    named = [StructField(name, LongType()) for name in ("event_time", "_error", "position", "_corrupt")]
    schema = every(options, StructField("event", StructType(named)))
    item = b'{"event_time":1,"_error":2,"position":3,"_corrupt":4}'
    (row,) = decoded(options, schema, item)
    assert row["event"] == {"event_time": 1, "_error": 2, "position": 3, "_corrupt": 4}
    assert (row["event_time"].timestamp(), row["_error"], row["position"], row["_corrupt"]) == (1, None, 10, None)


def test_rows_of_arrow_items_are_numbered() -> None:
    options = DecodeOptions(format="arrow")
    items = [stream(pa.table({"id": ids})) for ids in ([5, 6], [7])]
    found = decoded(options, every(options, ID), items[0], b"junk", items[1])
    assert [(row["position"], row["index"], row["id"]) for row in found] == [
        (10, 0, 5),
        (10, 1, 6),
        (11, 0, None),
        (12, 0, 7),
    ]
    assert [row["_corrupt"] for row in found] == [None, None, b"junk", None]


def test_nested_types_are_those_of_spark() -> None:
    nested = StructField("n", MapType(StringType(), ArrayType(StructType([ID]))))
    assert decoded(DecodeOptions(format="json"), StructType([nested]), b'{"n":{"k":[{"id":1},null]}}') == [
        {"n": [("k", [{"id": 1}, None])]}
    ]


def test_types_must_be_those_of_the_schema() -> None:
    avro = DecodeOptions(format="avro", schema=text(record(("id", "long"))).decode())
    with pytest.raises(LocalError, match="'id' is of type bigint, not int; read it as it is, then cast it"):
        TypedProjection(avro, StructType([StructField("id", IntegerType())]))
    with pytest.raises(LocalError, match="'position' is of type bigint"):
        TypedProjection(avro, StructType([StructField("position", IntegerType())]))


def test_the_event_time_is_a_field_that_is_read() -> None:
    options = DecodeOptions(format="json", event_time="at")
    with pytest.raises(LocalError, match="'at', which is not decoded"):
        TypedProjection(options, every(options, ID))
    assert decoded(options, StructType([ID]), b'{"id":1}') == [{"id": 1}]
