"""Typed rows in Spark, beside its own from_json."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import col, from_json, window

from weirpool.journal.format import ITEMS
from weirpool.journal.writer import JournalWriter

from ..decoding.messages import DESCRIPTORS, avro, message, record, text

SECONDS = 60
DDL = (
    "b TINYINT, i INT, l BIGINT, d DOUBLE, s STRING, o BOOLEAN, t TIMESTAMP, n TIMESTAMP_NTZ, y DATE, x BINARY, "
    "c DECIMAL(10,2), st STRUCT<p: INT, q: ARRAY<DOUBLE>>, ar ARRAY<STRUCT<z: STRING>>, m MAP<STRING, BIGINT>"
)
SOUND: dict[str, list[Any]] = {
    "b": [0, 127, -128],
    "i": [1, -(1 << 31), (1 << 31) - 1],
    "l": [0, -(1 << 63), (1 << 63) - 1],
    "d": [0, 1.5, -2, 1e300, 123456789.123456789, math.nan, math.inf, -math.inf],
    "s": ["", "text", 'ünï\u2028cödé \\ " \n', "null"],
    "o": [True, False],
    "t": [
        "2020-02-29T12:34:56Z",
        "1969-12-31T23:59:59.123456Z",
        "2020-01-01T00:00:00+05:30",
        1577836800,
        -1,
        "2020-12-31T23:59:59.9999999Z",
        "1969-12-31T23:59:59.999999999Z",
    ],
    "n": ["2020-02-29T12:34:56", "0001-01-01T00:00:00.5", "9999-12-31T23:59:59.9999999"],
    "y": ["2020-02-29", "0001-01-01", "9999-12-31"],
    "x": ["", "aGk=", "/+8="],
    "c": [1, -1.25, 0.005, 1.115, 99999999.99, 12345.678],
    "st": [{}, {"p": 1, "extra": [{}]}, {"p": None, "q": [1, 2.5, None, -math.inf]}],
    "ar": [[], [None, {"z": "a"}, {}]],
    "m": [{}, {"k": 1, "": None}],
}
WRONG: dict[str, list[Any]] = {
    # from_json reads 128 to 255 as negative numbers.
    "b": [256, "1", 1.5, True],
    "i": [1 << 31, "x", [], 1.0, math.nan],
    "l": [1 << 63, {}, False],
    "d": ["1", True, []],
    "o": [1, "true", math.inf],
    "t": ["yesterday", True, {}],
    "n": ["no", {}],
    "y": ["2020-13-01", {}],
    "c": [1e9, 100000000, "abc", True, math.nan],
    "st": [1, [], {"p": "x"}, {"q": 5}],
    "ar": [{"k": 1}, [{"z": "a"}, 5], "x"],
    "m": [[], {"k": "x"}, 1],
}


def generated(seed: int, count: int) -> list[bytes]:
    """Return items: three of four are sound, and the others have one wrong value."""
    chance = random.Random(seed)
    items = []
    for _ in range(count):
        item = {name: chance.choice([*values, None]) for name, values in SOUND.items() if chance.random() < 0.7}
        if chance.random() < 0.25:
            name = chance.choice([*WRONG])
            item[name] = chance.choice(WRONG[name])
        items.append(json.dumps(item, ensure_ascii=chance.random() < 0.5, indent=chance.choice([None, 1])).encode())
    return items


def fill(journal: Path, items: list[bytes]) -> None:
    columns = [pa.array(items, pa.binary()), pa.nulls(len(items), pa.binary())]
    with JournalWriter.open(journal, "a", fsync=False) as writer:
        writer.append(pa.RecordBatch.from_arrays(columns, schema=ITEMS), "events")


def typed(spark: SparkSession, journal: Path, **options: str) -> DataFrame:
    return spark.read.format("weirpool").options(**options).load(str(journal))


@pytest.mark.spark
def test_json_is_decoded_like_sparks_own(spark: SparkSession, journal: Path) -> None:
    items = generated(13, 1_500)
    fill(journal, items)
    ours = typed(spark, journal, decode="json", decodeSchema=DDL).orderBy("position").collect()
    parsed = from_json(
        col("data").cast("string"),
        f"{DDL}, _corrupt STRING",
        {"columnNameOfCorruptRecord": "_corrupt"},
    )
    raw = spark.read.format("weirpool").load(str(journal))
    theirs = raw.select("position", parsed.alias("v")).select("position", "v.*").orderBy("position").collect()
    names = [*SOUND]
    differing = []
    for item, our, their in zip(items, ours, theirs, strict=True):
        same = (our._corrupt is None) == (their._corrupt is None)
        if same and our._corrupt is None:
            # Texts, because NaN is not equal to itself.
            same = repr([our[name] for name in names]) == repr([their[name] for name in names])
        if not same:
            differing.append((item, our, their))
    assert differing[:3] == []
    assert 250 < sum(row._corrupt is not None for row in ours) < 500


@pytest.mark.spark
def test_a_query_with_a_watermark_reads_event_times(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    # Spark drops a row if it is older than the watermark of the batch before.
    minutes = [0, 30, 31, 3]
    fill(journal, [b'{"at": %d, "n": 1}' % (60_000 * minute) for minute in minutes])
    rows = (
        spark.readStream.format("weirpool")
        .options(decode="json", decodeSchema="at BIGINT, n INT", eventTime="at", timestampUnit="ms")
        .options(mode="DROPMALFORMED", maxRowsPerTrigger=1)
        .load(str(journal))
    )
    counted = rows.withWatermark("event_time", "5 minutes").groupBy(window("event_time", "10 minutes")).sum("n")
    out = tmp_path / "out"
    spark.conf.set("spark.sql.shuffle.partitions", 1)
    writer = counted.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.outputMode("append").trigger(availableNow=True).start(str(out))
    try:
        assert query.awaitTermination(SECONDS)
    finally:
        query.stop()
        spark.conf.unset("spark.sql.shuffle.partitions")
    found = spark.read.parquet(str(out)).select("window.start", "sum(n)").collect()
    assert [(row[0].minute, row[1]) for row in found] == [(0, 1)]


@pytest.mark.spark
def test_each_mode_in_spark(spark: SparkSession, journal: Path) -> None:
    fill(journal, [b'{"id":1}', b"junk"])
    options = {"decode": "json", "decodeSchema": "id BIGINT, time STRING", "decodeInto": "event"}
    kept = typed(spark, journal, **options).select("event.id", "_corrupt").orderBy("position").collect()
    assert kept == [Row(id=1, _corrupt=None), Row(id=None, _corrupt=bytearray(b"junk"))]
    assert typed(spark, journal, **options, mode="DROPMALFORMED").count() == 1
    with pytest.raises(PySparkException, match="source 'a', position 1: the item is not the json"):
        typed(spark, journal, **options, mode="FAILFAST").collect()
    with pytest.raises(PySparkException, match="columns are called 'time'"):
        typed(spark, journal, decode="json", decodeSchema="id BIGINT, time STRING").collect()


@pytest.mark.spark
def test_formats_with_a_schema_in_spark(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    schema = record(("id", "long"), ("tags", {"type": "map", "values": ["null", "string"]}))
    fill(journal, [avro(schema, id=5, tags={"k": None})])
    rows = typed(spark, journal, decode="avro", decodeSchema=text(schema).decode())
    assert rows.select("id", "tags", "_error").collect() == [Row(id=5, tags={"k": None}, _error=None)]
    descriptors = tmp_path / "event.desc"
    descriptors.write_bytes(DESCRIPTORS)
    fill(journal, [message("Event", id=6, points=[{"x": 1}]).SerializeToString()])
    options = {"decodeSchemaFile": str(descriptors), "decodeMessage": "test.Event", "decodeInto": "event"}
    rows = typed(spark, journal, decode="protobuf", mode="DROPMALFORMED", **options).where("position = 1")
    assert rows.select("event.id", "event.points").collect() == [Row(id=6, points=[Row(x=1, color="RED")])]
