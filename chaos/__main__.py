"""Breaks the pipeline by a seed and judges what is left: ``python -m chaos --seed 7 --minutes 5``."""

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
from .plan import Fault, faults
from .postmortem import postmortem
from .report import Report, insert
from .sources import SOURCES
from .world import World

PAGE: Final = ROOT / "docs" / "explanation" / "reliability.md"
HEAL_SECONDS: Final = 300.0
"""Within this time everything must come to an end once nothing breaks any more."""
START_SECONDS: Final = 120.0
"""Within this time the publishers must listen, even on a starved machine."""
WARM_UP: Final = 8.0
"""Seconds in which everything starts, before anything breaks."""


def arguments() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="what the faults follow from; else any, and it is told")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long to break things")
    parser.add_argument("--kills", type=int, default=0, help="go on until so many processes were killed")
    parser.add_argument("--items", type=int, default=1_000_000, help="how many items to make in that time, about")
    parser.add_argument("--pause", type=float, default=0.6, help="mean pause between two faults, in seconds")
    parser.add_argument("--keep", type=Path, help="work in this folder, and leave it there")
    parser.add_argument("--page", action="store_true", help=f"put the result into {PAGE.relative_to(ROOT)}")
    return parser.parse_args()


async def disturb(world: World, report: Report, options: argparse.Namespace) -> None:
    """Break things until the time is over and enough was killed."""
    begun = time.monotonic()

    async def one(fault: Fault) -> None:
        killed = await happen(fault, world)
        report.kills += killed

    async with asyncio.TaskGroup() as running:
        for fault in faults(report.seed, options.pause):
            await asyncio.sleep(fault.pause)
            elapsed = time.monotonic() - begun
            if elapsed >= options.minutes * 60 and report.kills >= options.kills:
                break
            # Only a run that goes on for the sake of its kills has faults that last longer.
            left = options.minutes * 60 - elapsed
            lasting = replace(fault, seconds=min(fault.seconds, left)) if left > 0 else fault
            report.log.append(lasting.record(time.time()))
            running.create_task(one(lasting))
    report.seconds = time.monotonic() - begun


async def run(report: Report, options: argparse.Namespace, folder: Path) -> None:
    """Build the pipeline, break it, let it heal, and judge."""
    rate = options.items / len(SOURCES) / (options.minutes * 60)
    world = World(folder, rate, report.seed)
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
    """Run, print the verdict, and exit with 1 where the promise was broken."""
    options = arguments()
    revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    report = Report(seed, 0.0, revision.stdout.strip() or "unknown")
    folder = options.keep or Path(tempfile.mkdtemp(prefix="chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"chaos: seed {seed}, in {folder}", flush=True)
    # Whoever ends this program must end its processes with it. In the background of a shell SIGINT is ignored,
    # which its processes would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    asyncio.run(run(report, options, folder))
    report.write(folder / "report.json")
    if not report.sound:
        # First: the last lines of a log are what people see of it.
        print(*postmortem(report, folder), sep="\n")
    print(report.table())
    if options.page:
        insert(PAGE, report.table())
    if not report.sound:
        sys.exit(f"chaos: the promise was broken with seed {seed}; everything is in {folder}")
    if options.keep is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
