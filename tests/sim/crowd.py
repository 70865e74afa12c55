"""Crowds of calls on virtual time: what a server that admits few of them sees, and what its clients get."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import weirpool
from weirpool import Kind, Metrics, Outcome, Payload, Rejected, Service, Settings

from .clockwork import network, run
from .links import Road

__all__ = ["PROTOCOLS", "Crowd", "Shared"]

PROTOCOLS = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "river", "reactive-streams")


@dataclass
class Crowd:
    """Calls that one client makes at once, some of which it cancels.

    Attributes:
        limit: How many calls the server admits.
        seconds: How long a call takes, on average.
        delay: How long the link takes, in one direction.
        begun: The numbers of the calls that reached the handler, in order.
        canceled: Those that the client has canceled.
        most: How many were handled at once.
        refused: How many were refused and sent again.
        took: Seconds until all had ended.

    """

    protocol: str
    limit: int
    seconds: float
    delay: float = 0.01
    count: int = 600
    cancels: float = 0.0
    seed: int = 0
    begun: list[int] = field(default_factory=list)
    canceled: set[int] = field(default_factory=set)
    most: int = 0
    refused: int = 0
    took: float = 0.0

    def breaches(self) -> Iterator[str]:
        """Run it, and yield what was not as promised."""
        rng = random.Random(self.seed)
        road = Road(1e8, self.delay)
        try:
            with network(lambda number: (road, road)):
                answers = run(self._main(rng), seed=self.seed, limit=2_000.0)
        except TimeoutError:
            yield "a call never ends"
            return
        wrong = [n for n, answer in enumerate(answers) if answer != n and n not in self.canceled]
        if wrong:
            yield f"{len(wrong)} calls were not answered, first {wrong[0]}: {answers[wrong[0]]!r}"
        if len(set(self.begun)) != len(self.begun):
            yield "a call was handled twice"
        # Only calls that were on the way together with one that was refused may overtake it.
        overtaken = max(n - min(self.begun[at:]) for at, n in enumerate(self.begun))
        if overtaken > 2 * (self.limit + 1):
            yield f"a call overtook one that arrived {overtaken} calls before it"
        # Once for each call of the first burst; then once a window.
        if self.refused > self.count + len(self.begun) / 8:
            yield f"{self.refused} refusals for {len(self.begun)} calls"
        # The mean number of open calls is at least 0.9 * 0.9 of the limit, while there are enough.
        ideal = len(self.begun) / self.limit * (self.seconds + 2 * self.delay)
        if self.took > ideal / 0.75 + 10 * (self.seconds + 2 * self.delay):
            yield f"took {self.took:.2f} s instead of {ideal:.2f}"

    async def _main(self, rng: random.Random) -> list[object]:
        service = Service()
        open_now = 0

        @service.call("demo.work")
        async def work(request: Payload) -> bytes:
            nonlocal open_now
            self.begun.append(int(request.data))
            open_now += 1
            self.most = max(self.most, open_now)
            try:
                await asyncio.sleep(rng.uniform(0.5, 1.5) * self.seconds)
            finally:
                open_now -= 1
            return request.data

        metrics = Metrics()
        url = f"{self.protocol}+memory://crowd"
        async with weirpool.serve(service, url, settings=Settings(max_streams=self.limit)):
            async with weirpool.connect(url, taps=[metrics]) as peer:
                loop = asyncio.get_running_loop()
                started = loop.time()
                calls = [asyncio.ensure_future(peer.call("demo.work", b"%d" % n)) for n in range(self.count)]
                for number, call in enumerate(calls):
                    if rng.random() < self.cancels:
                        self.canceled.add(number)
                        loop.call_later(rng.random() * 5 * self.seconds, call.cancel)
                ended = await asyncio.gather(*calls, return_exceptions=True)
                self.took = loop.time() - started
        self.refused = metrics.snapshot().streams_ended[Kind.CALL, True, Outcome.REJECTED]
        return [int(each.data) if isinstance(each, Payload) else each for each in ended]


@dataclass
class Shared:
    """Clients that share a capacity of which each knows nothing but refusals; they start one after the other.

    Attributes:
        capacity: How many calls are handled at once, of all clients together.
        answered: The answers to each client in the last third of the time.

    """

    clients: int
    capacity: int
    seconds: float = 0.1
    duration: float = 120.0
    answered: list[int] = field(default_factory=list)

    def breaches(self) -> Iterator[str]:
        """Run it, and yield what was not as promised."""
        road = Road(1e8, 0.005)
        with network(lambda number: (road, road)):
            run(self._main())
        total = sum(self.answered)
        squares = sum(each * each for each in self.answered)
        # Jain's index: 1 if all are equal, 1 / clients if one has all.
        fairness = total * total / (len(self.answered) * squares)
        if fairness < 0.9:
            yield f"the shares are unfair ({fairness:.2f}): {self.answered}"
        ideal = self.capacity / self.seconds * self.duration / 3
        if total < 0.7 * ideal:
            yield f"{total} calls were answered instead of {ideal:.0f}"

    async def _main(self) -> None:
        service = Service()
        open_now = 0

        @service.call("demo.work")
        async def work(request: Payload) -> bytes:
            nonlocal open_now
            if open_now >= self.capacity:
                raise Rejected(message=f"more than max_streams ({self.capacity}) streams are open")
            open_now += 1
            try:
                await asyncio.sleep(self.seconds)
            finally:
                open_now -= 1
            return b""

        self.answered = [0] * self.clients
        async with weirpool.serve(service, "rsocket+memory://shared"):
            await asyncio.gather(*(self._client(number) for number in range(self.clients)))

    async def _client(self, number: int) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self.duration
        await asyncio.sleep(number * self.duration / 3 / self.clients)
        async with weirpool.connect("rsocket+memory://shared") as peer:
            await asyncio.gather(*(self._caller(peer, number, end) for _ in range(2 * self.capacity)))

    async def _caller(self, peer: weirpool.Peer, number: int, end: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < end:
            try:
                await peer.call("demo.work")
            except Rejected:
                continue
            self.answered[number] += end - loop.time() < self.duration / 3
