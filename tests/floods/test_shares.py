"""One client takes all that it can of what clients share; another one beside it notices nothing, and nothing stays."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

import weirpool
from tests.floods.flooding import ROOT
from tests.floods.sharing import BATCHES, MIB, ROW_BYTES, ROWS, SOURCE
from weirpool import ApplicationError, Payload, Peer, Rejected, SessionClosed, SessionError, Settings

DESCRIPTORS = 100
"""Descriptors of the process that is attacked: it needs some 25 of its own."""
PATIENT = Settings(keepalive_lifetime=90.0, connect_timeout=60.0, max_calls=10_000)
OWNER = {"pid": 1, "host": "h", "since": "2026-11-27T00:00:00Z"}

Attack = Callable[["Attacked", AsyncExitStack], Awaitable[None]]


class Attacked:
    """The process that is attacked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.url = self._line().strip()
        self.uuid = ""

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    async def begin(self) -> dict[str, int]:
        """Return what it holds, when it has started its threads, and imported what it needs."""
        async with self.client("first") as peer:
            for _ in range(0 if self.uuid else 3):
                await honest(peer)
            (state,) = json.loads((await peer.call("weirpool.journal.list")).data)
            self.uuid = state[1]
        return await self.report()

    async def report(self) -> dict[str, int]:
        """Return what it holds."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: dict[str, int] = json.loads(await asyncio.to_thread(self._line))
        return found

    @asynccontextmanager
    async def client(self, who: str) -> AsyncIterator[Peer]:
        """Connect as somebody."""
        async with weirpool.connect(self.url, setup=who, settings=PATIENT, reconnect=False) as peer:
            yield peer


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """The process, for all attacks one after the other: none of them may leave anything behind."""
    folder = tmp_path_factory.mktemp("attacked")
    command = [sys.executable, "-m", "tests.floods.sharing", str(folder), str(DESCRIPTORS)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield Attacked(running)
        finally:
            running.kill()


def question(verb: str, **asked: Any) -> tuple[str, bytes]:
    return f"weirpool.journal.{verb}", json.dumps(asked).encode()


async def honest(peer: Peer) -> None:
    """Do everything once that clients do."""
    assert (await peer.call("in", b"row")).data == b""
    request = json.dumps({"route": "in", "query": "honest", "batch": 0}).encode()
    stage = json.loads((await peer.upload("weirpool.stage", request, [b"1", b"2"])).data)
    assert stage["rows"] == 2
    abort = json.dumps({"route": "in", "query": "honest", "batch": 0, "stages": [stage]}).encode()
    await peer.call("weirpool.abort", abort)
    described = json.loads((await peer.call(*question("describe", source=SOURCE))).data)
    assert described["end"] == BATCHES * ROWS
    size = 0
    async with peer.stream(*question("read", source=SOURCE, uuid=described["uuid"], first=0, end=2 * ROWS)) as items:
        async for item in items:
            size += len(item.data)
    assert size > 2 * ROWS * ROW_BYTES
    rows = 0
    async with peer.stream("feed", json.dumps({"from": 0, "to": ROWS}).encode()) as items:
        async for _ in items:
            rows += 1
    assert rows == ROWS
    async with peer.stream(*question("hold", name="honest", owner=OWNER), credit=1) as held:
        assert (await anext(aiter(held))).data == b"held"
    async with peer.stream("weirpool.journal.follow", credit=1) as states:
        assert SOURCE in (await anext(aiter(states))).data.decode()


async def opened(stack: AsyncExitStack, peer: Peer, count: int, route: str, data: Callable[[int], bytes]) -> int:
    """Open streams with a credit of 1 that are not read on; return how many were refused."""
    refused = 0
    for number in range(count):
        stream = await stack.enter_async_context(peer.stream(route, data(number), credit=1, manual=True))
        try:
            await stream.arrival()
        except Rejected as error:
            assert error.temporary
            refused += 1
    return refused


async def stages(attacked: Attacked, stack: AsyncExitStack) -> None:
    """Begin many stages, and go on with none of them."""
    peer = await stack.enter_async_context(attacked.client("greedy"))
    never = asyncio.Event()
    begun = 0

    async def items() -> AsyncIterator[bytes]:
        nonlocal begun
        begun += 1
        yield b"x"
        await never.wait()

    request = json.dumps({"route": "in", "query": "greedy", "batch": 0}).encode()
    tasks = [asyncio.create_task(peer.upload("weirpool.stage", request, items())) for _ in range(600)]
    stack.push_async_callback(canceled, tasks)
    refused, _ = await asyncio.wait(tasks, timeout=None, return_when=asyncio.FIRST_COMPLETED)
    for task in refused:
        with pytest.raises(Rejected, match="unfinished stages of this receiver"):
            task.result()
    await reported(attacked, lambda found: found["stages"] > 100)


async def holds(attacked: Attacked, stack: AsyncExitStack) -> None:
    """Hold many names."""
    peer = await stack.enter_async_context(attacked.client("greedy"))
    route, _ = question("hold")
    names = (json.dumps({"name": f"greedy{number}", "owner": OWNER}).encode() for number in range(200))
    assert await opened(stack, peer, 200, route, lambda _: next(names)) > 150
    assert (await attacked.report())["descriptors"] < DESCRIPTORS * 3 // 4


async def reads(attacked: Attacked, stack: AsyncExitStack) -> None:
    """Begin to read many ranges, and go on with none of them."""
    peer = await stack.enter_async_context(attacked.client("greedy"))
    route, data = question("read", source=SOURCE, uuid=attacked.uuid, first=0, end=BATCHES * ROWS)
    assert await opened(stack, peer, 40, route, lambda _: data) == 0


async def subscriptions(attacked: Attacked, stack: AsyncExitStack) -> None:
    """Subscribe to the journal many times, and take one item each."""
    peer = await stack.enter_async_context(attacked.client("greedy"))
    assert await opened(stack, peer, 24, "feed", lambda _: b"earliest") == 0


async def follows(attacked: Attacked, stack: AsyncExitStack) -> None:
    """Follow the journal many times."""
    peer = await stack.enter_async_context(attacked.client("greedy"))
    assert await opened(stack, peer, 600, "weirpool.journal.follow", lambda _: b"") == 88


async def questions(attacked: Attacked, stack: AsyncExitStack) -> None:
    """Ask thousands of questions at once."""
    peer = await stack.enter_async_context(attacked.client("greedy"))
    route, data = question("describe", source=SOURCE, gaps=[None, None], damage=[None, None, True], segments=0)
    tasks = [asyncio.create_task(peer.call(route, data)) for _ in range(3_000)]
    stack.push_async_callback(canceled, tasks)
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)


async def appends(attacked: Attacked, stack: AsyncExitStack) -> None:
    """Append rows without an end, thousands at once, large ones among them."""
    peer = await stack.enter_async_context(attacked.client("greedy"))

    async def append(number: int) -> None:
        while True:
            await peer.call("in", bytes(MIB if number % 100 == 0 else 10))

    tasks = [asyncio.create_task(append(number)) for number in range(1_000)]
    stack.push_async_callback(canceled, tasks)
    await asyncio.sleep(0)


async def fires(attacked: Attacked, stack: AsyncExitStack) -> None:
    """Fire rows without waiting for anything: as many as leave the event loop time for others."""
    peer = await stack.enter_async_context(attacked.client("greedy"))

    async def fire() -> None:
        while True:
            for _ in range(100):
                await peer.fire("in", bytes(10_000))
            await asyncio.sleep(0.05)

    task = asyncio.create_task(fire())
    stack.push_async_callback(canceled, [task])
    await asyncio.sleep(0)


async def connections(attacked: Attacked, stack: AsyncExitStack) -> None:
    """Connect again and again, and do nothing."""
    refused = 0
    for _ in range(DESCRIPTORS):
        try:
            peer = await stack.enter_async_context(attacked.client("greedy"))
            await peer.call("in", b"row")
        except (SessionError, SessionClosed):
            refused += 1
    assert refused > DESCRIPTORS // 3
    assert (await attacked.report())["descriptors"] < DESCRIPTORS


async def canceled(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


ATTACKS: list[Attack] = [
    stages, holds, reads, subscriptions, follows, questions, appends, fires, connections
]  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
async def test_another_client_notices_nothing(attacked: Attacked, attack: Attack) -> None:
    # THREATS 74, 84, 85, 87, 111, 112
    before = await attacked.begin()
    async with AsyncExitStack() as stack:
        await attack(attacked, stack)
        for _ in range(3):
            async with attacked.client("honest") as peer:
                await honest(peer)
        under = await attacked.report()
    # The account has what is held; what is beside it is bounded by what reads at once.
    assert under["peak"] <= 64 * MIB and under["resident"] - before["resident"] < 96 * MIB
    await settled(attacked, before)


async def settled(attacked: Attacked, before: dict[str, int]) -> None:
    """Wait until the process holds what it held before."""
    kept = ("descriptors", "names", "stages", "held")
    await reported(attacked, lambda after: all(after[name] <= before[name] for name in kept))


async def reported(attacked: Attacked, condition: Callable[[dict[str, int]], bool]) -> None:
    """Wait until a report says so."""
    found = await attacked.report()
    try:
        while not condition(found):
            found = await attacked.report()
    except asyncio.CancelledError:
        pytest.fail(f"it still holds {found}")


async def test_stages_and_names_of_many_clients_end_with_their_links(attacked: Attacked) -> None:
    before = await attacked.begin()
    async with AsyncExitStack() as stack:
        for number in range(5):
            peer = await stack.enter_async_context(attacked.client(f"client {number}"))
            asked = json.dumps({"name": f"name{number}", "owner": OWNER}).encode()
            stream = await stack.enter_async_context(peer.stream("weirpool.journal.hold", asked, credit=1))
            assert (await anext(aiter(stream))).data == b"held"
        assert (await attacked.report())["names"] == 5
    await settled(attacked, before)
    with pytest.raises(ApplicationError):
        async with attacked.client("honest") as peer:
            await peer.call("weirpool.journal.describe", Payload(b"{}"))
