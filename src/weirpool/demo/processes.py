"""The demo's other processes: the publisher, the collector and Spark."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import WeirpoolError
from ..protocols import EXAMPLE_URL
from ..urls import parse_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["DemoFailed", "collector", "publisher", "spark_session"]

STOP_SECONDS: Final = 10.0
STDOUT: Final = 1
STDERR: Final = 2
REASON_CHARACTERS: Final = 200
"""Characters of Spark's reason to show when the demo has failed."""


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
    """Run Spark, and yield its session. All that it and its processes print goes to `log`.

    Raises:
        DemoFailed: Spark failed; `log` has the whole of it.

    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    log.write_bytes(b"")
    with _output_to(log, STDERR):
        try:
            yield from _sessions(log)
        except (PySparkException, Py4JError, ConnectionError) as error:
            traceback.print_exc()
            raise DemoFailed(f"Spark failed: {_reason(str(error))}; its log is {log}") from None


def _sessions(log: Path) -> Iterator[SparkSession]:
    """Yield one session, and stop it, also if Spark's process has died."""
    from ..spark.local import session

    with _output_to(log, STDOUT):
        spark = session("weirpool demo", master="local[2]")
        spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    except BaseException:
        with suppress(Exception):
            spark.stop()
        raise
    spark.stop()


def _reason(text: str) -> str:
    """Return the innermost cause that a text of Spark's has, in one line, without stack traces."""
    lines = [line.strip() for line in text.splitlines()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    told = [line for line in lines if line and not line.startswith(("at ", "...", "JVM stacktrace"))]
    reason = (causes or told[:1] or ["it has ended"])[-1]
    return reason if len(reason) <= REASON_CHARACTERS else f"{reason[:REASON_CHARACTERS]}…"


@contextmanager
def _output_to(log: Path, number: int) -> Iterator[None]:
    """Let this process, and those that it starts meanwhile, write a standard stream to a file."""
    stream = sys.stderr if number == STDERR else sys.stdout
    stream.flush()
    kept = os.dup(number)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), number)
        yield
    finally:
        stream.flush()
        os.dup2(kept, number)
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
