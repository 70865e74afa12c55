"""The server's end of a link, which publishes one stream in unusual ways."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final, Self

from .. import transports
from ..errors import ProtocolError
from ..events import Canceled, CreditGranted, Event, Requested
from ..kinds import Kind
from ..payload import Payload
from ..protocols import client_session, detectors
from ..session import Detector
from ..settings import Settings
from ..transports import HangUp, Link, Listener, Refused
from ..urls import parse_url
from .ends import RawEnd
from .results import Skipped

__all__ = ["RawPublisher"]

TOKEN_BYTES: Final = 16
"""The random bytes of a client's session."""
SETTLING_TURNS: Final = 30
"""Turns of the loop in which a subscriber of this process may break a rule."""


class RawPublisher(RawEnd):
    """The server's end, for one connection and the first stream requested on it.

    Attributes:
        streams: The requests on the connection.
        granted: The numbers of items requested for the first of these, one per request.
        connections: The number of connections; only the first is accepted.

    """

    def __init__(self, url: str, patience: float) -> None:
        super().__init__(patience)
        self._url = parse_url(url)
        self._listener: Listener | None = None
        self._detectors: list[Detector] = []
        self.streams: list[Requested] = []
        self.granted: list[int] = []
        self._canceled = False
        self.connections = 0

    async def __aenter__(self) -> Self:
        settings = Settings(resume_timeout=0)
        # Detectors of one server share its sessions: the second would take over the session of the first.
        self._detectors = [detectors(self._url.protocol, settings)() for _ in range(2)]
        self._listener = await transports.listen(self._url, self._accept, settings)
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._listener is not None:
            await self._listener.close()
        self.abort()

    @property
    def url(self) -> str:
        """The URL with the actual port."""
        assert self._listener is not None
        return str(self._listener.url)

    @property
    def stream_id(self) -> int:
        """The requested stream."""
        return self.streams[0].stream_id

    @property
    def canceled(self) -> bool:
        """True if the stream was canceled.

        If messages are numbered and acknowledged, only the sender can detect this, because the observer has sent
        nothing that a subscriber could acknowledge.
        """
        canceled = (event.stream_id for event in self.sender_events if isinstance(event, Canceled))
        return self._canceled or (bool(self.streams) and self.stream_id in canceled)

    def _accept(self, address: str, hang_up: HangUp | None) -> RawPublisher | Refused:
        # Only one connection is checked.
        self.connections += 1
        return self if self.connections == 1 else Refused("only one connection is checked")

    def link_made(self, link: Link) -> None:
        """Start the detectors."""
        super().link_made(link)
        for each in self._detectors:
            each.link_up(self.loop.time())

    def received(self, data: bytes) -> None:
        """Detect the protocol, then pass the data to both sessions."""
        if self.sender is not None:
            super().received(data)
            return
        try:
            self.sender, self.observer = (each.receive(data, self.loop.time()) for each in self._detectors)
        except ProtocolError as error:
            self.error = error
        for session in self._sessions():
            session.ask_kinds(lambda route: Kind.STREAM)
        self._after()
        self._changed.set()

    def on_event(self, event: Event) -> None:
        """Record requests, demand and cancels. Closing the connection is not a cancel."""
        if isinstance(event, Requested):
            self.streams.append(event)
            self.granted.append(event.credit)
        elif not self.streams or event.stream_id != self.stream_id:
            return
        elif isinstance(event, CreditGranted):
            self.granted.append(event.count)
        elif isinstance(event, Canceled):
            self._canceled = True

    async def subscribed(self) -> None:
        """Wait for a request of a stream. Raises Skipped if the protocol does not distinguish a stream."""
        await self.until(lambda: bool(self.streams), "the subscriber has not requested a stream")
        if self.streams[0].kind is not Kind.STREAM:
            raise Skipped("the protocol does not distinguish a stream from other requests; that needs a service")

    async def settle(self) -> None:
        """Give the subscriber time to send everything else."""
        for _ in range(SETTLING_TURNS):
            await asyncio.sleep(0)

    def acceptance(self) -> list[bytes]:
        """Return the frames that accept the first request of a connection, made by sessions of their own.

        Raises Skipped if the protocol has none: a stream begins with its first item.
        """
        start: dict[str, Any] = {"messages": transports.carries_messages(self._url), "options": self._url.options}
        client = client_session(self._url.protocol, Settings(), random=os.urandom(TOKEN_BYTES), **start)
        detector = detectors(self._url.protocol, Settings(resume_timeout=0), **start)()
        now = self.loop.time()
        client.link_up(now)
        detector.link_up(now)
        server = detector.receive(b"".join(client.take_output()), now)
        assert server is not None
        client.receive(b"".join(server.take_output()), now)
        server.receive(b"".join(client.take_output()), now)
        server.take_output()
        client.open(Kind.STREAM, self.streams[0].route, Payload(), 1)
        server.receive(b"".join(client.take_output()), now)
        frames = server.take_output()
        if not frames:
            raise Skipped("the protocol does not confirm a subscription, so it cannot do so twice")
        return frames

    def send(self, item: Payload) -> list[bytes]:
        """Return the frames of an item, for which there must be demand."""
        assert self.sender is not None
        self.sender.send(self.stream_id, item)
        return self.output()

    def complete(self) -> list[bytes]:
        """Return the frames that complete the stream."""
        assert self.sender is not None
        self.sender.complete(self.stream_id)
        return self.output()

    def fail(self, error: Exception) -> list[bytes]:
        """Return the frames that fail the stream."""
        assert self.sender is not None
        self.sender.fail(self.stream_id, error)
        return self.output()

    def demand(self) -> int:
        """Return how many items may be sent now."""
        assert self.sender is not None
        return self.sender.credit(self.stream_id)
