"""Injects each fault into the pipeline, and undoes it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from .children import Child
from .plan import Fault
from .world import EXECUTOR, JVM, PYTHON_WORKER, World

__all__ = ["happen"]

START: Final = 5.0
"""Seconds within which a process must be restarted."""
STOP: Final = 60.0
"""Seconds within which a process must end after a signal, even with other faults in between."""
MOMENT: Final = 0.005
"""Seconds between checks whether a process was restarted."""
HOGS: Final = 2 * (os.cpu_count() or 2)
"""Processes that each occupy a core during the fault `starve`."""


async def happen(fault: Fault, world: World) -> int:
    """Inject `fault`, undo it when its time is over, and return the number of processes killed."""
    verb, _, whom = fault.kind.partition(" ")
    if fault.kind == "kill collector twice":
        return await _kill_twice(world.collectors[fault.target], fault.seconds)
    if verb == "kill":
        return _kill(whom, fault.target, world)
    if verb == "stop":
        return await _stop(whom, fault, world)
    if "pause" in fault.kind:
        await _pause(whom.removeprefix("pause "), fault, world)
    elif fault.kind == "cut":
        world.order(fault.target, cut=fault.after)
    elif fault.kind == "starve":
        with _hogs():
            await asyncio.sleep(fault.seconds)
    elif fault.kind == "fill disk":
        await _fill(world.collectors[fault.target], fault.seconds)
    else:
        with world.links(fault.target, _mode(fault)):
            await asyncio.sleep(fault.seconds)
    return 0


def _mode(fault: Fault) -> str:
    if fault.kind == "black hole":
        return f"swallow {fault.how}"
    return "refuse" if fault.kind.endswith("outage") else fault.kind


def _child(whom: str, target: str, world: World) -> Child:
    if whom in ("proxy", "host", "driver's python"):
        return {"proxy": world.proxy, "host": world.host, "driver's python": world.query}[whom]
    return {"collector": world.collectors, "publisher": world.publishers}[whom][target]


def _pids(whom: str, world: World) -> list[int]:
    """Return the ids of some of Spark's processes."""
    return world.spark_processes({"executor": EXECUTOR, "python worker": PYTHON_WORKER, "driver's JVM": JVM}[whom])


def _kill(whom: str, target: str, world: World) -> int:
    if whom in ("collector", "publisher", "proxy", "host", "driver's python"):
        return int(_child(whom, target, world).signal(signal.SIGKILL))
    pids = _pids(whom, world)
    with suppress(ProcessLookupError):
        if pids:
            os.kill(max(pids), signal.SIGKILL)
            return 1
    return 0


async def _kill_twice(child: Child, seconds: float) -> int:
    """Kill a process, and kill it again this many seconds after its restart."""
    starts = child.starts
    killed = int(child.signal(signal.SIGKILL))
    with suppress(TimeoutError):
        async with asyncio.timeout(START):
            while child.starts == starts:  # noqa: ASYNC110
                await asyncio.sleep(MOMENT)
    await asyncio.sleep(seconds)
    return killed + int(child.signal(signal.SIGKILL))


async def _stop(whom: str, fault: Fault, world: World) -> int:
    """Ask a process to end. If the fault has a duration, kill the process after it."""
    child = _child(whom.removeprefix("and kill "), fault.target, world)
    process = child.process
    if not child.signal(signal.Signals[fault.how]):
        return 0
    if fault.seconds:
        await asyncio.sleep(fault.seconds)
        return int(child.signal(signal.SIGKILL))
    try:
        async with asyncio.timeout(STOP):
            await process.wait()
    except TimeoutError:
        world.complaints.append(f"{child.name} did not end within {STOP:g} s after {fault.how}")
    return 0


async def _pause(whom: str, fault: Fault, world: World) -> None:
    if whom == "executor":
        pids = _pids(whom, world)[:1]
    else:
        child = _child(whom, fault.target, world)
        pids = [child.process.pid] if child.alive else []
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGSTOP:
            await asyncio.sleep(fault.seconds)


async def _fill(collector: Child, seconds: float) -> None:
    process = collector.process
    if collector.signal(signal.SIGUSR1):
        await asyncio.sleep(seconds)
        if collector.process is process:
            collector.signal(signal.SIGUSR2)


@contextmanager
def _hogs() -> Iterator[None]:
    hogs = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(HOGS)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
