"""All processes of a run: publishers, links, collectors and the Spark query, in one folder."""

from __future__ import annotations

import asyncio
import json
import random
import signal
from pathlib import Path
from typing import Any, Final

from .children import Child, group_of
from .items import RUN_STEP
from .plan import LATE, NAMES
from .publisher import ROUTE
from .sources import SOURCES, Source

__all__ = ["World"]

BUDGET: Final = "256MiB"
EXECUTOR: Final = "CoarseGrainedExecutorBackend"
PYTHON_WORKER: Final = "pyspark.daemon"
JVM: Final = "SparkSubmit"


class World:
    """The pipeline, from six publishers to one table.

    Args:
        folder: Where everything of it is; empty.
        rate: Items a second of each source.
        seed: Of how late collectors are.

    """

    def __init__(self, folder: Path, rate: float, seed: int) -> None:
        self.folder = folder
        self._rate = rate
        self._rng = random.Random(f"late {seed}")
        self._ports = dict.fromkeys(NAMES, 0)
        self.publishers = {source.name: self._publisher(source) for source in SOURCES}
        self.collectors = {source.name: self._collector(source) for source in SOURCES}
        self.proxy = Child("proxy", self._proxy_command, self._log("proxy"), piped=True)
        self.query = Child("query", lambda: ["-m", "chaos.query", str(folder)], self._log("query"))
        self._reading: asyncio.Task[None] | None = None

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _publisher(self, source: Source) -> Child:
        def command() -> list[str]:
            first_run = child.starts * RUN_STEP
            return ["-m", "chaos.publisher", source.name, str(self.folder), str(first_run), str(self._rate)]

        child = Child(f"publisher {source.name}", command, self._log(f"{source.name}.publisher"))
        return child

    def _collector(self, source: Source) -> Child:
        def command() -> list[str]:
            late = self._rng.choice(LATE)
            url = source.url(f"tcp://127.0.0.1:{self._ports[source.name]}")
            where = ["--journal", str(self.folder / "journal"), "--source", source.name, "--budget", BUDGET]
            grace = ["--set", "session_grace=45"] if source.protocol == "river" else []
            return ["-m", "chaos.collector", late, "collect", url, ROUTE, *where, *grace, "--quiet"]

        return Child(f"collector {source.name}", command, self._log(f"{source.name}.collector"))

    def _proxy_command(self) -> list[str]:
        return ["-m", "chaos.proxy", str(self.folder), *(f"{name}={port}" for name, port in self._ports.items())]

    async def start(self) -> None:
        """Start everything."""
        for publisher in self.publishers.values():
            await publisher.run()
        await self.proxy.run()
        assert self.proxy.process.stdout is not None
        self._ports = json.loads(await self.proxy.process.stdout.readline())
        for collector in self.collectors.values():
            await collector.run(ends=True)
        await self.query.run(ends=True)

    def order(self, link: str, **what: Any) -> None:
        """Have the links of a source, or of all, treated so."""
        stdin = self.proxy.process.stdin
        if self.proxy.alive and stdin is not None and not stdin.is_closing():
            for name in [link] if link else NAMES:
                stdin.write(json.dumps({"link": name, **what}).encode() + b"\n")

    def spark_processes(self, what: str) -> list[int]:
        """Return the ids of Spark's processes of that kind, of the newest driver."""
        if not self.query.alive:
            return []
        found = group_of(self.query.process.pid)
        return [pid for pid, line in found.items() if what in line]

    async def finish(self, seconds: float) -> None:
        """Let everything heal, every run end, and the query read what is left.

        Raises:
            TimeoutError: It takes longer than that: something is stuck.

        """
        for child in [*self.publishers.values(), *self.collectors.values(), self.proxy]:
            child.signal(signal.SIGCONT)
        for collector in self.collectors.values():
            collector.signal(signal.SIGUSR2)
        self.order("", do="pass")
        async with asyncio.timeout(seconds):
            (self.folder / "finish").touch()
            for collector in self.collectors.values():
                await collector.done.wait()
            (self.folder / "drain").touch()
            await self.query.done.wait()

    def stuck(self) -> list[str]:
        """Return who has not come to an end."""
        return [child.name for child in [*self.collectors.values(), self.query] if not child.done.is_set()]

    async def end(self) -> None:
        """End all processes."""
        for child in [*self.collectors.values(), self.query, *self.publishers.values(), self.proxy]:
            await child.end()
