"""The memory use of floods, measured in separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builds import Build

ROOT = Path(__file__).parent.parent.parent
MIB = 1 << 20
BESIDES = 40 * MIB
"""Buffers of both sides, several copies of a part of 1 MiB, and the allocator's reserve."""


@pytest.mark.parametrize("limit", ["max_reassembly_bytes", "max_process_reassembly_bytes"])
def test_endless_fragments_stay_within_the_limit(build: Build, limit: str) -> None:
    # THREATS 101
    environment = {**os.environ, "WEIRPOOL_PURE": "1" if build.name == "plain" else ""}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), environment.get("PYTHONPATH", "")])
    script = [sys.executable, "-m", "tests.hostile.flooded_by_parts", limit, str(64 * MIB)]
    done = subprocess.run(script, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=True)
    said = json.loads(done.stdout)
    assert said["accelerated"] == (build.name == "compiled")
    assert said["ended"].startswith("LimitExceeded: unfinished items") and limit in said["ended"]
    assert said["grown"] < 64 * MIB + BESIDES
