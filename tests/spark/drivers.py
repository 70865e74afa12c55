"""Spark drivers in processes of their own, which kill themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

__all__ = ["exit_code_of"]

SECONDS = 200


def exit_code_of(module: str, *arguments: str) -> int:
    """Run a module as a driver, and return its exit code; what it has started ends with it."""
    command = [sys.executable, "-m", module, *arguments]
    driver = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return driver.wait(timeout=SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
