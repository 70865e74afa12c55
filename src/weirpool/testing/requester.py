"""The client's end of a link, which requests streams in unusual ways."""

from __future__ import annotations

import os
import ssl as tls
from collections.abc import Callable, Iterable
from typing import Final, Self, TypeVar

from .. import transports
from ..errors import ProtocolError, SessionClosed
from ..events import Closed, Completed, Event, Failed, ItemReceived, RunReceived
from ..kinds import Kind
from ..payload import Payload
from ..protocols import client_session, spec_of
from ..session import Session
from ..settings import Settings
from ..transports import Link
from ..urls import parse_url
from .ends import RawEnd
from .results import Broken, Skipped

__all__ = ["ENDLESS", "FENCES", "GAPS", "UNKNOWN_ROUTE", "RawRequester", "RawStream"]

T = TypeVar("T")

ENDLESS: Final = 0x7FFF_FFFF
"""The maximum demand that all protocols support."""
GAPS: Final = 3
"""The silence of a stopped stream, in multiples of the longest gap between its items before."""
MANY_GAPS: Final = 8
"""Gaps between items, of which a single long one says nothing about the rhythm of a stream."""
FENCES: Final = 3
"""Round trips in which a publisher may break a rule."""
UNKNOWN_ROUTE: Final = "weirpool.testing.nobody"
"""A route that no server serves."""
TOKEN_BYTES: Final = 16
"""The random bytes that both sessions share."""


class RawStream:
    """A stream that a raw requester has opened.

    Attributes:
        over: It completed or failed.
        opening: The frames that opened it.
        last_at: When its last item arrived, or else when it was opened.

    """

    def __init__(self, end: RawRequester, stream_id: int, opening: list[bytes]) -> None:
        self._end = end
        self.stream_id = stream_id
        self.opening = opening
        self.items: list[Payload] = []
        self.over = False
        self.error: Exception | None = None
        self.last_at = end.loop.time()
        # The times between its opening, or items that arrived together, and the next items: how many, and the longest.
        self._gaps = 0
        self._longest = 0.0
        self._second_longest = 0.0

    @property
    def gap(self) -> float:
        """The longest time between two items; of many the second longest, as one may be a stall of this process."""
        return self._second_longest if self._gaps >= MANY_GAPS else self._longest

    def arrived(self, items: Iterable[Payload]) -> None:
        """Add items."""
        self.items += items
        now = self._end.loop.time()
        self._gaps += 1
        self._second_longest, self._longest = sorted((self._second_longest, self._longest, now - self.last_at))[1:]
        self.last_at = now

    def request(self, count: int) -> list[bytes]:
        """Return the frames that request `count` items, possibly 0. Raises Skipped if the protocol has no demand."""
        self._end.make(lambda session: session.request(self.stream_id, count or 1))
        frames = self._end.output()
        if not frames:
            raise Skipped("the protocol does not carry request(n)")
        if count == 0:
            # The count is the last field of this frame in all protocols that have it, and its last byte is now 1.
            frames[-1] = frames[-1][:-1] + b"\0"
        return frames

    def cancel(self) -> list[bytes]:
        """Return the frames that cancel it, without writing them."""
        return self._end.cancels([self])[0]

    def leave(self) -> None:
        """Cancel it. If the protocol numbers its messages, no other stream can be opened for both sessions."""
        try:
            frames = self.cancel()
        except Skipped:
            self._end.make(lambda session: session.cancel(self.stream_id))
            frames = self._end.output()
            self._end.diverge()
        self._end.write(frames)

    async def has(self, count: int) -> None:
        """Wait until `count` items have arrived. Raises Skipped if they arrive too slowly to wait for all."""
        what = "the publisher has not sent the item that was requested"
        if count != 1:
            what = f"the publisher has not sent {count} items that were requested"
        try:
            await self._end.until(lambda: len(self.items) >= count or self.over, what)
        except Broken:
            if self._end.open and self.items and self._end.loop.time() - self.last_at < GAPS * self.gap:
                raise Skipped(
                    f"its items arrive so slowly that only {len(self.items)} of {count} have arrived within "
                    f"{self._end.patience:g} s; set a greater patience"
                ) from None
            raise
        if len(self.items) < count:
            raise Broken(f"{what}: it ended after {len(self.items)} ({self.error or 'completed'})")

    async def ends(self) -> None:
        """Wait until it has ended."""
        await self._end.until(
            lambda: self.over, lambda: f"after {len(self.items)} items the publisher has not ended its stream"
        )


class RawRequester(RawEnd):
    """The client's end: ``async with RawRequester(url) as raw``.

    The connection counts as ended when the observer has ignored more than `strays` frames; 0: at no number.

    Attributes:
        max_request: The maximum number of items that one request may ask for.
        alike: Both sessions give a stream the same id.

    """

    def __init__(self, url: str, patience: float, strays: int = 0, ssl: tls.SSLContext | None = None) -> None:
        super().__init__(patience)
        self._url = parse_url(url)
        self._ssl = ssl
        self.max_request = spec_of(self._url.protocol).max_request
        self.alike = True
        self._streams: dict[int, RawStream] = {}
        self._token = os.urandom(TOKEN_BYTES)
        self._made: list[Callable[[Session], object]] = []
        self._strays = strays
        self.sender, self.observer = self._session(), self._session()

    def _session(self) -> Session:
        messages = transports.carries_messages(self._url)
        return client_session(self._url.protocol, Settings(), random=self._token, messages=messages)

    @property
    def ignored(self) -> int | None:
        """How many frames the observer has ignored; None if its protocol does not count them."""
        assert self.observer is not None
        return self.observer.ignored

    async def __aenter__(self) -> Self:
        await transports.connect(self._url, self, Settings(), self._ssl)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.abort()

    def link_made(self, link: Link) -> None:
        """Start both sessions, and remember this for a third one."""
        now = self.loop.time()
        self._made.append(lambda session: session.link_up(now))
        super().link_made(link)

    def received(self, data: bytes) -> None:
        """Pass the data to both sessions, and remember this for a third one."""
        now = self.loop.time()
        self._made.append(lambda session: session.receive(data, now))
        super().received(data)
        if 0 < self._strays < (self.ignored or 0) and self.error is None:
            self.error = ProtocolError(f"{self.ignored} frames arrived for streams that had ended")

    def make(self, verb: Callable[[Session], T]) -> T:
        """Call the sender, remember this for a third session, and return the result."""
        assert self.sender is not None
        result = verb(self.sender)
        self._made.append(verb)
        return result

    def cancels(self, streams: list[RawStream]) -> list[list[bytes]]:
        """Return the frames that cancel each of some streams.

        The sender must continue without them: a session may reuse the id of a stream that it canceled, and the observer
        would assign late frames to the new stream. Therefore a third session is brought to the sender's state. Raises
        Skipped if the frames cannot be omitted or repeated, because they are numbered.
        """
        encoder = self._session()
        for verb in self._made:
            verb(encoder)
        encoder.take_output()
        # River has no demand, and is the only protocol whose messages are numbered.
        encoder.request(streams[0].stream_id, 1)
        if not encoder.take_output():
            raise Skipped("the protocol does not carry request(n), and numbers its messages")
        frames = []
        for stream in streams:
            encoder.cancel(stream.stream_id)
            frames.append(encoder.take_output())
        return frames

    def prepared(self, route: str, data: bytes, credit: int) -> RawStream:
        """Open a stream without sending the request, which is its `opening`.

        The sender requests `credit` items, and the observer expects any number. Raises Broken if the connection is
        closed, or if the publisher violated the protocol and the sender ended a stream.
        """
        assert self.observer is not None
        payload = Payload(data)
        try:
            stream_id = self.make(lambda session: session.open(Kind.STREAM, route, payload, credit))
            opening = self.output()
            observed_id = self.observer.open(Kind.STREAM, route, payload, self.max_request)
        except SessionClosed as error:
            raise Broken(f"the connection ended ({self.error or error})") from None
        if observed_id != stream_id:
            self._check_violation()
            raise Skipped("the protocol gives two sessions in the same state different stream ids")
        stream = self._streams[stream_id] = RawStream(self, stream_id, opening)
        return stream

    def _check_violation(self) -> None:
        """Raise Broken if the sender, which expects only the requested items, has detected a violation."""
        for event in self.sender_events:
            if isinstance(event, Failed | Closed) and isinstance(event.error, ProtocolError):
                raise Broken(f"the publisher violated the protocol: {event.error}")

    def opened(self, route: str, data: bytes, credit: int) -> RawStream:
        """Open a stream, as `prepared` does, and write its opening."""
        stream = self.prepared(route, data, credit)
        self.write(stream.opening)
        return stream

    def diverge(self) -> None:
        """Let the observer count a message that it must not know of."""
        assert self.observer is not None
        self.alike = False
        self.observer.open(Kind.STREAM, UNKNOWN_ROUTE, Payload(), 1)
        self.observer.take_output()

    def on_event(self, event: Event) -> None:
        """Record items and ends."""
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        if isinstance(event, ItemReceived):
            stream.arrived((event.payload,))
            stream.over = stream.over or event.done
        elif isinstance(event, RunReceived):
            stream.arrived(event.run.payloads())
        elif isinstance(event, Completed):
            stream.over = True
        elif isinstance(event, Failed):
            stream.over = True
            stream.error = event.error

    async def fence(self) -> None:
        """Wait until the server has answered some other requests, and so had time to send everything else.

        Raises Broken if it does not answer, because the connection is no longer usable.
        """
        if not self.alike:
            await self.hidden_fence()
            return
        for _ in range(FENCES):
            stream = self.opened(UNKNOWN_ROUTE, b"", 1)
            await self.until(
                lambda stream=stream: stream.over or bool(stream.items),  # type: ignore[misc]
                "the server answers no other request on this connection",
            )
            if not stream.over:
                stream.leave()

    async def hidden_fence(self) -> None:
        """Do the same as `fence` without the observer, for which each answer is a stray frame.

        Afterwards no stream can be opened for both.
        """
        for _ in range(FENCES):
            stream_id = self.make(lambda session: session.open(Kind.STREAM, UNKNOWN_ROUTE, Payload(), 1))
            if not self.alike:
                self.diverge()
            self.write(self.output())
            await self.until(
                lambda id=stream_id: not self.open or any(each.stream_id == id for each in self.sender_events),  # type: ignore[misc]
                "the server answers no other request on this connection",
            )
