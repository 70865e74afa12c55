from __future__ import annotations

import os
import sys

import pytest
from pyspark.sql import SparkSession

from weirpool.spark.local import LOGGING

pytestmark = pytest.mark.spark


def test_session_is_made_for_one_machine(spark: SparkSession) -> None:
    assert spark.range(10).count() == 10
    configuration = {
        name: spark.conf.get(name) for name in ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions")
    }
    assert configuration == {"spark.sql.session.timeZone": "UTC", "spark.sql.shuffle.partitions": "2"}
    assert spark.sparkContext.uiWebUrl is None


def test_spark_logs_as_its_file_says(spark: SparkSession) -> None:
    assert LOGGING.is_file()
    options = spark.conf.get("spark.driver.extraJavaOptions")
    assert options is not None and options.startswith(f"-Dlog4j2.configurationFile={LOGGING.as_uri()}")


def test_configuration_is_taken_over(spark: SparkSession) -> None:
    assert spark.conf.get("spark.driver.memory") == "1g"


def test_workers_run_on_this_python(spark: SparkSession) -> None:
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert spark.sparkContext.parallelize([0], 1).map(lambda _: sys.prefix).collect() == [sys.prefix]
