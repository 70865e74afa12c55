"""What people and files see of a sink's options: no secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .drivers import FRUGAL
from .logged import CREDENTIALS, MISTAKES

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.spark
def test_no_secret_is_in_errors_plans_events_pages_or_checkpoints(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.spark.logged", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=400,
        cwd=ROOT,
        env={**os.environ, "JAVA_TOOL_OPTIONS": FRUGAL},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["secrets"] == []
    assert "geheim" not in ran.stderr
    # What was looked through: plans and errors of writes and queries, in the log of events and on pages.
    assert {"events", "page jobs"} <= set(found["marks"])
    assert found["writes"] >= 2 * len(CREDENTIALS)
    assert found["streamed"] == 2 * len(CREDENTIALS)
    assert found["errors"] == 2 * len(CREDENTIALS) + 2 * (len(CREDENTIALS) + len(MISTAKES))
