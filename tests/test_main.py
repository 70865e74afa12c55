"""`python -m weirpool`."""

from __future__ import annotations

import subprocess
import sys


def test_package_runs_as_the_command() -> None:
    command = [sys.executable, "-m", "weirpool", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert "doctor" in result.stdout
