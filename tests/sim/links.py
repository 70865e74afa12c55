"""Links with bandwidth, delay and buffers that break, stall and are slow, with virtual time.

:class:`Pipe` is one direction of a link. :class:`Line` joins two sessions of any protocol by two pipes, without a
driver; `tests.sim.clockwork` puts real drivers at their ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from weirpool.errors import LinkLost, ProtocolError
from weirpool.protocols import client_session, detectors
from weirpool.settings import Settings

PIECE = 8_192
"""The maximum size of a delivered chunk."""
BACKLOG = 4_096
"""See `weirpool.aio.flow.BACKLOG_BYTES`."""


@dataclass(frozen=True)
class Road:
    """The properties of one direction of a link.

    Attributes:
        rate: Bytes per second.
        delay: The latency, in seconds.
        buffer: The size of an intermediate buffer, which is filled immediately and drained at `rate`.
        cut: The link breaks after this many bytes; None: never.
        stall: The link silently stops after this many bytes; None: never.

    """

    rate: float = inf
    delay: float = 0.0
    buffer: int = 0
    cut: int | None = None
    stall: int | None = None


class Pipe:
    """One direction of a link. Written data waits until earlier data was carried."""

    def __init__(self, road: Road) -> None:
        self._road = road
        # For each piece: when it has left the sender, when it arrives, and its bytes; None: the link breaks there.
        self._pieces: deque[tuple[float, float, bytes | None]] = deque()
        self._free = 0.0
        self._written = 0
        self._left: deque[tuple[float, int]] = deque()
        self._carried = 0
        self._cut = False

    def write(self, data: bytes, now: float) -> None:
        """Send `data`."""
        road = self._road
        for at in range(0, len(data), PIECE):
            piece = data[at : at + PIECE]
            room = inf if road.cut is None else road.cut - self._written
            if self._cut or (road.stall is not None and self._written >= road.stall):
                # It never arrives.
                self._left.append((inf, len(piece)))
                continue
            piece = piece[: int(min(room, len(piece)))]
            self._free = max(self._free, now) + len(piece) / road.rate
            self._written += len(piece)
            self._left.append((self._free, len(piece)))
            if piece:
                self._pieces.append((self._free, self._free + road.delay, piece))
            if room <= len(data[at : at + PIECE]):
                self._cut = True
                self._pieces.append((self._free, self._free + road.delay, None))

    def waiting(self, now: float) -> int:
        """Return how many bytes wait at the sender. Bytes in the intermediate buffer do not count."""
        self._settle(now)
        return max(0, sum(size for _, size in self._left) - self._road.buffer)

    def taken(self, now: float) -> int:
        """Return how many bytes have left the sender."""
        self._settle(now)
        return self._carried + min(self._road.buffer, sum(size for when, size in self._left if when < inf))

    def next(self) -> float:
        """Return the time of the next arrival."""
        return self._pieces[0][1] if self._pieces else inf

    def arrived(self, now: float) -> Iterator[bytes | None]:
        """Yield the data that has arrived by `now`; None: the link has broken."""
        while self._pieces and self._pieces[0][1] <= now:
            yield self._pieces.popleft()[2]

    def _settle(self, now: float) -> None:
        while self._left and self._left[0][0] <= now:
            self._carried += self._left.popleft()[1]


@dataclass
class Side:
    """One end of a :class:`Line`."""

    session: Any
    out: Pipe
    waited: bool = False
    taken: int = 0

    def look(self, now: float) -> None:
        """Call `progressed` if output has moved, as a driver does before each timer."""
        taken = self.out.taken(now)
        if self.waited and taken > self.taken and self.session is not None:
            self.session.progressed(now)
        self.waited = self.out.waiting(now) > BACKLOG
        self.taken = taken


class Line:
    """A client's and a server's session, joined by consecutive links.

    Args:
        protocol: The protocol of both.
        there, back: Return the directions of the link of a number; the first is 0.
        client, server: Settings.
        answer: Called with each `Requested` of the server, and the server's session.
        again: Seconds until the next link.

    Attributes:
        client, server: The sessions; the server's is None before its first handshake.
        client_events, server_events: Their events.
        links: The number of links so far.
        hangs: Whether the server's process hangs: its system accepts bytes that are not read.
        now: The time.

    """

    def __init__(
        self,
        protocol: str,
        there: Callable[[int], Road],
        back: Callable[[int], Road],
        *,
        client: dict[str, Any] | None = None,
        server: dict[str, Any] | None = None,
        answer: Callable[[Any, Any], None] = lambda event, session: None,
        again: float = 0.1,
    ) -> None:
        self.now = 1000.0
        self._roads = there, back
        self._answer = answer
        self._again = again
        self._protocol = protocol
        self._server_settings = replace(Settings(), **(server or {}))
        self.client_events: list[Any] = []
        self.server_events: list[Any] = []
        self.links = 0
        self.hangs = False
        self._due = self.now
        self._linked = False
        self.client = client_session(protocol, replace(Settings(), **(client or {})), random=bytes(range(16)))
        self.server: Any = None
        self.restart()

    def restart(self) -> None:
        """Replace the server by one without any state."""
        self._accept = detectors(self._protocol, self._server_settings)
        self.server = None
        if self._linked:
            self._lose(LinkLost("the server was stopped"))

    def run(self, seconds: float, done: Callable[[], bool] = lambda: False) -> bool:
        """Advance the time until `done()` or the limit; return `done()`."""
        end = self.now + seconds
        self._flush()
        while not done():
            when = self._next()
            if when > end:
                self.now = end
                return done()
            self.now = max(self.now, when)
            self._step()
        return True

    def of(self, side: str, name: str) -> list[Any]:
        """Return a side's events of that class."""
        return [event for event in getattr(self, f"{side}_events") if type(event).__name__ == name]

    def _next(self) -> float:
        whens = [self.client.next_timer()]
        if self.server is not None and not self.hangs:
            whens.append(self.server.next_timer())
        if self._linked:
            whens += [self._left.out.next(), self._right.out.next()]
        elif self.client.link_wanted:
            whens.append(self._due)
        return min((when for when in whens if when is not None), default=inf)

    def _step(self) -> None:
        if not self._linked and self.client.link_wanted and self._due <= self.now:
            self._open()
        for side in (self._left,) if self.hangs else (self._left, self._right):
            if side.session is not None and (side.session.next_timer() or inf) <= self.now:
                if self._linked:
                    side.look(self.now)
                side.session.handle_timer(self.now)
        self._flush()
        if self._linked:
            self._carry()

    def _open(self) -> None:
        number, self.links = self.links, self.links + 1
        self._linked = True
        self._left = Side(self.client, Pipe(self._roads[0](number)))
        self._right = Side(self.server, Pipe(self._roads[1](number)))
        self._acceptor: Any = self._accept()
        self._acceptor.link_up(self.now)
        self.client.link_up(self.now)

    def _carry(self) -> None:
        pairs: list[tuple[Side, Callable[[bytes], None]]] = [
            (self._left, self._to_server),
            (self._right, lambda data: self.client.receive(data, self.now)),
        ]
        for side, bring in pairs:
            for data in side.out.arrived(self.now):
                if data is None:
                    self._lose(LinkLost("the connection broke"))
                else:
                    bring(data)
                self._flush()
                if not self._linked:
                    return

    def _to_server(self, data: bytes) -> None:
        if self.hangs:
            return
        if self._acceptor is None:
            self.server.receive(data, self.now)
            return
        try:
            session = self._acceptor.receive(data, self.now)
        except ProtocolError:
            self._right.out.write(self._acceptor.farewell, self.now)
            return
        if session is not None:
            self.server = self._right.session = session
            self._acceptor = None

    def _flush(self) -> None:
        events = self.client.take_events()
        self.client_events += events
        gone = any(type(event).__name__ == "Unlinked" for event in events)
        if self.server is not None:
            events = self.server.take_events()
            self.server_events += events
            gone = gone or any(type(event).__name__ == "Unlinked" for event in events)
            for event in events:
                if type(event).__name__ == "Requested":
                    self._answer(event, self.server)
        if not self._linked:
            return
        for side in (self._left, self._right):
            if side.session is not None:
                for chunk in side.session.take_output():
                    side.out.write(chunk, self.now)
        if gone or not self.client.link_wanted or (self._acceptor is None and not self.server.link_wanted):
            self._lose(LinkLost("the connection broke"))

    def _lose(self, error: Exception) -> None:
        self._linked = False
        self._due = self.now + self._again
        for session in (self.client, self.server):
            if session is not None:
                session.link_down(self.now, error)
        self._flush()
