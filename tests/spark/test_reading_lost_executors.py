"""Executors that are lost in the middle of tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .drivers import FRUGAL
from .lost_executors import ROWS

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.spark
def test_rows_are_there_once_whichever_executor_is_lost(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark.lost_executors", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=400,
        cwd=ROOT,
        env={**os.environ, "JAVA_TOOL_OPTIONS": FRUGAL},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found.pop("killed") == 4
    assert {query: sorted(rows) for query, rows in found.items()} == {
        query: [*range(ROWS)] for query in ("batch", "stream", "sink")
    }
