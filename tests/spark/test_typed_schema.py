from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from weirpool import LocalError
from weirpool.spark.decode_options import DecodeOptions, Mode
from weirpool.spark.schema import COLUMNS
from weirpool.spark.typed_schema import requested_fields, typed_schema

from ..decoding.messages import record, text

AVRO = text(record(("id", "long"), ("tags", {"type": "array", "items": "string"}))).decode()
FIELDS = StructType([StructField("id", LongType()), StructField("tags", ArrayType(StringType()))])


def names(schema: StructType | str) -> list[str]:
    assert isinstance(schema, StructType)
    return schema.names


def requested(options: DecodeOptions, *fields: StructField) -> StructType:
    return requested_fields(options, options.encoding(), StructType([*fields]))


def test_fields_stand_between_the_columns_of_a_journal() -> None:
    schema = typed_schema(DecodeOptions(format="avro", schema=AVRO))
    assert names(schema) == ["source", "position", "time", "stream", "id", "tags", "metadata", "_corrupt", "_error"]
    assert isinstance(schema, StructType) and schema["tags"].dataType == ArrayType(StringType())


def test_columns_tell_of_malformed_items_where_they_are_kept() -> None:
    for mode in (Mode.FAILFAST, Mode.DROPMALFORMED):
        schema = typed_schema(DecodeOptions(format="avro", schema=AVRO, mode=mode, event_time="id"))
        assert names(schema) == ["source", "position", "time", "stream", "event_time", "id", "tags", "metadata"]


def test_one_column_may_have_all_fields() -> None:
    schema = typed_schema(DecodeOptions(format="avro", schema=AVRO, into="event"))
    assert isinstance(schema, StructType) and schema["event"].dataType == FIELDS
    text_of = typed_schema(DecodeOptions(format="json", schema="a INT", into="the `event`"))
    assert isinstance(text_of, str) and ", `the ``event``` STRUCT<a INT\n>, `metadata` binary" in text_of


def test_spark_parses_columns_in_its_own_language() -> None:
    schema = typed_schema(DecodeOptions(format="arrow", schema=" a INT COMMENT 'x, y' ", mode=Mode.FAILFAST))
    assert schema == (
        "`source` string, `position` bigint, `time` timestamp, `stream` string, `index` int, a INT COMMENT 'x, y'\n, "
        "`metadata` binary"
    )


def test_a_schema_in_json_has_each_name_once() -> None:
    with pytest.raises(LocalError, match=r"decodeSchema.*'fields' is there twice"):
        typed_schema(DecodeOptions(format="json", schema='{"type": "struct", "fields": [], "fields": []}'))


@pytest.mark.parametrize(("into", "after"), [(None, "\n, "), ("event", "\n>, ")])
def test_a_comment_at_the_end_hides_no_columns(into: str | None, after: str) -> None:
    # Without the columns of malformed items, these would be rows of nulls that nothing tells apart.
    text = typed_schema(DecodeOptions(format="json", schema="a INT -- the key", into=into))
    assert isinstance(text, str) and f"a INT -- the key{after}`metadata` binary, `_corrupt` binary" in text


def test_columns_may_be_json_and_may_all_be_null() -> None:
    strict = StructType([StructField("m", MapType(StringType(), LongType(), False), False)])
    schema = typed_schema(DecodeOptions(format="json", schema=strict.json()))
    assert isinstance(schema, StructType) and schema["m"] == StructField("m", MapType(StringType(), LongType()))
    with pytest.raises(LocalError, match=r"df\.schema\.json"):
        typed_schema(DecodeOptions(format="json", schema='{"type": "struct"}'))


def test_only_requested_fields_are_decoded() -> None:
    json = DecodeOptions(format="json")
    assert requested(json, COLUMNS["position"], *FIELDS, COLUMNS["data"]) == FIELDS
    assert requested(json, COLUMNS["time"], StructField("_error", StringType())) == StructType([])
    avro = DecodeOptions(format="avro", schema=AVRO)
    assert requested(avro, FIELDS["tags"]).names == ["tags"]
    into = DecodeOptions(format="json", into="event")
    assert requested(into, COLUMNS["time"], StructField("event", FIELDS)) == FIELDS
    assert requested(into, COLUMNS["time"]) == StructType([])


@pytest.mark.parametrize(
    ("options", "fields", "problem"),
    [
        ({}, [COLUMNS["time"], StructField("Time", TimestampType())], "2 columns are called 'time'.*\"decodeInto\""),
        ({}, [StructField("a", LongType(), False)], "'a' may be null"),
        ({}, [StructField("a", ArrayType(LongType(), False))], "'a' may be null, and so may its parts"),
        ({"into": "event"}, [StructField("a", LongType())], "no column 'a'.*'event'"),
        ({"into": "event"}, [StructField("event", LongType())], "no column 'event'"),
        ({"format": "avro", "schema": AVRO}, [StructField("x", DoubleType())], "no field 'x'"),
    ],
    ids=str,
)
def test_other_columns_are_refused(options: dict[str, Any], fields: list[StructField], problem: str) -> None:
    with pytest.raises(LocalError, match=problem):
        requested(DecodeOptions(**{"format": "json", **options}), *fields)


def test_a_field_may_have_the_name_of_a_column_that_is_not_there() -> None:
    failing = DecodeOptions(format="json", mode=Mode.FAILFAST)
    assert requested(failing, StructField("_error", IntegerType())).names == ["_error"]
