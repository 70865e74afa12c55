"""Spark drivers in processes of their own, which kill themselves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

__all__ = ["FRUGAL", "exit_code_of"]

SECONDS = 200
FRUGAL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A JVM that lives for a minute pays more for compiling its code than it gains."""


def exit_code_of(module: str, *arguments: str) -> int:
    """Run a module as a driver, and return its exit code; what it has started ends with it."""
    command = [sys.executable, "-m", module, *arguments]
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": FRUGAL}
    driver = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        return driver.wait(timeout=SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
