from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weirpool import LocalError
from weirpool.spark.typed_frames import typed_rows

from .test_typed_spark import fill, typed

OPTIONS = {"decode": "json", "decodeSchema": "id BIGINT, at BIGINT", "eventTime": "at"}


@pytest.mark.spark
def test_any_rows_of_a_journal_are_typed_like_the_source(spark: SparkSession, journal: Path, tmp_path: Path) -> None:
    fill(journal, [b'{"id":1,"at":5}', b"junk", b'{"id":3}'])
    raw = spark.read.format("weirpool").load(str(journal))
    raw.write.parquet(str(tmp_path / "history"))
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    try:
        rows = typed_rows(spark.read.parquet(str(tmp_path / "history")), **OPTIONS)
        expected = typed(spark, journal, **OPTIONS)
        assert rows.schema == expected.schema
        assert rows.orderBy("position").collect() == expected.orderBy("position").collect()
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    with pytest.raises(PySparkException, match="source 'a', position 1"):
        typed_rows(raw, **OPTIONS, mode="FAILFAST").collect()


@pytest.mark.spark
def test_mistakes_are_refused(spark: SparkSession, journal: Path) -> None:
    fill(journal, [b"{}"])
    raw = spark.read.format("weirpool").load(str(journal))
    with pytest.raises(LocalError, match='"decode" is missing'):
        typed_rows(raw)
    with pytest.raises(LocalError, match="no column 'metadata'"):
        typed_rows(raw.drop("metadata"), **OPTIONS)
    with pytest.raises(LocalError, match='no option "reader"'):
        typed_rows(raw, **OPTIONS, reader="me")
