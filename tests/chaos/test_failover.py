"""Collectors stand in for each other, each on a machine of its own, while a publisher that cannot replay goes on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

import weirpool
from tests.objects.stores import CREDENTIALS, new_uri, s3_server
from weirpool import Payload, Service, Settings
from weirpool.errors import JournalError
from weirpool.journal import Journal, LogReader
from weirpool.replica.vault import new_key

SOURCES = ("a", "b", "c")
PLACE = "rsocket+tcp://127.0.0.1:0"
FILE = """
[group]
name = "edge"
key = {{file = "{folder}/key"}}
patience = {patience}
[serve]
url = "{served}"
[defaults]
url = "{url}"
route = "numbers"
journal = "{journal}"
retry = {{first = "10ms", longest = "100ms"}}
[defaults.storage]
store = "{store}"
durable = "remote"
seal_age = "1s"
seal_bytes = "64KiB"
"""


class Publisher:
    """Yields numbers of a clock that nobody turns back: what a stream has yielded, no other stream yields."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.yielded: dict[str, int] = dict.fromkeys(SOURCES, 0)
        self.began = 0
        self.service = Service()
        self.service.stream("numbers")(self.numbers)

    async def numbers(self, request: Payload) -> AsyncIterator[bytes]:
        self.began += 1
        source = request.data.decode()
        while not self.ended.is_set():
            for _ in range(7):
                self.yielded[source] += 1
                yield b"%d" % (self.yielded[source] - 1)
            await asyncio.sleep(0.005)


class Host:
    """A machine: its journal is lost with it, or comes back later."""

    def __init__(self, folder: Path, name: str) -> None:
        self.journal = folder / name
        self.served = f"rsocket+unix://{folder}/{name}.socket"
        self.path = folder / f"{name}.toml"
        self.log = folder / f"{name}.log"
        self.process: asyncio.subprocess.Process | None = None

    def write(self, url: str, store: str, patience: str) -> None:
        folder = self.path.parent
        places = {"url": url, "journal": self.journal, "served": self.served, "store": store}
        text = FILE.format(folder=folder, patience=patience, **places)
        feeds = "".join(f'[feed.{source}]\ndata = "{source}"\n' for source in SOURCES)
        self.path.write_text(text + feeds)

    async def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "weirpool", "collect", "--config", str(self.path), "--log", "json",
                stdout=log, stderr=log,
            )  # fmt: skip

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.kill(self.process.pid, number)

    async def end(self, number: signal.Signals = signal.SIGKILL) -> int:
        assert self.process is not None
        if self.process.returncode is None:
            self.send(number)
        return await asyncio.wait_for(self.process.wait(), 60)

    def messages(self) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line)["message"] for line in lines if line.startswith("{")]

    def reigns(self) -> int:
        """Return how often it has become the owner."""
        return sum("this collector is the owner" in message for message in self.messages())

    def end_of(self, source: str) -> int:
        try:
            return Journal(self.journal).reader(source).end
        except JournalError:
            return 0

    def rows(self, source: str) -> list[int]:
        reader = Journal(self.journal).reader(source)
        return [int(value) for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]

    def gaps(self, source: str) -> int:
        return len(Journal(self.journal).reader(source).gaps())


class Reader:
    """Follows a log over the network, whichever host collects it."""

    def __init__(self, *hosts: Host) -> None:
        self.rows: list[int] = []
        self._journal = Journal("|".join(host.served + "?journal=" + host.journal.name for host in hosts))
        self._reader: LogReader | None = None

    async def reach(self, end: int) -> None:
        """Read until there are so many rows."""
        while len(self.rows) < end:
            with suppress(JournalError):
                await asyncio.to_thread(self._read)

    def _read(self) -> None:
        """Read what there is; it fails while no host has been the owner for long."""
        if self._reader is None:
            self._reader = self._journal.reader("a")
        self._reader.refresh()
        for batch in self._reader.read(len(self.rows), self._reader.end):
            self.rows += map(int, batch["data"].to_pylist())


async def reached(condition: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.05)


@asynccontextmanager
async def hosts(folder: Path, publisher: Publisher, store: str, patience: str) -> AsyncIterator[tuple[Host, Host]]:
    (folder / "key").write_text(new_key())
    pair = Host(folder, "one"), Host(folder, "two")
    async with weirpool.serve(publisher.service, PLACE, settings=Settings(resume_timeout=120.0)) as server:
        try:
            for host in pair:
                host.write(server.urls[0], store, patience)
            yield pair
        finally:
            for host in pair:
                if host.process is not None and host.process.returncode is None:
                    host.send(signal.SIGCONT)
                    await host.end()


async def grown(host: Host, publisher: Publisher) -> None:
    """Wait until a host has collected more of every stream than was yielded up to now."""
    target = dict(publisher.yielded)
    await reached(lambda: all(host.end_of(source) > target[source] for source in SOURCES))


async def completed(host: Host, publisher: Publisher) -> None:
    """End the streams, and check that a host has every item once, in order."""
    publisher.ended.set()
    for source in SOURCES:
        await reached(lambda name=source: any(f"{name}: complete" in message for message in host.messages()))
    for source in SOURCES:
        assert host.rows(source) == list(range(publisher.yielded[source]))
        assert host.gaps(source) == 0
    assert publisher.began == len(SOURCES)


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of a store that all machines share."""
    if request.param == "folder":
        yield str(tmp_path / "store")
        return
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with s3_server() as endpoint:
        yield new_uri(endpoint)


@pytest.mark.slow
async def test_a_lost_host_loses_nothing(tmp_path: Path, store: str) -> None:
    publisher = Publisher()
    async with hosts(tmp_path, publisher, store, '"1s"') as (one, two):
        await one.start()
        await grown(one, publisher)
        await two.start()
        reader = Reader(one, two)
        for owner, other in ((one, two), (two, one)):
            await reader.reach(publisher.yielded["a"])
            await grown(owner, publisher)
            await owner.end()
            await grown(other, publisher)
            await owner.start()
        await completed(one, publisher)
        await reader.reach(publisher.yielded["a"])
        assert reader.rows == one.rows("a")
        reigns = two.reigns()
        assert await one.end(signal.SIGTERM) == 0
        # The other one takes over at once, and has the rows of all of them.
        await reached(lambda: two.reigns() > reigns)
        assert await two.end(signal.SIGTERM) == 0
        assert two.rows("a") == list(range(publisher.yielded["a"]))


@pytest.mark.slow
async def test_a_host_that_was_paused_acknowledges_nothing_when_it_wakes(tmp_path: Path) -> None:
    publisher = Publisher()
    async with hosts(tmp_path, publisher, str(tmp_path / "store"), '"1s"') as (one, two):
        await one.start()
        await grown(one, publisher)
        await two.start()
        for owner, other in ((one, two), (two, one)):
            await grown(owner, publisher)
            owner.send(signal.SIGSTOP)
            await grown(other, publisher)
            stood_by = sum("stands by" in message for message in owner.messages())
            owner.send(signal.SIGCONT)
            await reached(lambda before=stood_by, host=owner: _stood_by(host) > before)
        await completed(one, publisher)


def _stood_by(host: Host) -> int:
    return sum("stands by" in message for message in host.messages())
