"""A server that keeps all rules except for selected faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from penstock import ApplicationError, Payload, Settings
from penstock.events import Canceled, CreditGranted, Failed, Requested
from penstock.protocols import detectors
from penstock.testing import Published
from penstock.testing.requester import ENDLESS
from penstock.transports import Link, listen
from penstock.urls import parse_url

COUNT = 6
STREAMS = 20
PROMPT = 0.05
"""Seconds to wait for events that never happen."""


@dataclass
class Sending:
    """A stream that is served."""

    route: str
    credit: int
    total: int
    sent: int = 0
    grants: int = 0
    over: bool = False
    last: list[bytes] = field(default_factory=list)
    """The frames of its last item."""


class FaultyServer:
    """One connection's server.

    Args:
        protocol: What it speaks.
        faults: The rules that it breaks.

    """

    def __init__(self, protocol: str, faults: frozenset[str]) -> None:
        self.faults = faults
        self.loop = asyncio.get_running_loop()
        self.acceptor = detectors(protocol, Settings(max_stray_frames=0))()
        self.session = None
        self.streams: dict[int, Sending] = {}
        self.lost = False

    def link_made(self, link: Link) -> None:
        self.link = link
        self.acceptor.link_up(self.loop.time())

    def received(self, data: bytes) -> None:
        now = self.loop.time()
        if self.session is None:
            self.session = self.acceptor.receive(data, now)
        else:
            self.session.receive(data, now)
        if self.session is None:
            return
        events = self.session.take_events()
        if not ("3.9" in self.faults and any(isinstance(event, Failed) for event in events)):
            self.write(self.session.take_output())
        self.session.take_output()
        if not events:
            self.ignored()
        for event in events:
            self.take(event)

    def writing_paused(self) -> None: ...

    def writing_resumed(self) -> None: ...

    def link_lost(self, error: Exception | None) -> None:
        self.lost = True

    def write(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.link.write(frame)

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
            if self.faults & {"1.8", "3.12"}:
                self.go_on(event.stream_id)

    def begin(self, stream_id: int, route: str) -> None:
        leaks = "3.13" in self.faults and len(self.streams) > STREAMS
        if route in ("faulty.finite", "faulty.endless", "faulty.failing") and not leaks:
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
        else:
            self.step(stream_id)
            if "1.11" in self.faults:
                for each in self.streams.values():
                    self.write(each.last)

    def step(self, stream_id: int) -> None:
        """Send as much as the demand allows."""
        sending = self.streams[stream_id]
        limit = (
            2
            if sending.route == "faulty.failing"
            else COUNT
            if sending.route == "faulty.finite"
            else sending.sent + 100
        )
        while sending.credit > 0 and sending.sent < limit and not sending.over:
            mark = b"!" if "1.3" in self.faults and sending.grants else b""
            self.session.send(stream_id, Payload(b"%d" % sending.sent + mark))
            sending.last = self.session.take_output()
            self.write(sending.last)
            sending.sent += 1
            sending.credit -= 1
        if "1.1" in self.faults and sending.credit == 0:
            self.write(sending.last)
        if sending.sent == limit and sending.route != "faulty.endless" and not sending.over:
            self.end(stream_id, sending)

    def end(self, stream_id: int, sending: Sending) -> None:
        if ("1.2" in self.faults and sending.credit > 0) or ("1.5" in self.faults and sending.credit == 0):
            return
        if sending.route == "faulty.failing" and "1.4" not in self.faults:
            self.fail(stream_id)
        else:
            self.session.complete(stream_id)
        self.write(self.session.take_output())
        sending.over = True
        if "1.7" in self.faults:
            self.write(sending.last)

    def fail(self, stream_id: int) -> None:
        self.streams[stream_id].over = True
        self.session.fail(stream_id, ApplicationError(message="no"))
        self.write(self.session.take_output())

    def ignored(self) -> None:
        """Handle frames that are invalid in this state."""
        if "3.7" in self.faults:
            self.link.abort()
        elif self.faults & {"1.6", "1.10", "3.6"}:
            for each in self.streams.values():
                self.write(each.last)

    def go_on(self, stream_id: int) -> None:
        """Send the last item in each turn of the loop."""
        if not self.lost:
            self.write(self.streams[stream_id].last)
            self.loop.call_soon(self.go_on, stream_id)


@asynccontextmanager
async def faulty(protocol: str, *faults: str) -> AsyncIterator[Published]:
    """Serve with faults; yield the published streams."""
    url = parse_url(f"{protocol}+memory://faulty")
    listener = await listen(url, lambda address: FaultyServer(protocol, frozenset(faults)), Settings())
    try:
        yield Published(
            url=str(url),
            finite=("faulty.finite", b""),
            count=COUNT,
            failing=("faulty.failing", b""),
            endless=("faulty.endless", b""),
            streams=STREAMS,
            patience=PROMPT,
        )
    finally:
        await listener.close()
