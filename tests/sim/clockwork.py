"""An event loop with virtual time, and a network of links for it: tests use real drivers and never wait.

Time passes only when there is nothing to do, or when the loop is *late*: each turn may be delayed by a random
amount, as if a handler had blocked it or the machine had been busy. Input, expired timers and woken tasks of the
meantime are then handled in one turn, in the order that results. The same seed gives the
same order.

A network replaces `weirpool.transports.memory`, so URLs are ``river+memory://somewhere``::

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

from weirpool.errors import ConnectError, LinkLost
from weirpool.transports import memory
from weirpool.transports.turns import turns_of

from .links import Pipe, Road

T = TypeVar("T")


class Stuck(Exception):
    """There is nothing to do, and no timer is set."""


class Clockwork(asyncio.BaseEventLoop):
    """An event loop with virtual time.

    Args:
        seed: The seed of all random choices.
        late: The mean delay of late turns, in seconds; 0: no turn is late.

    """

    def __init__(self, seed: int = 0, late: float = 0.0) -> None:
        super().__init__()
        self._time = 1000.0
        self._random = random.Random(seed)
        self._late = late
        # Decoding takes as much time as a test says, and none by default. They exist while somebody holds them.
        self._turns = turns_of(self)
        self._turns.clock = self.time
        # The selector of BaseEventLoop: there are no system events.
        self._selector = self
        # Work for threads is done immediately, one after another.
        self.works = 0

    def time(self) -> float:
        """Return the time, in seconds."""
        return self._time

    def select(self, timeout: float | None) -> list[Any]:
        """Advance the time to the next timer."""
        if timeout is None:
            raise Stuck
        self._time += timeout
        return []

    def run_in_executor(self, executor: Any, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        """Run the work of another thread now; its future is resolved later."""
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
        """Return the delay of a turn, in seconds."""
        return self._random.random() * self._late

    def _run_once(self) -> None:
        if self._late and self._random.random() < 0.25:
            self._time += self._random.expovariate(1 / self._late)
        super()._run_once()  # type: ignore[misc]

    def _process_events(self, events: list[Any]) -> None:
        """Do nothing: there are no system events."""

    def _write_to_self(self) -> None:
        """Do nothing: the loop never sleeps."""


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def run(main: Coroutine[Any, Any, T], seed: int = 0, late: float = 0.0, limit: float = 100_000.0) -> T:
    """Run `main` in a new loop. Raises TimeoutError after `limit` seconds of virtual time."""

    async def limited() -> T:
        async with asyncio.timeout(limit):
            return await main

    with asyncio.Runner(loop_factory=lambda: Clockwork(seed, late)) as runner:
        return runner.run(limited())


async def passing(condition: Callable[[], bool], step: float = 0.05) -> None:
    """Advance the time in steps until `condition` holds."""
    while not condition():  # noqa: ASYNC110  # Time costs nothing here.
        await asyncio.sleep(step)


class Network:
    """A factory of links.

    Args:
        roads: Called with the number of each link; returns its two directions, first that from the client.

    Attributes:
        made: The number of links so far.
        tries: The number of attempts to connect.
        down: Whether all attempts to connect fail.

    """

    def __init__(self, roads: Callable[[int], tuple[Road, Road]]) -> None:
        self._roads = roads
        self.made = 0
        self.tries = 0
        self.down = False
        self.links: set[NetworkLink] = set()

    async def connect(self, url: Any, receiver: Any, settings: Any, ssl: Any) -> None:
        """Make a link, as `weirpool.transports.memory.connect` does."""
        self.tries += 1
        there, back = self._roads(self.made)
        await asyncio.sleep(there.delay + back.delay)
        if self.down:
            raise ConnectError(f"cannot connect to {url.place}: the network is down")
        await _connect(url, receiver, settings, ssl)
        # A task that waits for a socket continues in a later turn, so input may be read before.
        loop = asyncio.get_running_loop()
        assert isinstance(loop, Clockwork)
        await asyncio.sleep(loop.lateness())

    def pair(self, left: Any, right: Any, settings: Any) -> None:
        """Join two receivers, as `weirpool.transports.memory.pair` does."""
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
        """Break all links; both ends notice it."""
        for link in list(self.links):
            link.lose(LinkLost("the connection broke"))

    async def outage(self, seconds: float) -> None:
        """Reject attempts to connect for a while."""
        self.down = True
        self.cut()
        await asyncio.sleep(seconds)
        self.down = False


class NetworkLink:
    """One end of a link; see :class:`weirpool.transports.base.Link`."""

    other: NetworkLink
    unfinished = unread = 0

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

    def is_closing(self) -> bool:
        return self._closing

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
        """Break the link and drop everything in transit."""
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
        """Deliver what has arrived."""
        self._held.append(data)
        self._deliver()

    def _deliver(self) -> None:
        while self._held and not self._reading_paused and not self._lost:
            self.receiver.received(self._held.popleft())
        if self.other._closing:
            self.other._end()

    def _end(self) -> None:
        """Close after everything was read."""
        if self._out.next() == inf and not self.other._held:
            self.lose(None)
            self.other.lose(None)


_connect = memory.connect


@contextmanager
def network(roads: Callable[[int], tuple[Road, Road]] = lambda number: (Road(), Road())) -> Iterator[Network]:
    """Replace the links of the memory transport by those of a network."""
    made = Network(roads)
    with mock.patch.object(memory, "pair", made.pair), mock.patch.object(memory, "connect", made.connect):
        yield made
