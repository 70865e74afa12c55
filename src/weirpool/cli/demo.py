"""`weirpool demo`: a live stream into Spark and back, on real data."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Option

from .console import say
from .extras import need
from .places import command

if TYPE_CHECKING:
    from ..demo.pipeline import Pipeline

NEXT: Final = """Try next:
  {command} journal ls {folder}/journal
  {command} journal dump {folder}/journal --from -3
  {command} playground"""


def demo(
    folder: Annotated[Path, Option("--dir", help="The folder for all output; emptied first.")] = Path("data/demo"),
) -> None:
    """Stream 336,776 flights over RSocket into a journal, through Spark into Parquet, and their delays back.

    Example: weirpool demo
    """
    need("demo", "weirpool demo")
    from ..demo.board import Board
    from ..demo.flights import FLIGHTS, FLIGHTS_COUNT
    from ..demo.pipeline import Pipeline, rows_of
    from ..demo.processes import collector, publisher, spark_session

    began = time.monotonic()
    _empty(folder)
    journal = folder / "journal"
    with publisher() as url:
        say(f"publisher: {FLIGHTS_COUNT:,} {FLIGHTS} at {url}")
        with collector(url, FLIGHTS, journal) as collecting:
            say(f"collector: into {journal}")
            say("Spark: starting, which takes some seconds")
            with spark_session(folder / "spark.log") as spark:
                pipeline = Pipeline(spark, journal, folder)
                with Board(FLIGHTS_COUNT) as board:

                    def collects() -> bool:
                        board.collected(rows_of(journal, FLIGHTS))
                        return collecting.poll() is None

                    pipeline.follow(pipeline.start(), collects, board.stored)
                _finish(pipeline, url, folder)
    say(f"done in {time.monotonic() - began:.0f} s")
    for line in ["", *NEXT.format(command=command(), folder=folder).split("\n")]:
        say(line)


def _empty(folder: Path) -> None:
    for name in ("journal", "flights.parquet", "delays.parquet", "checkpoint"):
        shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)


def _finish(pipeline: Pipeline, url: str, folder: Path) -> None:
    """Check the flights in Parquet, publish the delays, and print the results."""
    from ..aio.loop import run
    from ..demo.flights import FLIGHTS_COUNT
    from ..demo.pipeline import draw_chart, print_table
    from ..demo.processes import DemoFailed

    rows = pipeline.flights().count()
    distinct = pipeline.flights().select("position").distinct().count()
    if (rows, distinct) != (FLIGHTS_COUNT, FLIGHTS_COUNT):
        raise DemoFailed(f"published {FLIGHTS_COUNT:,} flights; {rows:,} arrived, {distinct:,} of them distinct")
    say(f"{rows:,} flights, each exactly once")
    delays = pipeline.publish(url, "delays")
    arrived = run(_count_delays(url))
    if arrived != len(delays):
        raise DemoFailed(f"published {len(delays)} delays back; {arrived} arrived")
    print_table(delays)
    chart = folder / "delays.png"
    draw_chart(delays, chart)
    say(f"published back to the service: {arrived} delays")
    say(f"Parquet: {pipeline.parquet}")
    say(f"journal: {folder / 'journal'}")
    say(f"chart:   {chart}")


async def _count_delays(url: str) -> int:
    """Return the number of delays that the publisher has received."""
    from ..aio.client import connect

    async with connect(url) as peer:
        return int((await peer.call("delays.count")).data)
