"""Divides an event loop's time among sending halves: a ring of connections, and in each a ring of halves."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from contextvars import copy_context
from time import monotonic
from typing import Final, Protocol
from weakref import WeakKeyDictionary, ref

from ..connection import Connection
from ..transports.turns import TURN_SECONDS
from .setup import CURRENT

__all__ = ["QUANTUM", "SLOW_SECONDS", "TURN_SECONDS", "Lane", "Scheduler", "scheduler_of"]

QUANTUM: Final = 60_000
"""Bytes that a half, and a connection, may send each time: one chunk of output."""
SLOW_SECONDS: Final = TURN_SECONDS / 2
"""The duration after which a burst ends early, and the next one is smaller."""
MARK_SECONDS: Final = TURN_SECONDS / 4
"""The time for sending at once after which a turn marks the next iteration of the loop."""
PATIENCE: Final = 64
"""Visits by which streams that are opened later may delay a half that waits, beyond one round of its connection."""
MAX_WAKES: Final = 64
"""The maximum number of tasks that are woken in one iteration of the loop."""


class Output(Protocol):
    """What the scheduler knows of a connection's flow control.

    Attributes:
        loop: The event loop.
        connection: The connection that users see.
        paused: The link accepts no output.

    """

    loop: asyncio.AbstractEventLoop
    connection: Connection
    paused: bool


class Runnable(Protocol):
    """What the scheduler knows of a sending half."""

    def step(self) -> int:
        """Send a burst, or let a task send it; return the bytes that were sent since the last call."""

    def slow(self, seconds: float) -> None:
        """Make the next burst smaller, because this one took longer than `SLOW_SECONDS`."""


class Scheduler:
    """Serves the connections of one event loop by deficit round robin.

    A turn lasts `TURN_SECONDS`, and at most one burst longer. The loop then polls its sockets and timers before the
    next turn. Connections that were not in the ring for a whole round are served before the others.

    Attributes:
        clock: Returns the time in seconds.
        fresh: Connections that go first: they are new, or have not used their quantum of this round.
        waiting: All connections, each until it is found without ready halves when its turn comes: leaving and coming
            back does not make it new.
        running: A half is sending.
        scheduled: A turn will run in the next iteration of the loop.
        begun: When the last burst began.
        spent: Seconds since the last turn in which halves sent at once.
        until: When the current turn ends.
        turns: The number of turns so far.
        woken: Tasks that were woken since the last turn.
        wakes: Tasks that may be woken in one iteration.
        woken_at: When the last of them was woken.

    """

    __slots__ = (
        "__weakref__", "begun", "clock", "fresh", "running", "scheduled", "spent", "turns", "until",
        "waiting", "wakes", "woken", "woken_at"
    )  # fmt: skip

    def __init__(self) -> None:
        self.clock = monotonic
        self.fresh: deque[Lane] = deque()
        self.waiting: deque[Lane] = deque()
        self.running = False
        self.scheduled = False
        self.begun = 0.0
        self.spent = 0.0
        self.until = 0.0
        self.turns = 0
        self.woken = 0
        self.wakes = 1
        self.woken_at = 0.0

    def idle(self) -> bool:
        """Return True if no half sends or waits, and this iteration of the loop has time left."""
        return not (self.running or self.fresh or self.waiting or self.woken) and self.spent < TURN_SECONDS

    def at_once(self, lane: Lane, half: Runnable) -> None:
        """Let `half` send a burst now. The scheduler must be idle."""
        self.running = True
        self.begun = self.clock()
        try:
            lane.deficit -= half.step()
        finally:
            seconds = self.clock() - self.begun
            self.running = False
            self.spent += seconds
            if seconds > SLOW_SECONDS:
                half.slow(seconds)
            if self.fresh or self.woken or self.spent >= MARK_SECONDS:
                self.schedule(lane)
            else:
                lane.deficit = 0

    def schedule(self, lane: Lane) -> None:
        """Schedule a turn in the next iteration of the loop of `lane`."""
        if not self.scheduled:
            self.scheduled = True
            lane.flow.loop.call_soon(self.turn, lane)

    def turn(self, first: Lane) -> None:
        """Serve the ring until it is empty or the time is used up; `first` is any connection."""
        now = self.clock()
        seconds = now - self.woken_at if self.woken else 0.0
        if self.woken:
            self._adapt_wakes(seconds)
        self.scheduled = False
        self.running = True
        self.spent = 0.0
        self.turns += 1
        # Tasks that were woken have used a part of the time.
        self.until = now + max(TURN_SECONDS - seconds, MARK_SECONDS)
        try:
            while now < self.until and (self.fresh or self.waiting):
                lane = self._next()
                if lane is not None:
                    try:
                        now = lane.context.run(lane.visit, now)
                    finally:
                        lane.interrupted()
        finally:
            self.running = False
            if self.woken:
                self.woken_at = now
                self.schedule(first)
            elif self.fresh or self.waiting:
                self._schedule_after_input(first)

    def _next(self) -> Lane | None:
        """Return the next connection; None if it has no ready halves. It is among those that wait, again."""
        if self.fresh:
            lane = self.fresh.popleft()
            lane.first = False
            if lane.listed:
                return lane
        else:
            lane = self.waiting.popleft()
            if lane.blocked():
                lane.listed = False
                return None
        # What was left of a quantum is not saved.
        lane.deficit = min(lane.deficit, 0) + QUANTUM
        lane.listed = True
        self.waiting.append(lane)
        return lane

    def _schedule_after_input(self, lane: Lane) -> None:
        """Schedule a turn after the input that has arrived. asyncio handles it after callbacks that wait already."""
        self.scheduled = True
        lane.flow.loop.call_soon(self._reschedule, lane)

    def _reschedule(self, lane: Lane) -> None:
        self.scheduled = False
        self.schedule(lane)

    def woke(self) -> None:
        """Count a task that was woken. Its burst runs in the next iteration of the loop."""
        self.woken += 1
        if self.woken >= self.wakes:
            self.until = 0.0
        self.woken_at = self.clock()

    def _adapt_wakes(self, seconds: float) -> None:
        """Let more tasks send in one iteration if the last one was short, and fewer if it was long."""
        if seconds > TURN_SECONDS / 2:
            self.wakes = max(self.wakes // 2, 1)
        elif self.woken >= self.wakes and seconds < TURN_SECONDS / 4:
            self.wakes = min(2 * self.wakes, MAX_WAKES)
        self.woken = 0


class Lane:
    """The sending halves of one connection that have items and credit, in the order in which they are served.

    While the link is full the lane is not in the ring of connections, but keeps its halves and their order.

    Attributes:
        scheduler: The scheduler of the event loop.
        flow: The connection's flow control.
        context: The connection's context. Visits run in it, and each request in a copy of it; see `Dispatch`.
        fresh: New streams, each with the number of visits before it. They go first, but see `PATIENCE`.
        waiting: Halves that have sent before, likewise.
        visits: Halves that were served so far.
        deficit: Bytes that the connection may send in this visit; negative: what it has sent too much.
        listed: It is in the ring of connections.
        first: It is among those that go first.

    """

    __slots__ = (
        "context", "deficit", "first", "flow", "fresh", "listed", "scheduler", "visits", "waiting"
    )  # fmt: skip

    def __init__(self, flow: Output) -> None:
        self.scheduler = scheduler_of(flow.loop)
        self.flow = flow
        self.context = copy_context()
        self.context.run(CURRENT.set, flow.connection)
        self.fresh: OrderedDict[Runnable, int] = OrderedDict()
        self.waiting: OrderedDict[Runnable, int] = OrderedDict()
        self.visits = 0
        self.deficit = 0
        self.listed = False
        self.first = False

    # For halves.

    def ready(self, half: Runnable, new: bool = False) -> None:
        """Let `half` send: at once if no other half waits, otherwise in its turn."""
        scheduler = self.scheduler
        if not self.flow.paused and scheduler.idle():
            scheduler.at_once(self, half)
        else:
            self.queue(half, new)

    def queue(self, half: Runnable, new: bool = False) -> None:
        """Let `half` send in its turn. Does nothing if it waits already."""
        if new:
            self.fresh[half] = self.visits
        elif half not in self.fresh and half not in self.waiting:
            self.waiting[half] = self.visits
        if not self.first and not self.flow.paused:
            self._list()

    def remove(self, half: Runnable) -> None:
        """Remove `half`, which has ended."""
        if half in self.waiting:
            del self.waiting[half]
        elif half in self.fresh:
            del self.fresh[half]

    def woke(self, half: Runnable) -> int:
        """Count a half whose task was woken, and keep its place in the order; return the number of the turn."""
        self.queue(half)
        self.scheduler.woke()
        return self.scheduler.turns

    def wait_for(self, half: Runnable, turn: int) -> None:
        """End the turn if the task of `half`, whose place has come again, was woken in it and has not run yet."""
        scheduler = self.scheduler
        if turn == scheduler.turns:
            scheduler.until = 0.0
            self.waiting[half] = self.visits
            self.waiting.move_to_end(half, False)

    # For flow control.

    def resume(self) -> None:
        """Return to the ring of connections, because the link accepts output again."""
        if not self.first and (self.fresh or self.waiting):
            self._list()

    def _list(self) -> None:
        """Enter the ring, or go first with what is left of the quantum of this round."""
        scheduler = self.scheduler
        if not self.listed or (self.deficit > 0 and not scheduler.running):
            self.first = True
            scheduler.fresh.append(self)
        if not scheduler.running:
            scheduler.schedule(self)

    # For the scheduler.

    def blocked(self) -> bool:
        """Return True if no half can send."""
        return self.flow.paused or not (self.fresh or self.waiting)

    def visit(self, now: float) -> float:
        """Serve halves until the quantum is used, the link is full, or the turn ends; return the time.

        If no other connection waits, there is no quantum.
        """
        scheduler = self.scheduler
        while now < scheduler.until and not self.flow.paused:
            if self.deficit <= 0:
                if scheduler.fresh or len(scheduler.waiting) > 1:
                    break
                self.deficit += QUANTUM
            half = self._next()
            if half is None:
                break
            scheduler.begun = now
            self.deficit -= half.step()
            then = scheduler.clock()
            if then - now > SLOW_SECONDS:
                half.slow(then - now)
            now = then
        return now

    def interrupted(self) -> None:
        """Go first in the next turn, if the turn ended before the quantum was used."""
        if self.deficit > 0 and not self.first and not self.blocked():
            self.first = True
            self.scheduler.fresh.appendleft(self)

    def _next(self) -> Runnable | None:
        """Remove and return the next half; None if there is none."""
        fresh, waiting = self.fresh, self.waiting
        self.visits += 1
        if waiting:
            if not fresh or next(iter(waiting.values())) + len(waiting) + PATIENCE <= next(iter(fresh.values())):
                return waiting.popitem(False)[0]
        elif not fresh:
            return None
        return fresh.popitem(False)[0]


_schedulers: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Scheduler]] = WeakKeyDictionary()


def scheduler_of(loop: asyncio.AbstractEventLoop) -> Scheduler:
    """Return the scheduler of an event loop. It exists as long as somebody holds it."""
    known = _schedulers.get(loop)
    found = None if known is None else known()
    if found is None:
        found = Scheduler()
        _schedulers[loop] = ref(found)
    return found
