"""A standalone cluster of Spark: a master and two workers, none of which sees the collectors' disks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

from tests.spark.drivers import FRUGAL
from weirpool.spark.java import ensure_java

from .processes import Program, hiding

__all__ = ["Cluster", "cluster"]

WORKERS: Final = 2
HOME: Final = Path(pyspark.__file__).parent
START: Final = [str(HOME / "bin" / "spark-class"), "org.apache.spark.deploy"]


@dataclass(frozen=True)
class Cluster:
    """A cluster, and a driver with a session.

    Attributes:
        driver: The program `tests.cluster.pipeline`.
        disks: The folder with the disks of collectors. The cluster and the driver find nothing in it.
        hidden: Whether that is so: not all machines allow it.

    """

    driver: Program
    disks: Path
    hidden: bool


@contextmanager
def cluster(folder: Path, credentials: dict[str, str]) -> Iterator[Cluster]:
    """Run a cluster and a driver.

    Args:
        folder: For its files.
        credentials: The variables by which Spark reads journals and stores.

    """
    ensure_java()
    disks = folder / "disks"
    disks.mkdir()
    hidden = hiding(disks)
    environment = {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        # Otherwise it also listens on a fixed port.
        "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.master.rest.enabled=false {FRUGAL}",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    started: list[Program] = []

    def start(name: str, *command: str, **options: bool) -> Program:
        started.append(Program(name, [*hidden, *command], folder, environment | credentials, **options))
        return started[-1]

    def daemon(name: str, kind: str, *arguments: str) -> Program:
        address = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        return start(name, START[0], f"{START[1]}.{kind}", *address, *arguments)

    try:
        (master,) = daemon("master", "master.Master").await_lines(r"Starting Spark master at (\S+)")
        for number in range(WORKERS):
            place = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}")]
            daemon(f"worker-{number}", "worker.Worker", *place, master)
        driver = start("driver", sys.executable, "-m", "tests.cluster.pipeline", master, FRUGAL, piped=True)
        driver.answer()
        yield Cluster(driver, disks, bool(hidden))
    finally:
        for program in reversed(started):
            program.kill()
