"""Divides the time of an event loop among clients whose input waits to be decoded.

A peer decides how much it sends, and tiny frames cost much more time than bytes. So what is limited is time: all input
that is decoded at once, between two polls of the sockets, gets `TURN_SECONDS` together. What is left waits, and its
link is not read, so that the rest stays with its sender. In each turn, the client that has used least goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from math import inf
from time import monotonic
from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

__all__ = ["TURN_SECONDS", "Client", "Reader", "Turns", "turns_of"]

TURN_SECONDS: Final = 0.002
"""The time for input between two polls, and that for output. It bounds what others wait, and is a thousand times the
cost of a poll."""
# Compiled modules cannot import what is a number of C.
MOST_SECONDS: Final = TURN_SECONDS
TASK_SECONDS: Final = 20e-6
"""What a task costs that a request starts. It runs in later iterations of the loop, but its client pays now."""
SMALL_BYTES: Final = 256
"""Reads up to this size hold too few frames to take long, unless a handler does. Reading the clock for each would slow
down calls that are made one after the other, so only one of four is measured, and the others are charged at a rate."""
SMALL_SECONDS: Final = 20e-6
UNMEASURED: Final = 3
NEVER: Final = inf
LEAST_SECONDS: Final = TURN_SECONDS / 4
"""The time for input that waits, however long the loop was busy with what the last turn has caused."""


class Client:
    """All readers of one identity, or else of one address. Together they have the share of one client.

    Attributes:
        used: The time that they have used, in seconds, in relation to that of other clients.
        latest: The most that one of them has used.
        now: What the reader that went on last had used before. One that comes back does not get the time in between.
        waiting: Those that wait, as a heap by the time that they have used.
        listed: It is among the clients that wait.

    """

    __slots__ = ("__weakref__", "latest", "listed", "now", "used", "waiting")

    def __init__(self) -> None:
        self.used = self.now = self.latest = 0.0
        self.waiting: list[tuple[float, int, Reader]] = []
        self.listed = False


class Reader:
    """A receiver that decodes the data of a link, and lets the rest wait for its turn.

    Args:
        turns: The turns of its event loop.
        name: The identity or the address of its client; empty: it is a client of its own.
        step: Called in its turn: decodes data until `Turns.over`, and returns whether there is more.

    Attributes:
        client: Its client.
        used: The time that it has used, in seconds, in relation to other readers of its client.
        waits: It waits for its turn.
        decodes: It is between `enter` and `leave`.
        began: When it began to decode; -1: that was not measured.
        charged: The time that all readers had used then.

    """

    __slots__ = ("began", "charged", "client", "decodes", "step", "used", "waits")

    def __init__(self, turns: Turns, name: str, step: Callable[[], bool]) -> None:
        self.client = turns.client(name)
        self.step = step
        self.used = 0.0
        self.waits = self.decodes = False
        self.began = self.charged = 0.0


class Turns:
    """The turns of the readers of one event loop.

    Between two turns, the loop serves everything else: timers, output, tasks, and at once the input of clients that
    have used no more than those that wait. Among the links of one client, the same rule holds again.

    Attributes:
        clock: Returns the time in seconds.
        now: What the client that went on last had used before.
        latest: The most that a client has used.
        waiting: The clients with readers that wait, as a heap by the time that they have used.
        serving: The client whose turn it is; it is not in the heap.
        spent: The time that was used at once in this iteration of the loop.
        until: When readers must stop; infinite during a read that is not measured.
        owed: The time that tasks will use, which the current reader has started.
        charged: The time that all readers have used.
        depth: Readers that decode now: the data of one may be the messages for another one.
        small: Small reads that were not measured, since one was.
        ended: When the last turn with a reader ended.
        scheduled: A turn or the next iteration is scheduled, or a turn runs.

    """

    __slots__ = (
        "__weakref__", "_clients", "_loop", "_order", "charged", "clock", "depth", "ended", "latest", "now",
        "owed", "scheduled", "serving", "small", "spent", "until", "waiting"
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._clients: WeakValueDictionary[str, Client] = WeakValueDictionary()
        self._order = count()
        self.clock = monotonic
        self.now = self.latest = 0.0
        self.waiting: list[tuple[float, int, Client]] = []
        self.serving: Client | None = None
        self.spent = 0.0
        self.until = self.owed = 0.0
        self.charged = 0.0
        self.depth = 0
        self.small = 0
        self.ended = 0.0
        self.scheduled = False

    def client(self, name: str) -> Client:
        """Return the client of that name; a new one if the name is empty."""
        found = self._clients.get(name)
        if found is None:
            found = Client()
            if name:
                self._clients[name] = found
        return found

    def enter(self, reader: Reader, size: int) -> bool:
        """Let a reader decode `size` bytes that have arrived, and call `leave`. Return False if it must wait."""
        client = reader.client
        if (
            (self.waiting and client.used > self.waiting[0][0])
            or (client.waiting and reader.used > client.waiting[0][0])
            or (self.spent >= MOST_SECONDS and not self.depth)
        ):
            return False
        began = -1.0
        if self.depth:
            if self.until < NEVER:
                began = self.clock()
                if began >= self.until:
                    return False
        elif size <= SMALL_BYTES and self.small < UNMEASURED:
            self.small += 1
            self.until = NEVER
        else:
            self.small = 0
            began = self.clock()
            self.until = began + MOST_SECONDS - self.spent
        if not self.scheduled:
            self.now = self.latest
        self._begin(reader, began)
        return True

    def over(self) -> bool:
        """Return True if readers must stop: the time of this turn is used."""
        return self.clock() >= self.until

    def task_started(self) -> None:
        """Charge the current reader for a task that a request has started."""
        self.owed += TASK_SECONDS
        self.until -= TASK_SECONDS

    def leave(self, reader: Reader) -> bool:
        """Charge a reader for the time since `enter`, without that of others that it has called.

        Returns:
            True if the time of this turn is used: the reader must `wait`.

        """
        if reader.began < 0.0:
            used = False
            taken = SMALL_SECONDS + self.owed
        else:
            now = self.clock()
            used = now >= self.until
            taken = now - reader.began - (self.charged - reader.charged) + self.owed
        self.owed = 0.0
        client = reader.client
        self.charged += taken
        self.spent += taken
        reader.used += taken
        client.used += taken
        client.latest = max(client.latest, reader.used)
        self.latest = max(self.latest, client.used)
        self.depth -= 1
        reader.decodes = False
        if not self.scheduled and (reader.waits or self.spent >= LEAST_SECONDS):
            self._schedule()
        if reader.waits:
            self._queue(reader)
        return used

    def wait(self, reader: Reader) -> None:
        """Let a reader go on in its turn. Does nothing if it waits already."""
        if not reader.waits:
            reader.waits = True
            if not reader.decodes:
                self._queue(reader)

    def _queue(self, reader: Reader) -> None:
        client = reader.client
        if not client.waiting:
            client.now = client.latest
        reader.used = max(reader.used, client.now)
        heappush(client.waiting, (reader.used, next(self._order), reader))
        if not client.listed and client is not self.serving:
            if not self.scheduled:
                self.now = self.latest
            self._list(client)
        if not self.scheduled:
            self._schedule()

    def _list(self, client: Client) -> None:
        client.listed = True
        client.used = max(client.used, self.now)
        heappush(self.waiting, (client.used, next(self._order), client))

    def _begin(self, reader: Reader, now: float) -> None:
        client = reader.client
        reader.began = now
        reader.charged = self.charged
        reader.used = max(reader.used, client.now)
        client.used = max(client.used, self.now)
        reader.decodes = True
        self.depth += 1

    def _turn(self) -> None:
        """Let readers go on until the time is used. What the last turn has caused, such as tasks, uses it as well."""
        now = self.clock()
        self.until = now + max(MOST_SECONDS - (now - self.ended), LEAST_SECONDS)
        try:
            while self.waiting and now < self.until:
                self._go_on(now)
                now = self.ended = self.clock()
        finally:
            self.spent = 0.0
            self.scheduled = False
            if self.waiting:
                self._schedule()

    def _go_on(self, now: float) -> None:
        """Let the reader that has used least, of the client that has, decode until the time is used."""
        self.now, _, client = heappop(self.waiting)
        client.now, _, reader = heappop(client.waiting)
        client.listed = reader.waits = False
        self.serving = client
        self._begin(reader, now)
        more = False
        try:
            more = reader.step()
        finally:
            self.leave(reader)
            if more:
                self.wait(reader)
            self.serving = None
            if client.waiting:
                self._list(client)

    def _schedule(self) -> None:
        """Schedule a turn after the input of the next iteration, which asyncio handles after callbacks that wait."""
        self.scheduled = True
        self._loop.call_soon(self._next_iteration)

    def _next_iteration(self) -> None:
        """Give input that is decoded at once its time of this iteration, and schedule a turn if any waits."""
        self.spent = 0.0
        self.scheduled = bool(self.waiting)
        if self.scheduled:
            self._loop.call_soon(self._turn)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, ref[Turns]] = WeakKeyDictionary()


def turns_of(loop: asyncio.AbstractEventLoop) -> Turns:
    """Return the turns of an event loop. They exist as long as somebody holds them."""
    known = _turns.get(loop)
    found = None if known is None else known()
    if found is None:
        found = Turns(loop)
        _turns[loop] = ref(found)
    return found
