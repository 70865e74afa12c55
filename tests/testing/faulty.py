"""A server that keeps all rules except for selected faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.testing.numbered import deaf
from weirpool import ApplicationError, Payload, Settings
from weirpool.events import Canceled, CreditGranted, Failed, Requested
from weirpool.kinds import Kind
from weirpool.protocols import detectors
from weirpool.testing import Published
from weirpool.testing.requester import ENDLESS
from weirpool.transports import Link, listen
from weirpool.urls import parse_url

SERVED = ("faulty.finite", "faulty.endless", "faulty.failing", "faulty.empty")
COUNT = 6
STREAMS = 20
PROMPT = 0.3
"""Seconds to wait for events that never happen."""
SETTLE = 0.01
"""Seconds of silence after which a stream counts as stopped."""
LATE = 0.005
"""Seconds after which a late item is sent."""
BURST = 20
"""Items of an endless stream in each turn of the loop."""


@dataclass
class Sending:
    """A stream that is served."""

    route: str
    credit: int
    total: int
    sent: int = 0
    grants: int = 0
    over: bool = False
    waits: bool = False
    last: list[bytes] = field(default_factory=list)
    """The frames of its last item."""


class FaultyServer:
    """One connection's server.

    Args:
        protocol: What it speaks.
        faults: The rules that it breaks, or names of other faults.
        interval: Seconds between the bursts of an endless stream.
        burst: The number of items in each of them.

    """

    def __init__(self, protocol: str, faults: frozenset[str], interval: float = 0.001, burst: int = BURST) -> None:
        self.faults = faults
        self.protocol = protocol
        self.numbered = protocol == "river"
        self.interval = interval
        self.burst = burst
        self.written: list[bytes] = []
        # What was written in response to each request, by the request.
        self.responses: dict[bytes, list[bytes]] = {}
        self.loop = asyncio.get_running_loop()
        self.acceptor = detectors(protocol, Settings())()
        self.session = None
        self.streams: dict[int, Sending] = {}
        self.lost = False

    def link_made(self, link: Link) -> None:
        self.link = link
        self.acceptor.link_up(self.loop.time())

    def received(self, data: bytes) -> None:
        self.written = []
        if self.numbered and self.faults & {"1.8", "3.12", "ignores cancel"}:
            data = deaf(data)
        if "1.10" in self.faults and data in self.responses:
            self.write(self.responses[data])
            return
        now = self.loop.time()
        if self.session is None:
            self.session = self.acceptor.receive(data, now)
            if self.session is not None:
                # River's requests do not tell their kind.
                self.session.ask_kinds(lambda route: Kind.STREAM)
        else:
            self.session.receive(data, now)
        if self.session is None:
            return
        events = self.session.take_events()
        output = self.session.take_output()
        if not ("3.9" in self.faults and any(isinstance(event, Failed) for event in events)):
            self.respond(output, events)
        if not events:
            self.ignored()
        for event in events:
            self.take(event)
        if any(isinstance(event, Requested) for event in events):
            self.responses[data] = self.written

    def respond(self, output: list[bytes], events: list[object]) -> None:
        """Write what the session itself answers: errors, and the confirmation of a subscription."""
        self.write(output)

    def writing_paused(self) -> None: ...

    def writing_resumed(self) -> None: ...

    def link_lost(self, error: Exception | None) -> None:
        self.lost = True

    def write(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.link.write(frame)
            self.written.append(frame)

    def take(self, event: object) -> None:
        if isinstance(event, Requested):
            self.streams[event.stream_id] = Sending(event.route, event.credit, event.credit)
            self.begin(event.stream_id, event.route)
        elif isinstance(event, CreditGranted):
            sending = self.streams[event.stream_id]
            if "3.8" in self.faults and sending.grants:
                return
            sending.credit += event.count
            sending.total += event.count
            sending.grants += 1
            self.granted(event.stream_id, sending)
        elif isinstance(event, Canceled):
            self.streams[event.stream_id].over = True
            self.cancel(event.stream_id)
            if self.faults & {"1.8", "3.12"}:
                self.go_on(event.stream_id)
            elif "ignores cancel" in self.faults:
                self.schedule(event.stream_id)

    def cancel(self, stream_id: int) -> None:
        """Do more for a canceled stream."""

    def begin(self, stream_id: int, route: str) -> None:
        leaks = "3.13" in self.faults and len(self.streams) > STREAMS
        if route in SERVED and not leaks:
            self.step(stream_id)
        elif "1.9" in self.faults:
            self.session.complete(stream_id)
            self.write(self.session.take_output())
        else:
            self.fail(stream_id)

    def granted(self, stream_id: int, sending: Sending) -> None:
        if "3.16" in self.faults and sending.grants > 100:
            self.link.abort()
        elif "3.17" in self.faults and sending.total > ENDLESS:
            self.fail(stream_id)
        elif "stalls" in self.faults and sending.total > ENDLESS:
            sending.credit = 0
        else:
            self.step(stream_id)
            if "1.11" in self.faults:
                for each in self.streams.values():
                    self.write(each.last)

    def step(self, stream_id: int) -> None:
        """Send as much as the demand allows, at most a burst of an endless stream."""
        sending = self.streams[stream_id]
        endless = sending.route == "faulty.endless"
        limit = {"faulty.finite": COUNT, "faulty.failing": 2, "faulty.empty": 0}.get(
            sending.route, sending.sent + self.burst
        )
        while sending.credit > 0 and sending.sent < limit and not sending.over:
            self.session.send(stream_id, self.item(sending))
            sending.last = self.session.take_output()
            self.write(sending.last)
            sending.sent += 1
            sending.credit -= 1
        if "1.1" in self.faults and sending.credit == 0:
            self.write(sending.last)
        if endless:
            self.schedule(stream_id)
        elif sending.sent == limit and not sending.over:
            self.end(stream_id, sending)

    def item(self, sending: Sending) -> Payload:
        """Return the next item."""
        return Payload(b"%d" % sending.sent + (b"!" if "1.3" in self.faults and sending.grants else b""))

    def schedule(self, stream_id: int) -> None:
        """Send the next burst after the interval, if there is demand."""
        sending = self.streams[stream_id]
        if self.numbered and not sending.over:
            # Acknowledgments give credit, without an event.
            sending.credit = self.session.credit(stream_id)
        if (self.numbered or sending.credit > 0) and not sending.waits and not self.lost:
            sending.waits = True
            self.loop.call_later(self.interval, self.next_burst, stream_id)

    def next_burst(self, stream_id: int) -> None:
        sending = self.streams[stream_id]
        sending.waits = False
        if not sending.over:
            self.step(stream_id)
        elif "ignores cancel" in self.faults:
            # The session sends no more on this stream.
            count = min(self.burst, sending.credit)
            self.write(sending.last * count)
            sending.credit -= count
            self.schedule(stream_id)

    def end(self, stream_id: int, sending: Sending) -> None:
        if ("1.2" in self.faults and sending.credit > 0) or ("1.5" in self.faults and sending.credit == 0):
            return
        if "1.5 empty" in self.faults and sending.route == "faulty.empty":
            return
        if sending.route == "faulty.failing" and "1.4" not in self.faults:
            self.fail(stream_id)
        else:
            self.session.complete(stream_id)
        self.write(self.session.take_output())
        sending.over = True
        if "1.7" in self.faults:
            self.write(sending.last)
        if "late item" in self.faults:
            self.loop.call_later(LATE, self.write, sending.last)

    def fail(self, stream_id: int) -> None:
        stream = self.streams[stream_id]
        stream.over = True
        text = "no" if stream.route in SERVED else f"no stream is named {stream.route}"
        self.session.fail(stream_id, ApplicationError(message=text))
        self.write(self.session.take_output())

    def ignored(self) -> None:
        """Handle frames that are invalid in this state."""
        if "3.7" in self.faults:
            self.link.abort()
        elif self.faults & {"1.6", "3.6"}:
            for each in self.streams.values():
                self.write(each.last)
        elif "ignores cancel" in self.faults:
            for stream_id, each in self.streams.items():
                each.credit += 2 if each.over and each.sent else 0
                self.schedule(stream_id)

    def go_on(self, stream_id: int) -> None:
        """Send the last item in each turn of the loop."""
        if not self.lost:
            self.write(self.streams[stream_id].last)
            self.loop.call_soon(self.go_on, stream_id)


@asynccontextmanager
async def faulty(
    protocol: str,
    *faults: str,
    interval: float = 0.001,
    burst: int = BURST,
    make: type[FaultyServer] = FaultyServer,
    place: str = "memory://faulty",
) -> AsyncIterator[Published]:
    """Serve with faults; yield the published streams."""
    url = parse_url(f"{protocol}+{place}")
    listener = await listen(url, lambda *_: make(protocol, frozenset(faults), interval, burst), Settings())
    try:
        yield Published(
            url=str(listener.url),
            finite=("faulty.finite", b""),
            count=COUNT,
            failing=("faulty.failing", b""),
            endless=("faulty.endless", b""),
            empty=("faulty.empty", b""),
            streams=STREAMS,
            patience=PROMPT,
            settle=SETTLE,
        )
    finally:
        await listener.close()
