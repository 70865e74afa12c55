"""Runs mypy on files, one run at a time."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS = 240


def check_types(*files: Path) -> None:
    """Check that mypy finds nothing in some files with the settings of the project."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        str(ROOT / "pyproject.toml"),
        *map(str, files),
    ]
    with open(ROOT / "pyproject.toml") as lock:
        # All runs share the cache in ROOT, a database that supports one writer.
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, cwd=ROOT)
    assert result.returncode == 0, result.stdout
