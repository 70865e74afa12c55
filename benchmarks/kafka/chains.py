"""The two ways from a source to Spark, each as processes that stay up and do the same work."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

from ..processes import Variant, Worker
from .broker import Broker, broker
from .programs import SPARK, Programs

__all__ = ["PARTITIONS", "Chain", "Kafka", "Weirpool", "kafka", "weirpool"]

PARTITIONS = 2
PUBLISHER = Variant("publisher", "ours_pipeline")
JOURNAL_READER = Variant("Spark", "ours_spark", loop="asyncio")


class Chain(Protocol):
    """A way from a source to Spark.

    Attributes:
        name: Its name in tables.
        spark: Spark; it has the scenarios "batch", "stream", "start", "settle", "follow", "floor" and "stop".

    """

    name: str
    spark: Worker

    def pids(self) -> Mapping[str, int]:
        """Return the processes "source", "log" and "spark"."""

    def publish(self, log: str, rows: int) -> Any:
        """Write rows to a log, until the last one is safe."""

    def events(self, log: str, count: int, milliseconds: int) -> Any:
        """Write an event at each interval to a log; each begins with its time."""

    def create(self, log: str) -> None:
        """Create a log."""

    def delete(self, log: str) -> None:
        """Delete a log."""


class Weirpool:
    """A publisher, a collector that syncs its journal, and Spark.

    The publisher yields one item after another, or record batches, as a source does that has columns.
    """

    def __init__(self, publisher: Worker, collector: Worker, spark: Worker, journal: Path, *, columns: bool) -> None:
        self.name = "Weirpool-columns" if columns else "Weirpool"
        self.publisher = publisher
        self.collector = collector
        self.spark = spark
        self.journal = journal
        self._route = "columns" if columns else "items"

    def with_columns(self) -> Weirpool:
        """Return the same processes, with a publisher that yields record batches."""
        return Weirpool(self.publisher, self.collector, self.spark, self.journal, columns=True)

    def pids(self) -> dict[str, int]:
        return {
            "source": self.publisher.process.pid,
            "log": self.collector.process.pid,
            "spark": self.spark.process.pid,
        }

    def publish(self, log: str, rows: int) -> dict[str, Any]:
        return self._collect(self._route, f"{rows}", log)

    def events(self, log: str, count: int, milliseconds: int) -> dict[str, Any]:
        return self._collect("ticks", f"{count} {milliseconds}", log)

    def create(self, log: str) -> None:
        self.journal.mkdir(exist_ok=True)

    def delete(self, log: str) -> None:
        shutil.rmtree(self.journal / f"source={log}")

    def _collect(self, route: str, data: str, log: str) -> dict[str, Any]:
        return self.collector.ask("collect", route, data, str(self.journal), log)


class Kafka:
    """A producer, a broker that does not sync each batch, and Spark with its Kafka source."""

    name = "Kafka"

    def __init__(self, producer: Worker, running: Broker, spark: Worker) -> None:
        self.producer = producer
        self.broker = running
        self.spark = spark

    def pids(self) -> dict[str, int]:
        return {"source": self.producer.process.pid, "log": self.broker.pid, "spark": self.spark.process.pid}

    def publish(self, log: str, rows: int) -> dict[str, Any]:
        return self.producer.ask("publish", log, rows)

    def events(self, log: str, count: int, milliseconds: int) -> dict[str, Any]:
        return self.producer.ask("ticks", log, count, milliseconds)

    def create(self, log: str) -> None:
        self.producer.ask("create", log, PARTITIONS)

    def delete(self, log: str) -> None:
        self.producer.ask("delete", log)


@contextmanager
def weirpool(scratch: Path) -> Iterator[Weirpool]:
    """Run Weirpool's way while the block lasts; its files are in `scratch`."""
    journal = scratch / "journal"
    with ExitStack() as stack:
        publisher = stack.enter_context(Worker(PUBLISHER))
        collector = stack.enter_context(Worker(PUBLISHER, publisher.ready))
        spark = stack.enter_context(Worker(JOURNAL_READER, str(journal)))
        yield Weirpool(publisher, collector, spark, journal, columns=False)


@contextmanager
def kafka(programs: Programs, scratch: Path) -> Iterator[Kafka]:
    """Run Kafka's way while the block lasts; its files are in `scratch`."""

    def program(main: str, options: tuple[str, ...] = ()) -> Variant:
        return Variant("Kafka", main, command=programs.command(f"benchmarks.{main}", options, scratch))

    with ExitStack() as stack:
        running = stack.enter_context(broker(programs, scratch))
        producer = stack.enter_context(Worker(program("Producer"), running.address))
        spark = stack.enter_context(Worker(program("Reader", SPARK), running.address))
        yield Kafka(producer, running, spark)
