"""The format over Spark Connect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .drivers import FRUGAL
from .journals import fill

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.spark
def test_a_client_of_spark_connect_reads_batches_and_streams(tmp_path: Path) -> None:
    fill(tmp_path / "journal", "a", 5, 10)
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark.connected", str(tmp_path / "journal"), str(tmp_path)],
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
    assert found["streamed"] == 10
    assert "journal-typo: there is no such journal" in found["error"]
