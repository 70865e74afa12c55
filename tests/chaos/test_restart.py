"""A server in a process of its own is killed, again and again; its clients' sessions live on."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import weirpool
from tests.chaos.serving import PATIENT, TOTAL
from tests.waiting import until
from weirpool import Canceled, Reconnect, Rejected
from weirpool.journal import Journal
from weirpool.journal.collect import Collector
from weirpool.urls import fitting

ROOT = Path(__file__).parent.parent.parent
KILLS = 4
CLIENT = replace(PATIENT, resume=True)
PLACES = pytest.mark.parametrize("place", ["rsocket+tcp://127.0.0.1:0", "river+tcp://127.0.0.1:0"])
# River's own budget of tries is for servers that start faster than these.
TRIES = Reconnect(first_delay=0.05, longest_delay=0.2, retry=lambda error: False)


class Victim:
    """The server's process, and those that come after it."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.kills = 0
        self._process: Process | None = None

    async def start(self) -> None:
        arguments = ("-m", "tests.chaos.serving", self.url, self.folder / "sessions", self.folder / "calls")
        self._process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE, cwd=ROOT)
        assert self._process.stdout is not None
        self.url = (await self._process.stdout.readline()).decode().strip()
        assert self.url

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()
        self.kills += 1

    def begun(self) -> Counter[bytes]:
        """Return how often each call was begun."""
        return Counter((self.folder / "calls").read_bytes().split())


@asynccontextmanager
async def connected(server: Victim) -> AsyncIterator[weirpool.Peer]:
    """Yield a peer that is closed when its session is lost."""
    async with weirpool.connect(server.url, settings=fitting(CLIENT, server.url), reconnect=TRIES) as peer:
        yield peer


@asynccontextmanager
async def victim(url: str, folder: Path) -> AsyncIterator[Victim]:
    server = Victim(url, folder)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


@PLACES
async def test_what_was_sent_arrives_once_and_in_order_and_the_connection_lives(tmp_path: Path, place: str) -> None:
    async with victim(place, tmp_path) as server, connected(server) as peer:
        got: list[int] = []
        ends = 0
        while len(got) < TOTAL:
            try:
                async with peer.stream("demo.count", b"%d" % len(got)) as items:
                    async for item in items:
                        got.append(int(item.data))
                        if server.kills < KILLS and len(got) >= (server.kills + 1) * TOTAL // (KILLS + 2):
                            await server.kill()
                            await server.start()
            except Canceled as error:
                ends += 1
                assert "restarted" in str(error)
        assert got == list(range(TOTAL))
        # A server may have been killed before the client was back at it.
        assert server.kills == KILLS >= ends > 0
        assert (await peer.call("demo.note", b'"x"')).data == b'"x"'
        assert not peer.closed


@PLACES
async def test_a_call_is_answered_or_ends_and_is_never_begun_twice(tmp_path: Path, place: str) -> None:
    async with victim(place, tmp_path) as server, connected(server) as peer:
        answered: set[bytes] = set()
        refused: set[bytes] = set()
        given_up: set[bytes] = set()

        async def ask(worker: int) -> None:
            number = 0
            while server.kills < KILLS or number < 50:
                name = b'"%d-%d"' % (worker, number)
                number += 1
                try:
                    assert (await peer.call("demo.note", name)).data == name
                    answered.add(name)
                except Rejected:
                    refused.add(name)
                except Canceled:
                    given_up.add(name)

        async def disturb() -> None:
            for turn in range(KILLS):
                await until(lambda turn=turn: len(answered) >= (turn + 1) * 200)
                await server.kill()
                await server.start()

        await asyncio.gather(disturb(), *(ask(worker) for worker in range(8)))
        begun = server.begun()
        assert set(begun.values()) == {1}
        assert answered <= begun.keys() <= answered | given_up
        assert not refused & begun.keys()
        assert not peer.closed


@PLACES
async def test_a_collector_records_a_gap_for_each_restart_and_goes_on(tmp_path: Path, place: str) -> None:
    async with victim(place, tmp_path) as server:
        journal = tmp_path / "journal"
        collector = Collector(
            server.url, "demo.count", journal, data=b"0", settings=fitting(PATIENT, server.url), credit=1_000
        )
        collecting = asyncio.create_task(collector.run())
        for turn in range(2):
            # Without a stream that has begun, nothing can be missing.
            before = collector.progress.rows
            await until(lambda before=before: collector.progress.rows > before + 5_000)
            await server.kill()
            await server.start()
            await until(lambda turn=turn: collector.progress.gaps > turn or collecting.done())
        await collecting
    reader = Journal(journal).reader("demo.count")
    rows = [int(value) for batch in reader.read(reader.first, reader.end) for value in batch["data"].to_pylist()]
    gaps = reader.gaps()
    assert len(gaps) == 2 and all("restarted" in gap.reason for gap in gaps)
    ends = [gap.position for gap in gaps]
    # Each subscription begins at the first item; nothing of it is missing before its end.
    parts = [rows[begin:end] for begin, end in zip([0, *ends], [*ends, len(rows)], strict=True)]
    assert all(part == list(range(len(part))) for part in parts) and len(parts[-1]) == TOTAL
