"""Injects faults into the pipeline and checks the results: ``python -m chaos --seed 7 --minutes 5 --reads served``."""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from .causes import Facts
from .children import ROOT
from .exits import unexpected
from .faults import happen
from .oracle import judge
from .plan import SPARK_KILLS, Fault, faults, spark_kills
from .postmortem import postmortem
from .report import Report, insert
from .sources import SOURCES
from .world import READS, World

PAGE: Final = ROOT / "docs" / "explanation" / "reliability.md"
HEAL_SECONDS: Final = 300.0
"""Time limit for the pipeline to finish after the last fault."""
START_SECONDS: Final = 120.0
"""Time limit for the publishers to listen, on a loaded machine."""
SPARK_SECONDS: Final = 180.0
"""Time limit for a process of Spark to be there, so that it can be killed."""
LOOK: Final = 0.2
"""Seconds between two looks for it."""
WARM_UP: Final = 8.0
"""Seconds before the first fault, in which everything starts."""


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="seed of the faults; random by default, and printed")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to inject faults")
    parser.add_argument("--kills", type=int, default=0, help="continue until this many processes were killed")
    parser.add_argument("--items", type=int, default=1_000_000, help="approximate number of items to publish")
    parser.add_argument("--pause", type=float, default=0.6, help="mean pause between two faults, in seconds")
    parser.add_argument("--reads", choices=READS, default="folder", help="how Spark reads the journal")
    parser.add_argument("--spark-pause", type=float, default=15.0, help="mean pause between two kills of Spark")
    parser.add_argument("--keep", type=Path, help="work in this folder, and keep it")
    parser.add_argument("--page", action="store_true", help=f"write the result to {PAGE.relative_to(ROOT)}")
    return parser.parse_args()


async def disturb(world: World, report: Report, options: argparse.Namespace) -> None:
    """Inject faults until the time is over and enough processes were killed."""
    begun = time.monotonic()

    async def one(fault: Fault) -> None:
        killed = await happen(fault, world)
        report.kills += killed

    async with asyncio.TaskGroup() as running:
        running.create_task(disturb_spark(world, report, options, begun + options.minutes * 60))
        for fault in faults(report.seed, options.pause):
            await asyncio.sleep(fault.pause)
            elapsed = time.monotonic() - begun
            if elapsed >= options.minutes * 60 and report.kills >= options.kills:
                break
            # Faults end with the run, unless it continues for more kills.
            left = options.minutes * 60 - elapsed
            lasting = replace(fault, seconds=min(fault.seconds, left)) if left > 0 else fault
            report.log.append(lasting.record(time.time()))
            running.create_task(one(lasting))
    report.seconds = time.monotonic() - begun


async def disturb_spark(world: World, report: Report, options: argparse.Namespace, until: float) -> None:
    """Kill processes of Spark until the time is over, and each kind at least once."""
    for number, fault in enumerate(spark_kills(report.seed, options.spark_pause)):
        await asyncio.sleep(fault.pause)
        if number >= len(SPARK_KILLS) and time.monotonic() >= until:
            return
        try:
            async with asyncio.timeout(SPARK_SECONDS):
                while not await happen(fault, world):  # noqa: ASYNC110
                    # Spark has to start it again first.
                    await asyncio.sleep(LOOK)
        except TimeoutError:
            world.complaints.append(f"there was no process for {fault.kind!r} within {SPARK_SECONDS:g} s")
            return
        report.kills += 1
        report.log.append(fault.record(time.time()))


async def run(report: Report, options: argparse.Namespace, folder: Path) -> None:
    """Start the pipeline, inject faults, let it recover, and check the results."""
    rate = options.items / len(SOURCES) / (options.minutes * 60)
    world = World(folder, rate, report.seed, report.reads)
    try:
        async with asyncio.timeout(START_SECONDS):
            await world.start()
        await asyncio.sleep(WARM_UP)
        await disturb(world, report, options)
        try:
            await world.finish(HEAL_SECONDS)
        except TimeoutError:
            report.stuck = world.stuck()
    finally:
        await world.end()
        report.starts = {child.name: child.starts for child in world.children}
        report.ends = sorted((end for child in world.children for end in child.ends), key=lambda end: end.at)
        report.write(folder / "report.json")
    report.complaints = world.complaints + unexpected(report.ends, report.log)
    report.verdicts = judge(folder, Facts(report.log, report.ends))


def main() -> None:
    """Run, print the report, and exit with 1 if a guarantee was violated."""
    options = arguments()
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    report = Report(seed, 0.0, revision.stdout.strip() or "unknown", options.reads)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"chaos: seed {seed}, in {folder}", flush=True)
    # A signal that ends this program must end its processes, too. A shell ignores SIGINT for programs in the
    # background, and child processes would inherit that.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    asyncio.run(run(report, options, folder))
    report.write(folder / "report.json")
    if not report.sound:
        # Printed before the table, because people read the last lines of a log.
        print(*postmortem(report, folder), sep="\n")
    print(report.table())
    if options.page:
        insert(PAGE, report.table())
    if not report.sound:
        sys.exit(f"chaos: a guarantee was violated with seed {seed}; all files are in {folder}")
    if options.keep is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
