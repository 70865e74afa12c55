"""The laboratory of shares: one client sends more than can be handled, and others call meanwhile.

On a clock that only the handlers move, a call waits for a few turns, whatever others send. Links of one client have the
share of one client together. Handlers that run on after they were canceled keep their slots. Each scenario yields the
breaches that it finds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import weirpool
from tests.sim.clockwork import network
from tests.sim.fairness import BusyLoop
from tests.sim.links import Road
from weirpool import Payload, Service, Settings
from weirpool.transports import turns

__all__ = ["SCENARIOS"]

REQUEST_SECONDS = 20e-6
FLOOD = 5_000
"""Requests that take as long as 50 turns."""
SLOTS = 5
URL = "rsocket+memory://shares"


def calls_beside_a_flood(loop: BusyLoop) -> Iterator[str]:
    """Let a client send thousands of requests, again and again: the calls of another one wait for a few turns each."""
    service = Service()
    service.fire("work")(lambda request: loop.work(REQUEST_SECONDS))
    service.call("echo")(lambda request: request)
    waits: list[float] = []

    async def send(flood: weirpool.Peer) -> None:
        while True:
            for _ in range(FLOOD):
                await flood.fire("work")
            await asyncio.sleep(0.05)

    async def main() -> None:
        async with weirpool.serve(service, URL), weirpool.connect(URL) as flood, weirpool.connect(URL) as peer:
            await asyncio.gather(flood.call("echo"), peer.call("echo"))
            flooding = asyncio.ensure_future(send(flood))
            for _ in range(20):
                due = loop.time() + 0.01
                await asyncio.sleep(0.01)
                await peer.call("echo")
                waits.append(loop.time() - due)
            flooding.cancel()
            await asyncio.gather(flooding, return_exceptions=True)

    _run(loop, main)
    # Request, response and the task that waits for it may each wait for a turn.
    if max(waits) > 5 * turns.TURN_SECONDS:
        yield f"a call waited for {max(waits) * 1e3:.1f} ms"


def crowds(loop: BusyLoop) -> Iterator[str]:
    """Let a client have many links, and another one a single link: each client gets half, and timers are in time."""
    used = {"crowd": 0, "alone": 0}
    late: list[float] = []

    def step(name: str) -> Callable[[], bool]:
        def decode() -> bool:
            for _ in range(1_000):
                used[name] += 1
                loop.work(REQUEST_SECONDS)
                if own.over():
                    break
            return True

        return decode

    async def main() -> None:
        for name in ("crowd",) * 20 + ("alone",):
            own.wait(turns.Reader(own, name, step(name)))
        for _ in range(50):
            due = loop.time() + turns.TURN_SECONDS
            await asyncio.sleep(turns.TURN_SECONDS)
            late.append(loop.time() - due)

    own = turns.turns_of(loop)
    _run(loop, main)
    if max(late) > 2 * turns.TURN_SECONDS:
        yield f"a timer was late by {max(late) * 1e3:.1f} ms"
    share = used["alone"] / sum(used.values())
    if not 0.4 < share < 0.6:
        yield f"a client with one link got {share:.0%} of the time, beside another one with twenty"


def canceled_handlers(loop: BusyLoop) -> Iterator[str]:
    """Cancel calls whose handlers run on: no more handlers run than there are slots."""
    service, settings = Service(), Settings(max_streams=SLOTS)
    running = most = 0
    released = asyncio.Event()

    @service.call("stubborn")
    async def stubborn(request: Payload) -> Payload:
        nonlocal running, most
        running += 1
        most = max(most, running)
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        running -= 1
        return request

    async def main() -> None:
        async with weirpool.serve(service, URL, settings=settings), weirpool.connect(URL) as peer:
            for _ in range(3 * SLOTS):
                call = asyncio.ensure_future(peer.call("stubborn"))
                await asyncio.sleep(0.01)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
            released.set()

    _run(loop, main)
    if most > SLOTS:
        yield f"{most} handlers ran at once, with {SLOTS} slots"


def _run(loop: BusyLoop, main: Callable[[], object]) -> None:
    with network(lambda number: (Road(), Road())), asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main())  # type: ignore[arg-type]


SCENARIOS = {each.__name__: each for each in (calls_beside_a_flood, crowds, canceled_handlers)}
