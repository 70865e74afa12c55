"""The demo's other processes: the publisher, the collector and Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import WeirpoolError
from ..protocols import EXAMPLE_URL
from ..urls import parse_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DemoFailed", "collector", "publisher", "spark_session"]

STOP_SECONDS: Final = 10.0
STDERR: Final = 2
LOG_CHARACTERS: Final = 2_000
"""Characters of Spark's log to show when the demo has failed."""


class DemoFailed(WeirpoolError):
    """A part of the demo failed."""


@contextmanager
def publisher() -> Iterator[str]:
    """Run the publisher, and yield its URL."""
    command = ["serve", "weirpool.demo.flights:service", str(parse_url(EXAMPLE_URL).with_port(0))]
    with _process(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode().strip()
        if not line.startswith("listening on "):
            raise DemoFailed(f"the publisher did not start; its output is {line!r}")
        yield line.removeprefix("listening on ")


@contextmanager
def collector(url: str, route: str, journal: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the collector, which ends when the stream completes."""
    command = ["collect", url, route, "--journal", str(journal), "--quiet"]
    with _process(command, stdout=subprocess.DEVNULL) as process:
        yield process


@contextmanager
def spark_session(log: Path) -> Iterator[SparkSession]:
    """Run Spark, and yield its session. What its processes print goes to `log`, of which a failure shows the end."""
    from ..spark.local import session

    with _errors_to(log):
        spark = session("weirpool demo", master="local[2]")
        spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    except Exception:
        print(f"the end of {log}:\n{log.read_text(errors='replace')[-LOG_CHARACTERS:]}", file=sys.stderr)
        raise
    finally:
        spark.stop()


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Let processes that are started meanwhile inherit a file as their standard error."""
    sys.stderr.flush()
    kept = os.dup(STDERR)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), STDERR)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, STDERR)
        os.close(kept)


@contextmanager
def _process(command: list[str], stdout: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", "weirpool", *command], stdout=stdout)
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
