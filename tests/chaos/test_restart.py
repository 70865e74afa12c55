"""A server in a process of its own is killed, again and again; its clients' sessions live on."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import penstock
from penstock import Canceled, Rejected, Settings
from tests.chaos.serving import TOTAL
from tests.waiting import until

ROOT = Path(__file__).parent.parent.parent
KILLS = 4


class Victim:
    """The server's process, and those that come after it."""

    def __init__(self, folder: Path) -> None:
        self.url = "rsocket+tcp://127.0.0.1:0"
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
async def victim(folder: Path) -> AsyncIterator[Victim]:
    server = Victim(folder)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()


async def test_what_was_sent_arrives_once_and_in_order_and_the_connection_lives(tmp_path: Path) -> None:
    async with victim(tmp_path) as server, penstock.connect(server.url, settings=Settings(resume=True)) as peer:
        got: list[int] = []
        ends = 0
        while len(got) < TOTAL:
            try:
                async with peer.stream("count", b"%d" % len(got)) as items:
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
        assert (await peer.call("note", b"x")).data == b"x"
        assert not peer.closed


async def test_a_call_is_answered_or_ends_and_is_never_begun_twice(tmp_path: Path) -> None:
    async with victim(tmp_path) as server, penstock.connect(server.url, settings=Settings(resume=True)) as peer:
        answered: set[bytes] = set()
        refused: set[bytes] = set()
        given_up: set[bytes] = set()

        async def ask(worker: int) -> None:
            number = 0
            while server.kills < KILLS or number < 50:
                name = b"%d-%d" % (worker, number)
                number += 1
                try:
                    assert (await peer.call("note", name)).data == name
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
