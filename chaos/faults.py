"""How each fault is done to the pipeline, and undone."""

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

HOGS: Final = 2 * (os.cpu_count() or 2)
"""Processes that want a core each while the machine starves."""


async def happen(fault: Fault, world: World) -> int:
    """Do `fault` to the pipeline, undo it when its time is over, and return how many processes it killed."""
    verb, _, whom = fault.kind.partition(" ")
    if verb == "kill":
        return _kill(whom, fault.target, world)
    if verb == "pause":
        await _pause(whom, fault, world)
    elif fault.kind == "cut":
        world.order(fault.target, cut=fault.after)
    elif fault.kind == "starve":
        with _hogs():
            await asyncio.sleep(fault.seconds)
    elif fault.kind == "fill disk":
        await _fill(world.collectors[fault.target], fault.seconds)
    else:
        mode = "refuse" if fault.kind.endswith("outage") else fault.kind
        world.order(fault.target, do=mode)
        await asyncio.sleep(fault.seconds)
        world.order(fault.target, do="pass")
    return 0


def _child(whom: str, target: str, world: World) -> Child:
    if whom == "proxy":
        return world.proxy
    return {"collector": world.collectors, "publisher": world.publishers}[whom][target]


def _pids(whom: str, world: World) -> list[int]:
    """Return the ids of some of Spark's processes."""
    if whom == "driver's python":
        return [world.query.process.pid] if world.query.alive else []
    return world.spark_processes({"executor": EXECUTOR, "python worker": PYTHON_WORKER, "driver's JVM": JVM}[whom])


def _kill(whom: str, target: str, world: World) -> int:
    if whom in ("collector", "publisher", "proxy"):
        return int(_child(whom, target, world).signal(signal.SIGKILL))
    pids = _pids(whom, world)
    with suppress(ProcessLookupError):
        if pids:
            os.kill(max(pids), signal.SIGKILL)
            return 1
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
    process = collector.process if collector.alive else None
    if process is None:
        return
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGUSR1)
        await asyncio.sleep(seconds)
        if process.returncode is None:
            process.send_signal(signal.SIGUSR2)


@contextmanager
def _hogs() -> Iterator[None]:
    hogs = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(HOGS)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
