"""Runs one round of load: keeps requests in flight for a time, at a rate or as fast as they complete."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter_ns

from ..aio.peer import Peer
from ..errors import ApplicationError, LeaseMissing, LocalError, WeirpoolError
from .measured import NANOSECONDS, Measured
from .requests import Send

__all__ = ["Pace", "Round"]


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How much load, and for how long.

    Attributes:
        in_flight: The maximum number of requests in flight, over all connections.
        seconds: The duration without the warm-up; None: until `count` requests have ended.
        count: The number of measured requests; None: as many as the time allows.
        rate: Requests per second in total; None: each request follows the one before.
        warm_up: Seconds before the measurement, whose requests are not counted.

    """

    in_flight: int
    seconds: float | None
    count: int | None = None
    rate: float | None = None
    warm_up: float = 0.0


@dataclass
class Round:
    """One round of load over some connections.

    With a rate, requests are due at fixed times. A latency is counted from that time, also if the request could only be
    sent later because all those before it were waiting. A server that stalls is therefore seen as its clients would see
    it ("coordinated omission" is corrected).

    Attributes:
        measured: The results so far.

    """

    peers: Sequence[Peer]
    send: Send
    pace: Pace
    measured: Measured = field(init=False)
    _begun: int = field(default=0, init=False)
    _taken: int = field(default=0, init=False)
    _started: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.measured = self._empty()

    async def run(self) -> Measured:
        """Run the round and return its results. After a cancellation, `measured` has those so far.

        Raises:
            WeirpoolError: The request cannot be sent, or all connections are lost.

        """
        if self.pace.warm_up:
            await self._phase(self.pace.warm_up, None)
            self.measured = self._empty()
        try:
            await self._phase(self.pace.seconds, self.pace.count)
            self.measured.complete = True
        finally:
            self.measured.seconds = self.elapsed()
            self.measured.unfinished = self._due_so_far() - self.measured.requests - self.measured.failed
        return self.measured

    def elapsed(self) -> float:
        """Return the seconds since the begin of the current phase."""
        return (perf_counter_ns() - self._begun) / NANOSECONDS if self._begun else 0.0

    def _due_so_far(self) -> int:
        """Return how many requests should have been sent."""
        rate, count = self.pace.rate, self.pace.count
        if rate is None:
            return self._started
        due = max(self._started, int(self.elapsed() * rate))
        return due if count is None else min(due, count)

    def _empty(self) -> Measured:
        return Measured(self.pace.in_flight, len(self.peers), self.pace.rate)

    async def _phase(self, seconds: float | None, count: int | None) -> None:
        self._begun = perf_counter_ns()
        self._taken = self._started = 0
        workers = [asyncio.ensure_future(self._work(n, count)) for n in range(self.pace.in_flight)]
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.gather(*workers)
        finally:
            # Requests that have not ended are not counted, but the items of streams are.
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, number: int, count: int | None) -> None:
        """Send one request after the other. Each worker uses one connection."""
        peer = self.peers[number % len(self.peers)]
        while count is None or self._taken < count:
            place = self._taken
            self._taken += 1
            due = await self._due(place)
            self._started += 1
            if not await self._one(peer, due):
                return

    async def _due(self, place: int) -> int:
        """Wait until a request is due; return that time, in nanoseconds."""
        if self.pace.rate is None:
            # A request that completes at once must not keep other tasks, such as timers, from running.
            if place % 64 == 0:
                await asyncio.sleep(0)
            return perf_counter_ns()
        due = self._begun + int(place * NANOSECONDS / self.pace.rate)
        wait = due - perf_counter_ns()
        # The event loop's clock is coarser than short waits, but a turn of the loop is needed in any case.
        await asyncio.sleep(max(wait, 0) / NANOSECONDS)
        return due

    async def _one(self, peer: Peer, due: int) -> bool:
        """Send a request and count it; return False if the connection is lost."""
        measured = self.measured
        try:
            await self.send(peer, measured, self._first(measured, due))
        except (ApplicationError, LeaseMissing) as error:
            measured.fail(*_described(error))
        except LocalError:
            raise
        except WeirpoolError as error:
            measured.fail(*_described(error))
            if peer.closed:
                if all(each.closed for each in self.peers):
                    raise
                return False
            # While it reconnects, requests fail at once.
            await asyncio.sleep(0.01)
        else:
            now = perf_counter_ns()
            measured.requests += 1
            measured.latency.record(now - due)
            measured.series.add((now - self._begun) / NANOSECONDS)
        return True

    @staticmethod
    def _first(measured: Measured, due: int) -> Callable[[], None]:
        return lambda: measured.first_item.record(perf_counter_ns() - due)


def _described(error: Exception) -> tuple[str, str]:
    """Return the name by which an error is counted, its code or its class, and its text."""
    if isinstance(error, ApplicationError):
        return f"0x{error.code:03X}" if isinstance(error.code, int) else error.code, error.message
    return type(error).__name__, str(error)
