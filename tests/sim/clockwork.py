"""An event loop whose time the test owns, and a network of links for it: real drivers, and no second is waited for.

Time passes only when nobody has anything to do, or when the loop is *late*: before each turn it may be, by a random
amount, as if a handler had blocked it or the machine had been busy. What came from the network meanwhile, timers that
went off, and tasks that were woken then have their turn together, in whatever order that gives. The same seed gives the
same order.

A network stands in for `penstock.transports.memory`, so URLs are ``river+memory://somewhere``::

    def test_it() -> None:
        with network(lambda number: (Road(rate=1e6), Road())):
            run(main(), seed=7, late=0.3)
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, TypeVar
from unittest import mock

from penstock.errors import ConnectError, LinkLost
from penstock.transports import memory

from .links import Pipe, Road

T = TypeVar("T")


class Stuck(Exception):
    """Nobody has anything to do, and nothing will ever happen."""


class Clockwork(asyncio.BaseEventLoop):
    """The loop.

    Args:
        seed: Of what is random.
        late: Seconds that a turn of the loop is late on average, where it is; 0: it never is.

    """

    def __init__(self, seed: int = 0, late: float = 0.0) -> None:
        super().__init__()
        self._time = 1000.0
        self._random = random.Random(seed)
        self._late = late
        # What BaseEventLoop asks for events of the system's: there are none.
        self._selector = self
        # Threads: one work after another, at once.
        self.works = 0

    def time(self) -> float:
        """Return the time, in seconds."""
        return self._time

    def select(self, timeout: float | None) -> list[Any]:
        """Let time pass until the next timer."""
        if timeout is None:
            raise Stuck
        self._time += timeout
        return []

    def run_in_executor(self, executor: Any, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Do the work of another thread now; who waits for it learns so later."""
        self.works += 1
        future = self.create_future()
        try:
            result = function(*arguments)
        except Exception as error:
            self.call_later(self.lateness(), _settle, future, None, error)
        else:
            self.call_later(self.lateness(), _settle, future, result, None)
        return future

    def lateness(self) -> float:
        """Return after how many seconds somebody is woken whose time has come."""
        return self._random.random() * self._late

    def _run_once(self) -> None:
        if self._late and self._random.random() < 0.25:
            self._time += self._random.expovariate(1 / self._late)
        super()._run_once()  # type: ignore[misc]

    def _process_events(self, events: list[Any]) -> None:
        """Nothing: there are none."""

    def _write_to_self(self) -> None:
        """Nothing: nobody sleeps."""


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def run(main: Coroutine[Any, Any, T], seed: int = 0, late: float = 0.0, limit: float = 100_000.0) -> T:
    """Run `main` in a loop of its own; it fails with TimeoutError after `limit` seconds of that loop's time."""

    async def limited() -> T:
        async with asyncio.timeout(limit):
            return await main

    with asyncio.Runner(loop_factory=lambda: Clockwork(seed, late)) as runner:
        return runner.run(limited())


async def passing(condition: Callable[[], bool], step: float = 0.05) -> None:
    """Let time pass, in steps, until `condition` holds."""
    while not condition():  # noqa: ASYNC110  # Time costs nothing here.
        await asyncio.sleep(step)


class Network:
    """Where links are made.

    Args:
        roads: Called with the number of each link; returns its directions, from the client and to it.

    Attributes:
        made: How many links there were.
        tries: How often somebody wanted one.
        down: None gets through, and no other link is made.

    """

    def __init__(self, roads: Callable[[int], tuple[Road, Road]]) -> None:
        self._roads = roads
        self.made = 0
        self.tries = 0
        self.down = False
        self.links: set[NetworkLink] = set()

    async def connect(self, url: Any, receiver: Any, settings: Any, ssl: Any) -> None:
        """Make a link, as `penstock.transports.memory.connect` does."""
        self.tries += 1
        there, back = self._roads(self.made)
        await asyncio.sleep(there.delay + back.delay)
        if self.down:
            raise ConnectError(f"cannot connect to {url.place}: the network is down")
        await _connect(url, receiver, settings, ssl)
        # Whoever waits for a socket goes on in a later turn of the loop: what it has brought may be read before.
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Clockwork)
        await asyncio.sleep(loop.lateness())

    def pair(self, left: Any, right: Any, settings: Any) -> None:
        """Join two receivers, as `penstock.transports.memory.pair` does."""
        there, back = self._roads(self.made)
        self.made += 1
        loop = asyncio.get_running_loop()
        client = NetworkLink(self, left, loop, settings.output_high_bytes, Pipe(there))
        server = NetworkLink(self, right, loop, settings.output_high_bytes, Pipe(back))
        client.other, server.other = server, client
        self.links |= {client, server}
        right.link_made(server)
        left.link_made(client)

    def cut(self) -> None:
        """Break all links, and let both ends know."""
        for link in list(self.links):
            link.lose(LinkLost("the connection broke"))

    async def outage(self, seconds: float) -> None:
        """Be down for a while."""
        self.down = True
        self.cut()
        await asyncio.sleep(seconds)
        self.down = False


class NetworkLink:
    """One end of a link; see :class:`penstock.transports.base.Link`."""

    other: NetworkLink

    def __init__(
        self, network: Network, receiver: Any, loop: asyncio.AbstractEventLoop, high_bytes: int, out: Pipe
    ) -> None:
        self.receiver = receiver
        self._network = network
        self._loop = loop
        self._high_bytes = high_bytes
        self._out = out
        self._held: deque[bytes] = deque()
        self._reading_paused = self._writing_paused = self._closing = self._lost = False
        self._timer: asyncio.TimerHandle | None = None

    def write(self, data: bytes) -> None:
        if self._closing or not data:
            return
        self._out.write(bytes(data), self._loop.time())
        if not self._writing_paused and self.get_write_buffer_size() > self._high_bytes:
            self._writing_paused = True
            self.receiver.writing_paused()
        self._schedule()

    def get_write_buffer_size(self) -> int:
        return self._out.waiting(self._loop.time())

    def progress(self) -> tuple[int, int]:
        now = self._loop.time()
        return self._out.waiting(now), self._out.taken(now)

    def pause_reading(self) -> None:
        self._reading_paused = True

    def resume_reading(self) -> None:
        self._reading_paused = False
        self._loop.call_soon(self._deliver)

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self._end)

    def abort(self) -> None:
        self._closing = True
        self._loop.call_soon(self.lose, None)
        self._loop.call_soon(self.other.lose, LinkLost("the connection broke: the other end aborted it"))

    def get_extra_info(self, name: str) -> None:
        return None

    def lose(self, error: Exception | None) -> None:
        """Be gone, with all that was on its way."""
        if self._lost:
            return
        self._lost = self._closing = True
        self._network.links.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._held.clear()
        self.receiver.link_lost(error)

    def _schedule(self) -> None:
        when = self._out.next()
        if when < inf and self._timer is None and not self._lost:
            self._timer = self._loop.call_at(when, self._arrive)

    def _arrive(self) -> None:
        self._timer = None
        for data in self._out.arrived(self._loop.time()):
            if data is None:
                self.lose(LinkLost("the connection broke"))
                self.other.lose(LinkLost("the connection broke"))
                return
            self.other.bring(data)
        if self._writing_paused and self.get_write_buffer_size() <= self._high_bytes // 4 and not self._lost:
            self._writing_paused = False
            self.receiver.writing_resumed()
        self._schedule()
        if self._closing:
            self._end()

    def bring(self, data: bytes) -> None:
        """Take what has arrived."""
        self._held.append(data)
        self._deliver()

    def _deliver(self) -> None:
        while self._held and not self._reading_paused and not self._lost:
            self.receiver.received(self._held.popleft())
        if self.other._closing:
            self.other._end()

    def _end(self) -> None:
        """End in order, once everything has been read."""
        if self._out.next() == inf and not self.other._held:
            self.lose(None)
            self.other.lose(None)


_connect = memory.connect


@contextmanager
def network(roads: Callable[[int], tuple[Road, Road]] = lambda number: (Road(), Road())) -> Iterator[Network]:
    """Have the memory transport's links made by a network."""
    made = Network(roads)
    with mock.patch.object(memory, "pair", made.pair), mock.patch.object(memory, "connect", made.connect):
        yield made
