"""The laboratory of the collector: a real one, over a network on virtual time, killed, cut off, late, and out of disk.

The dead leave nothing but their files: at the moment of a kill the journal is copied, and the next collector goes on
with the copy. The oracle of the chaos laboratory judges what is in the last of them.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import shutil
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
from chaos.causes import WEARY, Facts
from chaos.children import End
from chaos.items import RUN_STEP, item
from chaos.oracle import judge_source
from chaos.sources import Source

import weirpool
from tests.sim.clockwork import Network, Stuck, network, passing, run
from tests.sim.links import Road
from tests.traces import holders
from weirpool import Payload, Service, Settings
from weirpool.aio.driver import Driver
from weirpool.errors import ConnectError, DiskFull, JournalError, WeirpoolError
from weirpool.journal import Journal, JournalWriter
from weirpool.journal.collect import Collector
from weirpool.journal.layout import SECRET
from weirpool.journal.rhythm import SMALL_BYTES, Rhythm
from weirpool.journal.rhythm import Source as Readable
from weirpool.transports import Discard
from weirpool.urls import fitting

__all__ = ["collectors", "full_disks", "kills", "long_outages", "ownership"]

ROUTE = "demo.items"
ITEMS = 400
LIMIT = 1_000.0
"""Seconds of virtual time within which a feed of a few seconds has ended, whatever happens to it."""
PASSWORD = b'"correct horse stap"'
"""A credential, as long as an item."""
SEEDS = 12
KILLS = 32
"""Seeds of kills alone: few of them come between a confirmation and the checkpoint after it."""
SOURCES = (
    Source("rsocket", "rsocket"),
    Source("rsocket-0.2", "reactivesocket-0.2"),
    Source("river-json", "river"),
    Source("river-msgpack", "river", "?codec=msgpack", prefix=b"\xb4"),
    Source("reactive-streams", "reactive-streams", resumes=False),
)


class Restless(Rhythm):
    """The rhythm of a fast feed, which reads all the time: items arrive while it writes."""

    async def gather(self, stream: Readable, rows: int, size: int) -> None:
        await super().gather(stream, rows, max(size, SMALL_BYTES))


class Plan:
    """What happens to a source, all of it from one seed.

    Args:
        source: Which it is.
        seed: The seed.
        faults: The kinds of faults to choose from.

    """

    def __init__(self, source: Source, seed: int, faults: tuple[str, ...]) -> None:
        self.rng = rng = random.Random(f"{source.name} {seed}")
        self.source = source
        self.url = source.url("memory://laboratory")
        self.late = rng.choice((0.0, 0.05, 0.3))
        self.credit = rng.choice((None, 3, 40))
        self.burst = rng.choice((1, 10, 50))
        self.pause = rng.uniform(2.0, 10.0) * self.burst / ITEMS
        self.faults = [rng.choice(faults) for _ in range(rng.randint(3, 8))] if faults else []
        self.road = Road(10.0 ** rng.uniform(5.0, 7.0), rng.choice((0.0, 0.01, 0.1)))


class World:
    """A publisher, its collector, and what is done to them.

    Args:
        plan: What happens.
        folder: An empty one.
        net: Where links are made.

    """

    def __init__(self, plan: Plan, folder: Path, net: Network) -> None:
        self.plan = plan
        self.rng = plan.rng
        self.net = net
        self.folder = folder
        self.lives = 0
        self.runs = 0
        self.begun: list[int] = []
        self.ends: list[End] = []
        self.ended: dict[int, int] = {}
        self.faults: list[dict[str, Any]] = []
        self.full = False
        self.excess = 0
        self.service = Service()
        self.service.stream(ROUTE)(self.items)
        # Long graces, whatever the protocol calls them.
        long = Settings(resume_timeout=60.0, session_grace=60.0, close_grace=0.0, resume=plan.source.resumes)
        self.settings = fitting(long, plan.url)
        self.server: Any = None
        self.collector: Any = None
        self.task: asyncio.Task[None] | None = None

    @property
    def journal(self) -> Path:
        """The folder of the collector that lives now."""
        return self.folder / f"{self.lives}"

    async def items(self, request: Payload) -> AsyncIterator[bytes]:
        """Make the items of one run."""
        self.runs += 1
        run, plan = self.runs, self.plan
        self.begun.append(run)
        for number in range(ITEMS):
            self._count(run, number)
            yield plan.source.prefix + item(run, number)
            if number % plan.burst == 0:
                await asyncio.sleep(plan.pause)
        self.ended[run] = ITEMS

    def _count(self, run: int, number: int) -> None:
        """Note what is asked for beyond the collector's credit: each item once it is safe, and so many more."""
        credit = self.plan.credit
        if run == 1 and credit is not None and self.plan.source.protocol != "river":
            excess = number - self.collector.progress.position - credit
            self.excess = max(self.excess, excess)

    async def play(self) -> None:
        """Let everything happen, and everything heal."""
        await self.serve()
        self.start()
        for kind in self.plan.faults:
            await asyncio.sleep(self.rng.uniform(0.0, 2.0))
            if self.task is not None and self.task.done():
                break
            await FAULTS[kind](self)
        assert self.task is not None
        await self.task
        await self.server.close(0)

    async def serve(self) -> None:
        self.server = await weirpool.serve(self.service, self.plan.url, settings=self.settings)

    def start(self) -> None:
        """Start a collector, which goes on with what lies in the journal."""
        self.task = asyncio.get_running_loop().create_task(self._live(self.journal))

    async def _live(self, journal: Path) -> None:
        """Run a collector, and another one where nobody answers at the first try, as a supervisor does."""
        while True:
            data = self.plan.source.prefix + PASSWORD
            self.collector = Collector(
                self.plan.url, ROUTE, journal, data=data, credit=self.plan.credit, settings=self.settings
            )
            if self.lives % 2 == 0:
                self.collector._rhythm = Restless(None, None)
            try:
                return await self.collector.run()
            except (ConnectError, DiskFull):
                await asyncio.sleep(1.0)

    def note(self, kind: str, seconds: float = 0.0) -> None:
        self.faults.append({"at": asyncio.get_running_loop().time(), "kind": kind, "seconds": seconds})

    # Faults.

    async def kill(self) -> None:
        """Kill the collector where it stands, be that just when it has written something."""
        if self.rng.random() < 0.5:
            await self._written()
        self.note("kill collector")
        self.ends.append(End(f"collector {self.plan.source.name}", asyncio.get_running_loop().time(), -signal.SIGKILL))
        before, task = self.journal, self.task
        self.lives += 1
        shutil.copytree(before, self.journal)
        for link in list(self.net.links):
            if isinstance(link.receiver, Driver) and link.receiver.connection.is_client:
                link.receiver = Discard()
                link.abort()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError, WeirpoolError):
            await task
        await asyncio.sleep(self.rng.choice((0.0, 0.1, 3.0)))
        self.start()

    async def _written(self) -> None:
        """Wait until the collector has written something, and for the moment in which it tells somebody."""
        loop: Any = asyncio.get_running_loop()
        before, end = loop.works, loop.time() + 2.0
        await passing(lambda: loop.works > before or loop.time() > end, 0.005)
        await asyncio.sleep(self.rng.uniform(0.0, self.plan.late + 0.05))

    async def cut(self) -> None:
        """Break the link."""
        self.note("cut")
        self.net.cut()

    async def outage(self) -> None:
        """Let nobody connect, for longer than River's budget of tries lasts."""
        self.note("outage", 20.0)
        await self.net.outage(20.0)

    async def absence(self) -> None:
        """Let nobody connect for longer than any session lives."""
        self.note("long outage", 90.0)
        await self.net.outage(90.0)

    async def restart(self) -> None:
        """Put another publisher in the place of this one."""
        self.note("kill publisher")
        self.net.cut()
        await self.server.close(0)
        self.runs = (self.runs // RUN_STEP + 1) * RUN_STEP
        await self.serve()

    async def fill(self) -> None:
        """Let the disk be full for a while."""
        self.note("full disk", 3.0)
        self.full = True
        asyncio.get_running_loop().call_later(3.0, setattr, self, "full", False)

    async def strand(self) -> None:
        """Break the link while the disk is full, and kill the collector soon after."""
        await self.fill()
        await asyncio.sleep(self.rng.uniform(0.0, 0.5))
        await self.cut()
        await asyncio.sleep(self.rng.uniform(0.2, 1.5))
        await self.kill()

    async def disown(self) -> None:
        """Take the owner of the collector's stream away, as a defect in the driver might."""
        # A little longer, because the sum with a time is rounded.
        self.note("long outage", WEARY + 1.0)
        for link in self.net.links:
            if isinstance(link.receiver, Driver) and link.receiver.connection.is_client:
                exchanges = link.receiver.exchanges
                exchanges.inbound = Forgetful(exchanges.inbound)


class Forgetful(dict[int, Any]):
    """A table of owners in which nobody is found, from the first question on until the next turn of the loop."""

    asked = 0

    def get(self, key: int, default: Any = None) -> Any:
        if not self.asked:
            asyncio.get_running_loop().call_soon(setattr, self, "asked", 2)
            self.asked = 1
        return default if self.asked == 1 else super().get(key, default)


FAULTS: dict[str, Callable[[World], Any]] = {
    "kill": World.kill,
    "cut": World.cut,
    "outage": World.outage,
    "absence": World.absence,
    "restart": World.restart,
    "full disk": World.fill,
    "strand": World.strand,
    "disown": World.disown,
}


def collectors(folder: Path) -> Iterator[str]:
    """Collect from each kind of source under faults; the oracle must find every item once, or a gap."""
    return _collected(folder, SEEDS, SOURCES, ("kill", "kill", "cut", "outage", "restart", "full disk"))


def kills(folder: Path) -> Iterator[str]:
    """The same with kills alone; where sessions outlive their process, no gap is excused."""
    return _collected(folder, KILLS, SOURCES[:4], ("kill",))


def full_disks(folder: Path) -> Iterator[str]:
    """Break links and kill collectors while the disk is full; no gap is excused."""
    return _collected(folder, 4, SOURCES[:4], ("strand",))


def long_outages(folder: Path) -> Iterator[str]:
    """The same with outages that no session outlives."""
    return _collected(folder, 4, SOURCES, ("kill", "absence"))


def ownership(folder: Path) -> Iterator[str]:
    """Take the owner of a stream away; what comes for it must not be lost without a gap (THREATS 96)."""
    return _collected(folder, 4, SOURCES[:4], ("disown", "kill"))


def _collected(folder: Path, seeds: int, sources: tuple[Source, ...], faults: tuple[str, ...]) -> Iterator[str]:
    for seed in range(seeds):
        for source in sources:
            place = folder / f"{source.name}-{seed}"
            place.mkdir()
            found = _judged(Plan(source, seed, faults), seed, place)
            yield from (f"{source.name}, seed {seed}: {wrong}" for wrong in found)
            shutil.rmtree(place)


def _judged(plan: Plan, seed: int, folder: Path) -> list[str]:
    """Play a plan; return what the oracle finds wrong."""
    with network(lambda number: (plan.road, plan.road)) as net, ExitStack() as stack:
        world = World(plan, folder, net)
        _on_a_disk(stack, world)

        async def main() -> None:
            loop = asyncio.get_running_loop()
            with mock.patch.dict(JournalWriter.open.__func__.__kwdefaults__, clock=loop.time):  # type: ignore[attr-defined]
                await world.play()

        random.seed(seed)
        try:
            run(main(), seed=seed, late=plan.late, limit=LIMIT)
        except (TimeoutError, Stuck):
            return [f"it never ends; faults: {[fault['kind'] for fault in world.faults]}"]
        except WeirpoolError as error:
            return [f"the collector gives up: {error}"]
    try:
        reader = Journal(world.journal).reader(ROUTE)
        table = pa.Table.from_batches(reader.read(0, reader.end))
        gaps = reader.gaps(0)
        problems = Journal(world.journal).verify()[ROUTE].problems
    except JournalError as error:
        return [str(error)]
    facts = Facts(world.faults, world.ends, world.begun, world.ended)
    verdict = judge_source(plan.source, table["position"].to_numpy(), table["data"], gaps, facts)
    verdict.problems += problems
    exposed = set().union(*(holders(life, PASSWORD) for life in folder.iterdir())) - {SECRET}
    verdict.problems += [f"{name} holds a credential of the request" for name in sorted(exposed)]
    if world.excess:
        verdict.problems.append(f"{world.excess} items more than the credit were asked for")
    if verdict.sound:
        return []
    return [
        f"{verdict}; {[(gap.position, gap.reason) for gap in gaps]} after {[each['kind'] for each in world.faults]}"
    ]


def _on_a_disk(stack: ExitStack, world: World) -> None:
    """Have no fsync, because no power is cut here, and a disk that may be full."""
    pwrite = os.pwrite

    def write(fd: int, data: Any, offset: int) -> int:
        if world.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(fd, data, offset)

    stack.enter_context(mock.patch.object(os, "fsync", lambda descriptor: None))
    stack.enter_context(mock.patch.object(os, "pwrite", write))
