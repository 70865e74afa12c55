"""The laboratory of isolation: requests of one connection that panic, set context variables, share their items among
tasks, and lose their transport. What happens to one of them must not happen to another.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from unittest import mock

import weirpool
from tests.sim.clockwork import Stuck, network, run
from weirpool import Payload, Service, WeirpoolError
from weirpool.aio import dispatch, exchanges
from weirpool.aio.driver import Driver

__all__ = ["closed_transports", "panics", "shared_streams", "variables"]

URL = "rsocket+memory://isolated"
SEEDS = 8
REQUESTS = 60
ITEMS = 20
LIMIT = 500.0
"""Seconds of virtual time within which everything has ended."""

owner: ContextVar[int] = ContextVar("owner", default=0)


class Panic(BaseException):
    """What a handler raises that is not an error."""


class World:
    """A service whose handlers do what the request says, and what they noticed.

    Args:
        seed: The seed of all choices.
        panicking: The share of requests whose handler panics.

    """

    def __init__(self, seed: int, panicking: float = 0.0) -> None:
        self.rng = random.Random(seed)
        self.panicking = panicking
        self.breaches: list[str] = []
        self.logged = 0
        # The step at which the handler of a request panics.
        self.panicked: dict[int, int] = {}
        self.service = Service()
        for name, handler in (("plain", self.plain), ("later", self.later)):
            self.service.call(name)(handler)
        for name, items in (("generator", self.generator), ("asynchronous", self.asynchronous)):
            self.service.stream(name)(items)

    def work(self, number: int, step: int) -> None:
        """Do one step of a handler: look at the variable of the request, set it, and perhaps panic."""
        expected = number if step else 0
        if owner.get() != expected:
            self.breaches.append(f"request {number} saw the variable of request {owner.get()}")
        owner.set(number)
        if self.panicked.get(number) == step:
            raise Panic(number)

    def plain(self, request: Payload) -> bytes:
        self.work(int(request.data), 0)
        self.work(int(request.data), 1)
        return request.data

    async def later(self, request: Payload) -> bytes:
        self.work(int(request.data), 0)
        await asyncio.sleep(0.01 * (int(request.data) % 3))
        self.work(int(request.data), 1)
        return request.data

    def generator(self, request: Payload) -> Iterator[bytes]:
        for number in range(ITEMS):
            self.work(int(request.data), number)
            yield b"%d" % number

    async def asynchronous(self, request: Payload) -> AsyncIterator[bytes]:
        for number in range(ITEMS):
            self.work(int(request.data), number)
            yield b"%d" % number
            await asyncio.sleep(0.001 * (number % 3))

    async def ask(self, peer: weirpool.Peer, number: int) -> None:
        """Send a request, and judge its result."""
        route = self.rng.choice(("plain", "later", "generator", "asynchronous"))
        called = route in ("plain", "later")
        if self.rng.random() < self.panicking:
            self.panicked[number] = self.rng.randrange(2 if called else ITEMS)
        body = b"%d" % number
        try:
            if called:
                await peer.call(route, body)
            else:
                await asyncio.sleep(self.rng.random() * 0.05)
                async for _ in peer.stream(route, body, credit=self.rng.choice((1, 7, 100))):
                    pass
        except WeirpoolError as error:
            if number not in self.panicked:
                self.breaches.append(f"request {number} ({route}) failed because of another one: {error}")
        else:
            if number in self.panicked:
                self.breaches.append(f"request {number} ({route}) succeeded although its handler panicked")

    async def play(self) -> None:
        async with weirpool.serve(self.service, URL), weirpool.connect(URL) as peer:
            await asyncio.gather(*(self.ask(peer, number) for number in range(1, REQUESTS + 1)))

    def error(self, *arguments: object, exc_info: object = None) -> None:
        """Take a line of the log."""
        self.logged += isinstance(exc_info, Panic)


def variables(folder: Path) -> Iterator[str]:
    """Let handlers of all kinds set a context variable, and look for those of others."""
    for seed in range(SEEDS):
        world = World(seed)
        yield from _played(world.play(), world.breaches, seed)


def panics(folder: Path) -> Iterator[str]:
    """Let some handlers raise a BaseException; the others must succeed, and the log must tell of each."""
    for seed in range(SEEDS):
        world = World(seed, 0.2)
        logger = mock.Mock(wraps=exchanges.logger, error=world.error)
        with mock.patch.object(exchanges, "logger", logger), mock.patch.object(dispatch, "logger", logger):
            yield from _played(world.play(), world.breaches, seed)
        if world.logged != len(world.panicked):
            yield f"seed {seed}: {world.logged} of {len(world.panicked)} panics are in the log"


def shared_streams(folder: Path) -> Iterator[str]:
    """Let several tasks consume each stream, one by one and in batches; each item goes to one of them."""
    for seed in range(SEEDS):
        breaches: list[str] = []
        yield from _played(_share(random.Random(seed), breaches), breaches, seed)


async def _share(rng: random.Random, breaches: list[str]) -> None:
    world = World(0)

    async def one_by_one(stream: Any, found: list[int]) -> None:
        async for item in stream:
            found.append(int(item.data))
            await asyncio.sleep(rng.choice((0, 0, 0.001)))

    async def in_batches(stream: Any, found: list[int]) -> None:
        async for batch in stream.batches():
            found += [int(value) for value in batch.column("data").to_pylist()]

    async with weirpool.serve(world.service, URL), weirpool.connect(URL) as peer:
        for route in ("generator", "asynchronous") * 3:
            found: list[int] = []
            consumers = rng.choices((one_by_one, in_batches), k=rng.randint(2, 4))
            async with peer.stream(route, b"1", credit=rng.choice((1, 3, 50))) as stream:
                await asyncio.gather(*(consumer(stream, found) for consumer in consumers))
            if Counter(found) != Counter(range(ITEMS)):
                breaches.append(f"{len(consumers)} tasks received {sorted(found)} of {ITEMS} items")


def closed_transports(folder: Path) -> Iterator[str]:
    """Close the transport below a driver as uvloop does; requests fail with Weirpool's errors, soon."""
    for seed in range(SEEDS):
        breaches: list[str] = []
        yield from _played(_lose(random.Random(seed), breaches), breaches, seed)


async def _lose(rng: random.Random, breaches: list[str]) -> None:
    world = World(0)
    drivers: list[Driver] = []
    made = Driver.attach

    def attach(driver: Driver, link: Any, more: bool = False) -> None:
        drivers.append(driver)
        made(driver, link, more)

    def closed(*arguments: object) -> Any:
        raise RuntimeError("the handler is closed")

    async def ask(peer: weirpool.Peer) -> None:
        await asyncio.sleep(rng.random() * 0.2)
        try:
            await peer.call("later", b"1")
        except WeirpoolError:
            pass
        except Exception as error:
            breaches.append(f"a call raised {error!r}")

    def noted(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        breaches.append(f"{context['message']}: {context.get('exception')!r}")

    loop = asyncio.get_running_loop()
    loop.set_exception_handler(noted)
    settings = weirpool.Settings(keepalive_interval=0.05)
    with mock.patch.object(Driver, "attach", attach):
        async with weirpool.serve(world.service, URL), weirpool.connect(URL, settings=settings) as peer:
            asked = [asyncio.ensure_future(ask(peer)) for _ in range(20)]
            await asyncio.sleep(rng.random() * 0.1)
            link: Any = drivers[0].link
            for name in ("write", "progress", "pause_reading", "resume_reading", "close"):
                setattr(link, name, closed)
            closed_at = loop.time()
            await asyncio.gather(*asked)
            # A timer, not a request, may be the first to use the link.
            await asyncio.sleep(0.3)
            if not peer.closed or loop.time() - closed_at > 1.0:
                breaches.append("the loss of a link is not noticed within a second")


def _played(main: Any, breaches: list[str], seed: int) -> Iterator[str]:
    """Run a world; yield what is wrong."""
    with network():
        try:
            run(main, seed=seed, limit=LIMIT)
        except (TimeoutError, Stuck):
            yield f"seed {seed}: it never ends"
        except (WeirpoolError, RuntimeError) as error:
            yield f"seed {seed}: {error!r}"
    yield from (f"seed {seed}: {breach}" for breach in breaches)
