"""The CPU time of each step from a socket to Spark, per million rows of 128 bytes, beside its goal."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from statistics import median

from .processes import Variant, Worker
from .usage import Usage, child, is_supported

__all__ = ["Budget", "Budgets", "measure"]

PIPELINE = Variant("Weirpool", "ours_pipeline")
FEED = Variant("Weirpool", "ours_feeds")
SPARK = Variant("Spark", "ours_spark", loop="asyncio")
ROWS = 2_000_000
FEEDS, FEED_RATE, FEED_SECONDS = 100, 400, 10.0
LOG = "rows"


@dataclass
class Budget:
    """The CPU seconds per million rows of a step in each round.

    Attributes:
        title: The step.
        goal: Its goal; None if it has none.
        costs: The rounds.

    """

    title: str
    goal: float | None = None
    costs: list[float] = field(default_factory=list)

    def add(self, seconds: float, rows: float) -> None:
        """Store the CPU seconds of a round, which handled so many rows."""
        self.costs.append(seconds * 1e6 / rows)

    def __str__(self) -> str:
        goal = "" if self.goal is None else f"{self.goal:.2f}"
        numbers = "".join(f"{number:10.2f}" for number in (median(self.costs), min(self.costs), max(self.costs)))
        return f"  {self.title:44}{numbers}{goal:>10}"


@dataclass
class Budgets:
    """The steps from a socket to Spark."""

    socket: Budget = field(default_factory=lambda: Budget("socket to synced journal", 0.6))
    publisher: Budget = field(default_factory=lambda: Budget("its publisher, item by item"))
    feeds: Budget = field(default_factory=lambda: Budget(f"{FEEDS} feeds of {FEED_RATE} items/s", 0.8))
    workers: Budget = field(default_factory=lambda: Budget("batch to Spark's noop sink, Python workers"))
    prebuilt: Budget = field(default_factory=lambda: Budget("prebuilt batches, Python workers"))
    ours: Budget = field(default_factory=lambda: Budget("the journal's part of the workers", 0.08))
    spark: Budget = field(default_factory=lambda: Budget("batch to Spark's noop sink, all processes"))

    def __str__(self) -> str:
        head = f"  {'':44}{'median':>10}{'least':>10}{'most':>10}{'goal':>10}"
        return "\n".join(["CPU seconds per million rows (steps)", head, *map(str, vars(self).values())])

    def as_object(self) -> dict[str, object]:
        """Return all rounds as a JSON object."""
        return {"scenario": "steps", "unit": "CPU s a million rows", "rows": list(asdict(self).values())}


def measure(rounds: int) -> Iterator[Budgets]:
    """Run all steps in `rounds` rounds, after one that is not measured, and yield their table."""
    if not is_supported():
        print("skipped steps: the CPU time of processes is read from /proc, which only Linux has", file=sys.stderr)
        return
    found = Budgets()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="weirpool-bench-"))
        publisher = stack.enter_context(Worker(PIPELINE))
        collector = stack.enter_context(Worker(PIPELINE, publisher.ready))
        feeds = stack.enter_context(Worker(FEED, stack.enter_context(Worker(FEED)).ready))
        spark = stack.enter_context(Worker(SPARK, folder))
        collect(Budgets(), publisher, collector, folder, LOG)
        read(Budgets(), spark, LOG)
        for turn in range(rounds):
            log = f"{LOG}-{turn}"
            collect(found, publisher, collector, folder, log)
            small_feeds(found, feeds)
            read(found, spark, log)
    yield found


def collect(found: Budgets, publisher: Worker, collector: Worker, folder: str, log: str) -> None:
    """Collect a stream into a log at full speed."""
    with Usage({"publisher": publisher.process.pid, "collector": collector.process.pid}) as usage:
        collector.ask("collect", "items", f"{ROWS}", folder, log)
    found.publisher.add(usage.seconds()["publisher"], ROWS)
    found.socket.add(usage.seconds()["collector"], ROWS)


def small_feeds(found: Budgets, collector: Worker) -> None:
    """Collect many slow feeds in one process."""
    answer = collector.ask("feeds", FEEDS, FEED_RATE, FEED_SECONDS)
    found.feeds.add(answer["cpu_used"], answer["rows"])


def read(found: Budgets, spark: Worker, log: str) -> None:
    """Read a log as a batch, and what Spark itself takes for as many rows that need no reading."""
    found.ours.add(spark.ask("rows", log)["cpu_used"], ROWS)
    workers, whole = asked(spark, "batch", log)
    found.workers.add(workers, ROWS)
    found.spark.add(whole, ROWS)
    found.prebuilt.add(asked(spark, "prebuilt", f"{ROWS}")[0], ROWS)


def asked(spark: Worker, *scenario: str) -> tuple[float, float]:
    """Return the CPU seconds of Spark's Python workers, which are descendants of its Java process, and of all."""
    driver = spark.process.pid
    java = child(driver, "java")
    with Usage({"spark": driver}) as usage:
        spark.ask(*scenario)
    whole = usage.seconds()["spark"]
    return whole - usage.alone(driver) - usage.alone(java), whole
