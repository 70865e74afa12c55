"""The Spark part of the demo: flights from the journal into Parquet, their delays back to the publisher, a report."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Pipeline", "draw_chart", "print_table", "rows_of"]

SCHEMA: Final = (
    "year int, month int, day int, dep_time double, sched_dep_time int, dep_delay double, arr_time double, "
    "sched_arr_time int, arr_delay double, carrier string, flight int, tailnum string, origin string, dest string, "
    "air_time double, distance int, hour int, minute int, time_hour string"
)
ROWS_PER_TRIGGER: Final = 60_000
POLL_SECONDS: Final = 1.0
TABLE_ROWS: Final = 10


class Pipeline:
    """The streaming query and the aggregation after it.

    Args:
        spark: The session.
        journal: The journal's folder.
        folder: The folder for Parquet files and checkpoints.

    """

    def __init__(self, spark: SparkSession, journal: Path, folder: Path) -> None:
        self._spark = spark
        self._journal = journal
        self.parquet = folder / "flights.parquet"
        self.delays_parquet = folder / "delays.parquet"
        self._checkpoint = folder / "checkpoint"

    def start(self) -> StreamingQuery:
        """Start to copy flights from the journal to Parquet, each exactly once."""
        from pyspark.sql import functions as f

        rows = (
            self._spark.readStream.format("weirpool")
            .option("journal", str(self._journal))
            .option("reader", "demo")
            .option("maxRowsPerTrigger", ROWS_PER_TRIGGER)
            .load()
        )
        flight = f.from_json(f.col("data").cast("string"), SCHEMA).alias("flight")
        flights = rows.select("source", "position", flight).select("source", "position", "flight.*")
        return (
            flights.writeStream.format("parquet")
            .option("path", str(self.parquet))
            .option("checkpointLocation", str(self._checkpoint))
            .start()
        )

    def follow(
        self, query: StreamingQuery, collecting: Callable[[], bool], report: Callable[[int, float], None]
    ) -> None:
        """Report progress until the collector has ended and all its rows are in Parquet."""
        rows = 0
        seen = -1
        began = time.monotonic()
        while True:
            more = collecting()
            if not more:
                query.processAllAvailable()
            for progress in query.recentProgress:
                if progress.batchId > seen and progress.numInputRows:
                    rows += progress.numInputRows
                    seen = progress.batchId
                    report(rows, rows / (time.monotonic() - began))
            if not more:
                break
            time.sleep(POLL_SECONDS)
        query.stop()

    def flights(self) -> DataFrame:
        """Return the flights in Parquet."""
        return self._spark.read.parquet(str(self.parquet))

    def publish(self, url: str, route: str) -> list[Row]:
        """Aggregate delays by origin and hour, write them to Parquet, publish them, and return them, worst first."""
        from pyspark.sql import functions as f

        delays = (
            self.flights()
            .where("dep_delay is not null")
            .groupBy("origin", "hour")
            .agg(f.round(f.avg("dep_delay"), 1).alias("delay"), f.count("*").alias("flights"))
        )
        delays.write.mode("overwrite").parquet(str(self.delays_parquet))
        found = self._spark.read.parquet(str(self.delays_parquet))
        found.write.format("weirpool").mode("append").option("url", url).option("route", route).save()
        return found.orderBy(f.desc("delay")).collect()


def rows_of(journal: Path, source: str) -> int:
    """Return the number of rows that have been collected so far."""
    from ..errors import JournalMissing
    from ..journal import Journal

    try:
        return Journal(journal).reader(source).end
    except JournalMissing:
        # The collector has not begun.
        return 0


def print_table(rows: list[Row]) -> None:
    """Print the worst delays by origin and hour."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Worst departure delays, by origin and hour")
    for name in ("origin", "hour", "mean delay, min", "flights"):
        table.add_column(name, justify="left" if name == "origin" else "right")
    for row in rows[:TABLE_ROWS]:
        table.add_row(row["origin"], f"{row['hour']}:00", f"{row['delay']:.1f}", f"{row['flights']:,}")
    Console().print(table)


def draw_chart(rows: list[Row], path: Path) -> None:
    """Draw the delays over the day to a PNG, with a line for each origin."""
    import matplotlib

    # No display is needed.
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5))
    for origin in sorted({row["origin"] for row in rows}):
        points = sorted((row["hour"], row["delay"]) for row in rows if row["origin"] == origin)
        axes.plot([hour for hour, _ in points], [delay for _, delay in points], marker="o", label=origin)
    hours = range(min(row["hour"] for row in rows), max(row["hour"] for row in rows) + 1)
    axes.set_xticks(hours, [f"{hour}:00" for hour in hours], rotation=45)
    axes.set(xlabel="scheduled hour of departure", ylabel="mean delay, minutes", title="New York City, 2013")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
