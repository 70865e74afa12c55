"""Two sessions, a client's and a server's, joined by a link that the test controls, with a clock of its own.

Nothing here touches a socket or waits. `drive` moves bytes until nothing moves any more; `cut` says how the
link cuts them. Every module of ours comes from the build that the test runs on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from typing import Any

from tests.builds import Build

Cut = Callable[[bytes], Iterable[bytes]]


def whole(data: bytes) -> Iterable[bytes]:
    """Bring the bytes as they were sent."""
    return [data] if data else []


def byte_by_byte(data: bytes) -> Iterable[bytes]:
    """Bring each byte alone."""
    return [data[at : at + 1] for at in range(len(data))]


def randomly(seed: int) -> Cut:
    """Bring pieces of random length."""
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
    """A client's session and a server's.

    Attributes:
        client, server: The sessions.
        server_dialect: What they speak, in the RSocket family.
        client_events, server_events: What they said, in order.
        client_sent, server_sent: The bytes that left each.
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
        settings = build.module("penstock.settings").Settings
        payload = build.module("penstock.payload").Payload
        ours, theirs = settings(**(client or {})), settings(**(server or {}))
        if dialect == "reactive-streams-0":
            session = build.module("penstock.reactivestreams.session").ReactiveStreamsSession
            self.client, self.server = session.client(ours, setup or payload()), session.server(theirs)
        else:
            session = build.module("penstock.rsocket.session").RSocketSession
            spoken = build.module("penstock.rsocket.dialect").DIALECTS[dialect]
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
        """Let time pass, with every timer that goes off in between."""
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
        """Return the events of that class which a side has seen."""
        return [event for event in getattr(self, f"{side}_events") if type(event).__name__ == name]

    def items(self, side: str, stream_id: int) -> list[bytes]:
        """Return the data of all items that a side received on a stream, single ones and runs alike."""
        found: list[bytes] = []
        for event in getattr(self, f"{side}_events"):
            if event.stream_id != stream_id:
                continue
            if type(event).__name__ == "ItemReceived":
                found.append(event.payload.data)
            elif type(event).__name__ == "RunReceived":
                found += [payload.data for payload in event.run.payloads()]
        return found
