"""The demo's other processes: the publisher and the collector."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..errors import PenstockError
from ..protocols import EXAMPLE_URL
from ..urls import parse_url

__all__ = ["DemoFailed", "collector", "publisher"]

STOP_SECONDS: Final = 10.0
BUDGET_MIB: Final = 64
"""Small, to show how the publisher is slowed down to Spark's pace."""


class DemoFailed(PenstockError):
    """A part of the demo failed."""


@contextmanager
def publisher() -> Iterator[str]:
    """Run the publisher, and yield its URL."""
    command = ["serve", "penstock.demo.flights:service", str(parse_url(EXAMPLE_URL).with_port(0))]
    with _process(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode().strip()
        if not line.startswith("listening on "):
            raise DemoFailed(f"the publisher did not start; its output is {line!r}")
        yield line.removeprefix("listening on ")


@contextmanager
def collector(url: str, route: str, journal: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the collector, which ends when the stream completes."""
    command = ["collect", url, route, "--journal", str(journal), "--budget", f"{BUDGET_MIB}MiB"]
    with _process([*command, "--quiet"], stdout=subprocess.DEVNULL) as process:
        yield process


@contextmanager
def _process(command: list[str], stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", "penstock", *command], stdout=stdout)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
