"""Links that are streams of a connection which carries several: what HTTP/2 and QUIC have in common."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from ..core.rates import Rate
from ..errors import LinkLost
from ..settings import Settings
from ..urls import Url
from .base import Accept, Receiver, Refused
from .lingering import LINGER, Linger

__all__ = ["LINGER", "RATE_SECONDS", "WINDOW_BYTES", "Carrier", "Place", "StreamLink", "StreamListener", "lose_all"]

C = TypeVar("C")

WINDOW_BYTES: Final = 1_048_576
"""What a peer may send on one stream before it was taken: 100 MB/s at a round trip of 10 ms. A reader that is paused
holds as much in memory, and no more."""
RATE_SECONDS: Final = 30.0
"""Over how many seconds floods are counted, as in the session."""
BRIEF_SECONDS: Final = 1.0
"""A stream that ends so soon counts as a rapid reset, whoever ends it."""


class Carrier(Protocol):
    """The connection, as its links see it."""

    @abstractmethod
    def send(self, link: StreamLink) -> None:
        """Send what waits in `link`, then its end, as far as the peer and the network let us.

        The bytes come from :meth:`StreamLink.take`; :meth:`StreamLink.end_sent` tells that the end is sent.
        """

    @abstractmethod
    def allow(self, link: StreamLink, count: int) -> None:
        """Let the peer send `count` bytes more, because as many were taken."""

    @abstractmethod
    def ended(self, link: StreamLink) -> None:
        """Forget a stream that has ended in order, both ways; :meth:`StreamLink.lose` follows, at once or later."""

    @abstractmethod
    def reset(self, link: StreamLink) -> None:
        """End a stream now, both ways; :meth:`StreamLink.lose` follows soon."""

    @abstractmethod
    def progress(self, link: StreamLink) -> tuple[int, int]:
        """Return what waits of what was taken from `link`, and a number that grows as the peer's system takes it."""

    @abstractmethod
    def get_extra_info(self, name: str) -> Any:
        """Return what is known of the connection; see :class:`penstock.transports.base.Link`."""


class StreamLink:
    """A link that is one stream. Its receiver is told to pause when more than `high_bytes` of output wait.

    Attributes:
        made_at: When it was made, by the clock of the event loop.
        end_rcvd: The peer has ended its half.

    """

    def __init__(self, carrier: Carrier, stream_id: int, receiver: Receiver, high_bytes: int) -> None:
        self.receiver = receiver
        self.stream_id = stream_id
        self.end_rcvd = False
        self._loop = asyncio.get_running_loop()
        self.made_at = self._loop.time()
        self._carrier = carrier
        self._high_bytes = high_bytes
        self._output = bytearray()
        self._full = False
        self._held: deque[tuple[bytes, int]] = deque()
        self._reading_paused = False
        self._taken = 0
        self._closing: Linger | None = None
        self._end_sent = False
        self._lost = False

    # What the receiver does; see penstock.transports.base.Link.

    def write(self, data: bytes) -> None:
        """Send `data`; what is written to a link that is closing is dropped."""
        if self._closing is not None or self._lost:
            return
        self._output += data
        self._carrier.send(self)
        if not self._full and len(self._output) > self._high_bytes:
            self._full = True
            self.receiver.writing_paused()

    def get_extra_info(self, name: str) -> Any:
        """Return what is known of the connection."""
        return self._carrier.get_extra_info(name)

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait for the peer's window, or for the socket."""
        return len(self._output)

    def progress(self) -> tuple[int, int]:
        """Return what waits, and a number that grows as the peer's system takes it; see `Link.progress`."""
        waiting, taken = self._carrier.progress(self)
        return waiting + len(self._output), taken

    def pause_reading(self) -> None:
        """Call `received` no more. The peer goes on until its window is used up."""
        self._reading_paused = True

    def resume_reading(self) -> None:
        """Call `received` again."""
        self._reading_paused = False
        self._loop.call_soon(self._deliver)

    def close(self) -> None:
        """Close once everything is written. What still comes in is dropped until the peer ends its half, too."""
        if self._closing is None and not self._lost:
            self._closing = Linger(LINGER, self.progress, self.abort)
            while self._held:
                self._allow(self._held.popleft()[1])
            self._carrier.send(self)

    def abort(self) -> None:
        """Close now and forget what is not written."""
        if not self._lost:
            self._output.clear()
            self._held.clear()
            self._carrier.reset(self)

    # What the connection tells.

    @property
    def ending(self) -> bool:
        """Whether the end is what is to be sent next."""
        return self._closing is not None and not self._output and not self._end_sent and not self._lost

    @property
    def over(self) -> bool:
        """Whether both halves have ended in order."""
        return self._end_sent and self.end_rcvd

    def take(self, limit: int) -> bytes:
        """Return the next `limit` bytes of output, or what there is, which are sent now."""
        data = bytes(self._output[:limit])
        del self._output[:limit]
        if self._full and len(self._output) <= self._high_bytes // 4:
            # Not at once, or what is written then would overtake what was taken here.
            self._loop.call_soon(self._resume_writing)
        return data

    def end_sent(self) -> None:
        """Take note that our half has ended."""
        self._end_sent = True
        if self.end_rcvd:
            self._carrier.ended(self)

    def received(self, data: bytes, count: int) -> None:
        """Take what came in, which used `count` bytes of the peer's window."""
        if self._closing is not None or self._lost:
            self._allow(count)
        elif self._reading_paused or self._held:
            self._held.append((data, count))
        else:
            self.receiver.received(data)
            self._allow(count)

    def peer_ended(self) -> None:
        """Take the end of the peer's half: ours ends, too, when all that came in is delivered and all output sent."""
        self.end_rcvd = True
        if self._end_sent:
            self._carrier.ended(self)
        elif not self._held and not self._reading_paused:
            self.close()

    def lose(self, error: Exception | None) -> None:
        """Tell the receiver, soon and once, that the link is gone."""
        if self._lost:
            return
        if self._held and error is None:
            error = LinkLost("the peer ended the link while reading was paused; what it sent last is lost")
        self._lost = True
        if self._closing is not None:
            self._closing.cancel()
        self._output.clear()
        self._held.clear()
        self._loop.call_soon(lambda: self.receiver.link_lost(error))

    def _resume_writing(self) -> None:
        if self._full and not self._lost and len(self._output) <= self._high_bytes // 4:
            self._full = False
            self.receiver.writing_resumed()

    def _deliver(self) -> None:
        """Hand on what came in while reading was paused."""
        while self._held and not self._reading_paused:
            data, count = self._held.popleft()
            self.receiver.received(data)
            self._allow(count)
        if self.end_rcvd and not self._held and not self._reading_paused:
            self.close()

    def _allow(self, count: int) -> None:
        """Open the peer's window again, in steps of half of it."""
        self._taken += count
        if self._taken >= WINDOW_BYTES // 2 and not self._lost and not self.end_rcvd:
            taken = self._taken
            self._taken = 0
            self._carrier.allow(self, taken)


def lose_all(links: dict[int, StreamLink], error: Exception | None, *, in_order: bool = False) -> None:
    """Tell all links that they are gone; with `in_order`, those that the peer has ended were not broken."""
    for link in links.values():
        whole = link.over or (in_order and link.end_rcvd and not link.get_write_buffer_size())
        link.lose(None if whole else error)
    links.clear()


class StreamListener(Generic[C]):
    """Accepts connections, and links on them, unless `draining` says why no more are taken."""

    def __init__(self, url: Url, accept: Accept, settings: Settings) -> None:
        self.url = url
        self.accept = accept
        self.settings = settings
        self.connections: set[C] = set()
        self.draining: Refused | None = None


class Place:
    """What a connection that came in holds as long as it has no link, so that connections without streams count, too.

    Attributes:
        address: The peer's.
        receiver: Whose the next link will be.
        refusal: Why there will be none; None: there may be.

    """

    def __init__(self, listener: StreamListener[Any], hang_up: Callable[[], None]) -> None:
        self.address = ""
        self.receiver: Receiver | None = None
        self.refusal: Refused | None = None
        self._listener = listener
        self._settings = listener.settings
        self._hang_up = hang_up
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._brief = Rate(self._settings.max_rapid_resets, RATE_SECONDS)

    def take(self) -> Receiver | Refused:
        """Return whose the next link is, or why there is none."""
        return self._listener.draining or self.receiver or self.refusal or self._listener.accept(self.address)

    def wait(self) -> None:
        """Hold a place for the next link, for as long as a connection may take to open one."""
        if self.refusal is None:
            receiver = self.take()
            if isinstance(receiver, Refused):
                self._hang_up()
                return
            self.receiver = receiver
        if self._timer is None:
            self._timer = self._loop.call_later(self._settings.connect_timeout, self._hang_up)

    def leave(self) -> None:
        """Wait no more: there is a link."""
        self.receiver = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def lose(self, error: Exception | None) -> None:
        """Tell who waited that there will be no link."""
        receiver = self.receiver
        self.leave()
        if receiver is not None:
            receiver.link_lost(error)

    def flood(self, made_at: float) -> str:
        """Count a stream that has ended and was made at `made_at`; return why that is one too many, or nothing."""
        now = self._loop.time()
        if now - made_at < BRIEF_SECONDS and self._brief.hit(now):
            limit = self._settings.max_rapid_resets
            return f"more than max_rapid_resets ({limit}) streams ended as soon as they were opened"
        return ""
