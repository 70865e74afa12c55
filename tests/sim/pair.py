"""A client's and a server's session, with a link and a clock that the test controls.

Nothing here uses sockets or waits. `drive` moves bytes until nothing moves; `cut` determines how the
link cuts them. All modules of Weirpool come from the build that the test runs on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from tests.builds import Build

Cut = Callable[[bytes], Iterable[bytes]]


def whole(data: bytes) -> Iterable[bytes]:
    """Deliver the bytes as they were sent."""
    return [data] if data else []


def byte_by_byte(data: bytes) -> Iterable[bytes]:
    """Deliver single bytes."""
    return [data[at : at + 1] for at in range(len(data))]


def randomly(seed: int) -> Cut:
    """Deliver pieces of random length."""
    rng = random.Random(seed)

    def cut(data: bytes) -> Iterable[bytes]:
        at = 0
        while at < len(data):
            size = rng.choice((1, 2, 3, 7, 64, 1000, 100_000))
            yield data[at : at + size]
            at += size

    return cut


CUTS: dict[str, Cut] = {"whole": whole, "byte by byte": byte_by_byte, "random": randomly(7)}


class Pair:
    """A client's and a server's session.

    Attributes:
        client, server: The sessions.
        server_dialect: Their dialect, in the RSocket family.
        client_events, server_events: Their events, in order.
        client_sent, server_sent: The bytes that each has sent.
        now: The time.

    """

    def __init__(
        self,
        build: Build,
        *,
        cut: Cut = whole,
        client: Any = None,
        server: Any = None,
        setup: Any = None,
        dialect: str = "rsocket-1.0",
    ) -> None:
        self.build = build
        self.cut = cut
        settings = build.module("weirpool.settings").Settings
        payload = build.module("weirpool.payload").Payload
        ours, theirs = settings(**(client or {})), settings(**(server or {}))
        if dialect == "reactive-streams-0":
            session = build.module("weirpool.reactivestreams.session").ReactiveStreamsSession
            self.client, self.server = session.client(ours, setup or payload()), session.server(theirs)
        else:
            session = build.module("weirpool.rsocket.session").RSocketSession
            spoken = build.module("weirpool.rsocket.dialect").DIALECTS[dialect]
            self.server_dialect = spoken
            self.client = session.client(ours, setup or payload(), spoken)
            self.server = session.server(theirs, spoken)
        self.client_events: list[Any] = []
        self.server_events: list[Any] = []
        self.client_sent = b""
        self.server_sent = b""
        self.now = 1000.0
        self.client.link_up(self.now)
        self.server.link_up(self.now)
        self.drive()

    def drive(self) -> None:
        """Move bytes and events until nothing moves."""
        moved = True
        while moved:
            self.client_events += self.client.take_events()
            self.server_events += self.server.take_events()
            there = b"".join(self.client.take_output())
            back = b"".join(self.server.take_output())
            self.client_sent += there
            self.server_sent += back
            for piece in self.cut(there):
                self.server.receive(bytes(piece), self.now)
            for piece in self.cut(back):
                self.client.receive(bytes(piece), self.now)
            moved = bool(there or back)

    def advance(self, seconds: float) -> None:
        """Advance the time and run all timers in between."""
        end = self.now + seconds
        while True:
            due = [when for when in (self.client.next_timer(), self.server.next_timer()) if when is not None]
            if not due or min(due) > end:
                break
            self.now = max(self.now, min(due))
            self.client.handle_timer(self.now)
            self.server.handle_timer(self.now)
            self.drive()
        self.now = end

    def events(self, side: str, name: str) -> list[Any]:
        """Return a side's events of that class."""
        return [event for event in getattr(self, f"{side}_events") if type(event).__name__ == name]

    def items(self, side: str, stream_id: int) -> list[bytes]:
        """Return the data of all items that a side received on a stream, from single items and runs."""
        found: list[bytes] = []
        for event in getattr(self, f"{side}_events"):
            if event.stream_id != stream_id:
                continue
            if type(event).__name__ == "ItemReceived":
                found.append(event.payload.data)
            elif type(event).__name__ == "RunReceived":
                found += [payload.data for payload in event.run.payloads()]
        return found
