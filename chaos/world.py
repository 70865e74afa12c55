"""All processes of a run: publishers, proxy, collectors and the Spark query, in one folder."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from weirpool import Settings
from weirpool.settings import DEFAULT_SETTINGS
from weirpool.urls import fitting

from .children import Child, group_of
from .doom import MOMENTS
from .host import JOURNAL
from .items import RUN_STEP
from .lateness import LATE
from .plan import NAMES
from .proxy import MODES
from .publisher import GRACE, KEEPALIVE_LIFETIME, ROUTE
from .sources import SOURCES, Source

__all__ = ["READS", "World", "settings_for"]

READS: Final = ("folder", "served", "sealed")
"""How the query reads the journal: its folder; over the network; or its folder, where what is complete is sealed."""
BUDGETS: Final = {"folder": "256MiB", "served": "256MiB", "sealed": "1MiB"}
"""A segment has a quarter of it, so that there is something to seal in a short run."""
COLLECTORS: Final = Settings(
    session_grace=GRACE, keepalive_interval=KEEPALIVE_LIFETIME / 4, keepalive_lifetime=KEEPALIVE_LIFETIME
)
"""Settings of collectors that must match those of the publishers, as far as the protocol uses them."""
DOOMED: Final = 0.15
"""The probability that a collector is killed by `chaos.doom`."""
EXECUTORS: Final = (1, 2, 2)
"""The numbers of executors to choose from for each process of the query."""
LOOK: Final = 0.05
"""Seconds between checks whether something exists."""
EXECUTOR: Final = "CoarseGrainedExecutorBackend"
PYTHON_WORKER: Final = "pyspark.daemon"
JVM: Final = "SparkSubmit"
SEALED: Final = "**/*.parquet"


def settings_for(url: str) -> list[str]:
    """Return the settings of a collector of `url`, as the command line takes them."""
    fit = fitting(COLLECTORS, url)
    values = ((field.name, getattr(fit, field.name)) for field in fields(fit))
    return [f"{name}={value:g}" for name, value in values if value != getattr(DEFAULT_SETTINGS, name)]


class World:
    """The pipeline, from six publishers to one table.

    Args:
        folder: An empty folder for all files.
        rate: Items per second of each source.
        seed: The seed for delays of processes and numbers of executors.
        reads: How the query reads the journal, one of `READS`.

    Attributes:
        complaints: Messages for problems with processes.

    """

    def __init__(self, folder: Path, rate: float, seed: int, reads: str) -> None:
        self.folder = folder
        self.reads = reads
        self._journal = folder / JOURNAL
        self._url = f"rsocket+tcp://127.0.0.1:{_free_port()}"
        self._rate = rate
        self._rng = random.Random(f"late {seed}")
        self._healing = False
        self.complaints: list[str] = []
        self._ports = dict.fromkeys(NAMES, 0)
        self._modes: dict[str, list[str]] = {name: [] for name in NAMES}
        self.publishers = {source.name: self._publisher(source) for source in SOURCES}
        self.collectors = {source.name: self._collector(source) for source in SOURCES}
        self.proxy = Child("proxy", self._proxy_command, self._log("proxy"), piped=True)
        self.host = Child("host", self._host_command, self._log("host"), listens=True)
        self.query = Child("query", self._query_command, self._log("query"))

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _publisher(self, source: Source) -> Child:
        def command() -> list[str]:
            first_run = child.starts * RUN_STEP
            where = [source.name, str(self.folder)]
            return ["-m", "chaos.publisher", self._rng.choice(LATE), *where, str(first_run), str(self._rate)]

        child = Child(f"publisher {source.name}", command, self._log(f"{source.name}.publisher"), listens=True)
        return child

    def _query_command(self) -> list[str]:
        journal = self._url if self.reads == "served" else str(self._journal)
        return ["-m", "chaos.query", str(self.folder), journal, str(self._rng.choice(EXECUTORS))]

    def _host_command(self) -> list[str]:
        return ["-m", "chaos.host", self.reads, str(self._journal), self._url]

    def _collector(self, source: Source) -> Child:
        def command() -> list[str]:
            late = self._rng.choice(LATE)
            url = source.url(f"tcp://127.0.0.1:{self._ports[source.name]}")
            where = ["--journal", str(self._journal), "--source", source.name, "--budget", BUDGETS[self.reads]]
            options = [word for option in settings_for(url) for word in ("--set", option)]
            return ["-m", "chaos.collector", late, self._doom(), "collect", url, ROUTE, *where, *options, "--quiet"]

        return Child(f"collector {source.name}", command, self._log(f"{source.name}.collector"), listens=True)

    def _doom(self) -> str:
        """Return the moment at which the next collector kills itself, for `chaos.doom`."""
        if self._healing or self._rng.random() >= DOOMED:
            return "no"
        return f"{self._rng.choice(list(MOMENTS))}:{self._rng.choice((0.0, 0.01, 0.1)) * self._rng.random():.4f}"

    def _proxy_command(self) -> list[str]:
        return ["-m", "chaos.proxy", str(self.folder), *(f"{name}={port}" for name, port in self._ports.items())]

    @property
    def children(self) -> list[Child]:
        """All processes that are restarted when they end."""
        return [*self.collectors.values(), self.query, *self.publishers.values(), self.proxy, self.host]

    async def start(self) -> None:
        """Start everything."""
        for name, publisher in self.publishers.items():
            await publisher.run()
            # Faults start only after everything listens.
            while not (self.folder / f"{name}.sock").exists():  # noqa: ASYNC110
                await asyncio.sleep(LOOK)
        await self.proxy.run()
        assert self.proxy.process.stdout is not None
        self._ports = json.loads(await self.proxy.process.stdout.readline())
        for collector in self.collectors.values():
            await collector.run(ends=True)
        self._journal.mkdir(exist_ok=True)
        await self.host.run()
        await self.query.run(ends=True)

    @contextmanager
    def links(self, target: str, mode: str) -> Iterator[None]:
        """Switch the links of a source to a mode while the block lasts. The most severe of several modes applies."""
        modes = self._modes[target]
        modes.append(mode)
        self.order(target, do=self._worst(target))
        try:
            yield
        finally:
            modes.remove(mode)
            self.order(target, do=self._worst(target))

    def _worst(self, target: str) -> str:
        return max(self._modes[target], key=MODES.index, default="pass")

    def order(self, link: str, **what: Any) -> None:
        """Send a command for the links of a source, or of all sources, to the proxy."""
        stdin = self.proxy.process.stdin
        if self.proxy.alive and stdin is not None and not stdin.is_closing():
            for name in [link] if link else NAMES:
                stdin.write(json.dumps({"link": name, **what}).encode() + b"\n")

    def spark_processes(self, what: str) -> list[int]:
        """Return the ids of the current driver's processes whose command lines contain `what`."""
        if not self.query.alive:
            return []
        found = group_of(self.query.process.pid)
        return [pid for pid, line in found.items() if what in line]

    async def finish(self, seconds: float) -> None:
        """Let the pipeline recover, finish all runs, and let the query read the remaining rows.

        Raises:
            TimeoutError: The time limit was exceeded, because something is stuck.

        """
        for child in [*self.publishers.values(), *self.collectors.values(), self.proxy, self.host]:
            child.signal(signal.SIGCONT)
        for collector in self.collectors.values():
            collector.signal(signal.SIGUSR2)
        self._healing = True
        self.order("", do="pass")
        async with asyncio.timeout(seconds):
            (self.folder / "finish").touch()
            for collector in self.collectors.values():
                await collector.done.wait()
            (self.folder / "drain").touch()
            await self.query.done.wait()
        if self.reads == "sealed" and not any(self._journal.glob(SEALED)):
            self.complaints.append("nothing was sealed")

    def stuck(self) -> list[str]:
        """Return the names of the processes that have not finished."""
        return [child.name for child in [*self.collectors.values(), self.query] if not child.done.is_set()]

    async def end(self) -> None:
        """End all processes."""
        for child in self.children:
            await child.end()


def _free_port() -> int:
    """Return a port that nobody listens on; a server there may be started again."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])
