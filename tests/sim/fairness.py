"""The laboratory of the scheduler: sources that never end, and calls that arrive meanwhile.

Sending an item takes virtual time. Whatever competes, a call waits for at most one turn of the scheduler, and streams
that could always send have sent the same number of bytes, up to a quantum and an item. Each scenario yields the
breaches that it finds.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from importlib import import_module
from itertools import repeat
from typing import Any

from tests.aio.fakes import FakeSession, fake_connection
from tests.sim.clockwork import Clockwork

__all__ = ["SCENARIOS", "Plain", "breaches"]

ITEM_SECONDS = 1e-6
BYTE_SECONDS = 1e-9
ENDLESS = 1 << 40
SIZES = (100, 1_000, 6_000, 40_000)
MANY = 300
"""Streams that saturate the loop."""
CONNECTIONS = 60


class Plain:
    """The build that this interpreter imports; see `tests.builds.Build`."""

    def module(self, name: str) -> Any:
        return import_module(name)


class BusyLoop(Clockwork):
    """A loop on which work takes time."""

    def work(self, seconds: float) -> None:
        self._time += seconds


class BusySession(FakeSession):
    """A session on which sending takes time."""

    def __init__(self, build: Any, loop: BusyLoop) -> None:
        super().__init__(build)
        self.loop = loop
        self.sent: defaultdict[int, int] = defaultdict(int)
        self.done: dict[int, float] = {}

    def send(self, stream_id: int, payload: Any, done: bool = False) -> int:
        size = len(payload.data)
        self.loop.work(ITEM_SECONDS + size * BYTE_SECONDS)
        self.sent[stream_id] += size + 16
        return ENDLESS

    def credit(self, stream_id: int) -> int:
        return ENDLESS

    def complete(self, stream_id: int) -> None:
        self.done[stream_id] = self.loop.time()


class Client:
    """One connection of the server, and the streams that it reads.

    Its link is full with `high_bytes`, if that is not 0, and then drains at `rate` bytes per second.
    """

    def __init__(self, world: Laboratory, high_bytes: int = 0, rate: float = 1e8) -> None:
        build, loop = world.build, world.loop
        flows = build.module("weirpool.aio.flow")
        self.world = world
        self.session = BusySession(build, loop)
        self.high_bytes, self.rate = high_bytes, rate
        self.drained = 0
        client = self

        class BusyFlow(flows.Flow):  # type: ignore[name-defined, misc]
            def write(self) -> None:
                client.written()

            def schedule_write(self, size: int = 0) -> None:
                """Do nothing."""

        settings = build.module("weirpool.settings").Settings()
        self.flow = BusyFlow(loop, self.session, settings, fake_connection(build), lambda: None)
        self.flow.lane.scheduler.clock = loop.time
        self.flow.paused = False
        self.exchanges = build.module("weirpool.aio.exchanges").Exchanges(self.flow)
        self.streams = 0

    @property
    def total(self) -> int:
        return sum(self.session.sent.values())

    def written(self) -> None:
        """Fill the link, which drains a while later."""
        if self.high_bytes and not self.flow.paused and self.total - self.drained > self.high_bytes:
            self.flow.writing_paused()
            self.world.loop.call_later((self.total - self.drained) / self.rate, self._drain)

    def _drain(self) -> None:
        self.drained = self.total
        self.flow.writing_resumed()

    def open(self, source: Any) -> int:
        """Open a stream; return its number."""
        self.streams += 1
        self.world.build.module("weirpool.aio.pump").pump(self.exchanges, self.streams, ENDLESS, source, "")
        return self.streams

    def saturate(self, count: int, sizes: tuple[int, ...] = SIZES) -> None:
        """Open streams that never end, of items of different sizes."""
        for number in range(count):
            self.open(repeat(bytes(sizes[number % len(sizes)])))

    def spread(self) -> int:
        """Return by how many bytes the streams differ at most."""
        sent = [self.session.sent[stream_id] for stream_id in range(1, self.streams + 1)]
        return max(sent) - min(sent)

    def close(self) -> None:
        """End all streams."""
        for half in list(self.exchanges.outbound.values()):
            half.canceled()


class Laboratory:
    """A server's event loop, its clients, and calls that arrive at any time."""

    def __init__(self, build: Any, seed: int = 0) -> None:
        self.build = build
        self.loop = BusyLoop(seed)
        self.random = random.Random(seed)
        self.module = build.module("weirpool.aio.scheduler")
        self.clients: list[Client] = []
        self.waits: list[float] = []
        """How long each call waited until the loop handled it."""

    def client(self, **link: Any) -> Client:
        made = Client(self, **link)
        self.clients.append(made)
        return made

    @property
    def burst(self) -> float:
        """The seconds that the slowest burst takes: one of small items."""
        return float(self.module.QUANTUM / 116 * ITEM_SECONDS + self.module.QUANTUM * BYTE_SECONDS) + 1e-4

    def run(self, seconds: float, calls: int = 100) -> None:
        """Let the loop work for a while, in which calls arrive."""
        start = self.loop.time()
        for _ in range(calls):
            self._call(start + self.random.random() * seconds)
        self.loop.run_until_complete(self._until(start + seconds))

    def at(self, seconds: float, act: Callable[[], object]) -> None:
        """Do something later, as input that arrives."""
        self.loop.call_later(seconds, act)

    def _call(self, when: float) -> None:
        self.loop.call_at(when, lambda: self.waits.append(self.loop.time() - when))

    async def _until(self, when: float) -> None:
        while self.loop.time() < when:  # noqa: ASYNC110  # Time costs nothing here.
            await asyncio.sleep(0.001)

    def start(self, act: Callable[[], object]) -> None:
        """Do something in one callback of the loop, as one batch; return when it has been done."""

        async def do() -> None:
            act()

        self.loop.run_until_complete(do())

    def late(self, limit: float) -> Iterator[str]:
        """Yield a breach if a call waited for longer than `limit`."""
        longest = max(self.waits, default=0.0)
        if not self.waits or longest > limit:
            yield f"of {len(self.waits)} calls one waited for {longest * 1e3:.2f} ms, more than {limit * 1e3:.2f}"
        self.waits.clear()

    def close(self) -> None:
        async def end() -> None:
            for client in self.clients:
                client.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*tasks, return_exceptions=True)

        self.loop.run_until_complete(end())
        self.loop.close()


def one_connection(lab: Laboratory) -> Iterator[str]:
    """Saturate one connection: equal bytes for its streams, whatever their items; calls wait for one turn."""
    client = lab.client()
    lab.start(lambda: client.saturate(MANY))
    for _ in range(8):
        lab.run(0.05)
        if client.spread() > lab.module.QUANTUM + 2 * max(SIZES):
            yield f"streams of one connection differ by {client.spread()} bytes"
    yield from lab.late(lab.module.TURN_SECONDS + lab.burst)


def many_connections(lab: Laboratory) -> Iterator[str]:
    """Saturate many connections, the first with as many streams as all others: equal bytes for all connections."""
    clients = [lab.client() for _ in range(CONNECTIONS)]
    for number, client in enumerate(clients):
        lab.start(partial(client.saturate, 1 + number % 3))
    lab.start(lambda: clients[0].saturate(CONNECTIONS))
    before = [client.total for client in clients]
    for _ in range(5):
        lab.run(0.05)
        gained = [client.total - was for client, was in zip(clients, before, strict=True)]
        if max(gained) - min(gained) > 2 * lab.module.QUANTUM + 2 * max(SIZES):
            yield f"connections differ by {max(gained) - min(gained)} bytes"
    yield from lab.late(lab.module.TURN_SECONDS + lab.burst)


def batch(lab: Laboratory) -> Iterator[str]:
    """Open many streams in one batch, each of one burst, over many connections: sending at once has a limit, too."""
    clients = [lab.client() for _ in range(CONNECTIONS)]
    took = 0.0

    def open_all() -> None:
        nonlocal took
        begun = lab.loop.time()
        for client in clients:
            for _ in range(5):
                client.open([bytes(50_000)])
        took = lab.loop.time() - begun

    lab.start(open_all)
    if took > lab.module.TURN_SECONDS + lab.burst:
        yield f"one batch of requests took {took * 1e3:.2f} ms"
    lab.run(0.1)
    if any(len(client.session.done) < 5 for client in clients):
        yield "a stream that was opened in a batch has not ended"


def short_streams(lab: Laboratory) -> Iterator[str]:
    """Open short streams while others saturate the loop: a new client's end within a few turns."""
    busy = lab.client()
    lab.start(lambda: busy.saturate(MANY))
    lab.run(0.2, 0)
    others = [lab.client() for _ in range(CONNECTIONS)]
    for number in range(20):
        yield from _short_stream(lab, busy, 4)
        yield from _short_stream(lab, lab.client(), 4)
        if number == 10:
            for client in others:
                lab.start(partial(client.saturate, 5))
            lab.run(0.2, 0)
            busy = lab.client()


def _short_stream(lab: Laboratory, client: Client, turns: int) -> Iterator[str]:
    begun = lab.loop.time()
    lab.start(lambda: client.open([b"x"]))
    stream_id = client.streams
    while stream_id not in client.session.done and lab.loop.time() < begun + 0.5:
        lab.run(0.001, 0)
    took = client.session.done.get(stream_id, lab.loop.time()) - begun
    if took > turns * (lab.module.TURN_SECONDS + lab.burst):
        yield f"a stream of one item took {took * 1e3:.2f} ms"


def endless_streams(lab: Laboratory) -> Iterator[str]:
    """Let a client open more streams than can be served; its own old ones are still served."""
    client = lab.client()
    lab.start(lambda: client.saturate(4, (1_000,)))
    for number in range(1_000):
        # Each takes 70 µs.
        lab.at(number * 0.0002, lambda: [client.open([bytes(5_000)] * 11) for _ in range(4)])
    before = [client.session.sent[each] for each in range(1, 5)]
    lab.run(0.2)
    gained = [client.session.sent[each] - was for each, was in zip(range(1, 5), before, strict=True)]
    if min(gained) < 5 * lab.module.QUANTUM:
        yield f"an old stream has sent {min(gained)} bytes while its client opened others"
    yield from lab.late(lab.module.TURN_SECONDS + lab.burst + 1e-4)


def full_links(lab: Laboratory) -> Iterator[str]:
    """Mix links that fill and drain with one that never fills: coming back to the ring is no way to overtake."""
    steady = lab.client()
    others = [lab.client(high_bytes=100_000, rate=1e9) for _ in range(CONNECTIONS)]
    for client in (steady, *others):
        lab.start(partial(client.saturate, 3))
    before = [client.total for client in (steady, *others)]
    lab.run(0.3)
    gained, *most = [client.total - was for client, was in zip((steady, *others), before, strict=True)]
    if gained < max(most) - 2 * lab.module.QUANTUM - 2 * max(SIZES):
        yield f"a connection that could always send has sent {gained} bytes, another one {max(most)}"
    for client in others:
        if client.spread() > lab.module.QUANTUM + 2 * max(SIZES):
            yield f"streams over a link that fills differ by {client.spread()} bytes"
    yield from lab.late(lab.module.TURN_SECONDS + lab.burst)


def tasks(lab: Laboratory) -> Iterator[str]:
    """Mix plain and async sources: equal bytes; calls wait for one turn, and the bursts of the tasks that it woke."""
    clients = [lab.client() for _ in range(3)]

    async def source(size: int) -> AsyncIterator[bytes]:
        while True:
            yield bytes(size)

    async def begin(client: Client, plain: int, others: int) -> None:
        client.saturate(plain, (1_000,))
        for _ in range(others):
            client.open(source(1_000))

    for client, plain, others in zip(clients, (20, 0, 20), (20, 40, 0), strict=True):
        lab.loop.run_until_complete(begin(client, plain, others))
    lab.run(0.05)
    lab.waits.clear()
    for _ in range(5):
        lab.run(0.1)
        for client in clients:
            if client.spread() > 2 * lab.module.QUANTUM + 2_000:
                yield f"plain and async sources differ by {client.spread()} bytes"
    yield from lab.late(2 * lab.module.TURN_SECONDS + 2 * lab.burst)


def many_tasks(lab: Laboratory) -> Iterator[str]:
    """Saturate the loop with async sources alone: only as many tasks send in one iteration as its time allows."""
    clients = [lab.client() for _ in range(3)]

    async def source() -> AsyncIterator[bytes]:
        while True:
            yield bytes(1_000)

    async def begin() -> None:
        for client in clients:
            for _ in range(MANY // 5):
                client.open(source())

    lab.loop.run_until_complete(begin())
    lab.run(0.1, 0)
    for _ in range(3):
        lab.run(0.1)
        if max(client.spread() for client in clients) > lab.module.QUANTUM + 2_000:
            yield "async sources of one connection differ by more than a quantum"
    yield from lab.late(2 * lab.module.TURN_SECONDS + lab.burst)


def slow_sources(lab: Laboratory) -> Iterator[str]:
    """Mix sources that need long for an item with fast ones: only their first burst is long."""
    client = lab.client()

    def slow() -> Iterator[bytes]:
        while True:
            lab.loop.work(2e-4)
            yield bytes(100)

    lab.start(lambda: client.saturate(20))
    for _ in range(5):
        lab.start(lambda: client.open(slow()))
    lab.run(1.0)
    lab.waits.clear()
    lab.run(1.0)
    yield from lab.late(2 * lab.module.TURN_SECONDS + lab.burst)


def large_items(lab: Laboratory) -> Iterator[str]:
    """Mix large items with small ones: large ones wait until the others have sent as many bytes."""
    client = lab.client()
    size = 500_000
    lab.start(lambda: client.saturate(10, (size, 1_000)))
    for _ in range(5):
        lab.run(0.05)
        if client.spread() > lab.module.QUANTUM + 2 * size:
            yield f"streams of large and small items differ by {client.spread()} bytes"
    yield from lab.late(lab.module.TURN_SECONDS + lab.burst + size * BYTE_SECONDS)


SCENARIOS: dict[str, Callable[[Laboratory], Iterator[str]]] = {
    each.__name__: each
    for each in (
        one_connection, many_connections, batch, short_streams, endless_streams, full_links, tasks, many_tasks,
        slow_sources, large_items,
    )
}  # fmt: skip


def breaches(build: Any, name: str, seed: int = 0) -> Iterator[str]:
    """Run a scenario, and yield the breaches."""
    lab = Laboratory(build, seed)
    try:
        asyncio.set_event_loop(lab.loop)
        yield from SCENARIOS[name](lab)
    finally:
        lab.close()
        asyncio.set_event_loop(None)
