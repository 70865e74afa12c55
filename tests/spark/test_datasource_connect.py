"""The format over Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from weirpool.archive import SealOptions, seal

from .drivers import FRUGAL
from .journals import fill

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.spark
def test_a_client_of_spark_connect_reads_batches_and_streams(tmp_path: Path) -> None:
    fill(tmp_path / "journal", "a", 5, 10)
    fill(tmp_path / "sealed", "a", 3000, 6000, 6001, segment_bytes=1)
    while seal(tmp_path / "sealed", "a", SealOptions(target_bytes=1), force=True):
        pass
    ran = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.spark.connected",
            str(tmp_path / "journal"),
            str(tmp_path / "sealed"),
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        timeout=200,
        cwd=ROOT,
        env={**os.environ, "JAVA_TOOL_OPTIONS": FRUGAL},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["session"] == "pyspark.sql.connect.session"
    assert found["rows"] == [3, 10, 15]
    assert found["later"] == [10, 10, 14]
    assert found["streamed"] == 14
    assert found["history"] == 6001
    page, neighbor = found["damage"]
    name = "source=a/00000000000000000000.parquet"
    assert "FAILED_READ_FILE" in page and name in page and f"{name}: " in neighbor
    assert "journal-typo: there is no such journal" in found["error"]
