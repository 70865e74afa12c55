"""Links that are streams of a multiplexed connection: the common part of HTTP/2 and QUIC."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Any, Final, Generic, Protocol, TypeVar

from ..errors import LinkLost
from ..settings import Settings
from ..urls import Url
from .base import Accept, HangUp, Receiver, Refused
from .lingering import LINGER, Linger
from .reading import READ_BYTES

__all__ = ["LINGER", "WINDOW_BYTES", "Carrier", "Slot", "StreamLink", "StreamListener", "lose_all"]

C = TypeVar("C")

WINDOW_BYTES: Final = 1_048_576
"""The flow control window of a stream: 100 MB/s at a round trip of 10 ms. While reading is paused, at most this much is
buffered, and counted."""


class Carrier(Protocol):
    """The interface of a connection for its links."""

    @abstractmethod
    def send(self, link: StreamLink) -> None:
        """Send the output of `link`, then its end, as far as the peer and the network allow.

        Get the bytes from :meth:`StreamLink.take`, and call :meth:`StreamLink.end_sent` after the end is sent.
        """

    @abstractmethod
    def extend_window(self, link: StreamLink, count: int) -> None:
        """Allow the peer to send `count` more bytes."""

    @abstractmethod
    def ended(self, link: StreamLink) -> None:
        """Remove a stream whose halves have both ended in order; call :meth:`StreamLink.lose` now or later."""

    @abstractmethod
    def reset(self, link: StreamLink) -> None:
        """End both halves of a stream now; call :meth:`StreamLink.lose` soon."""

    @abstractmethod
    def waiting(self, link: StreamLink) -> int:
        """Return the bytes of output that the connection has taken from `link`, and holds."""

    @abstractmethod
    def progress(self, link: StreamLink) -> tuple[int, int]:
        """Return the bytes taken from `link` but not received by the peer, and a number that grows as it receives."""

    @abstractmethod
    def get_extra_info(self, name: str) -> Any:
        """Return information about the connection; see :class:`weirpool.transports.base.Link`."""


class StreamLink:
    """A link that is one stream. Writing is paused when more than `high_bytes` of output wait.

    Attributes:
        end_received: The peer has ended its half.

    """

    unfinished = 0

    def __init__(self, carrier: Carrier, stream_id: int, receiver: Receiver, high_bytes: int) -> None:
        self.receiver = receiver
        self.stream_id = stream_id
        self.end_received = False
        self._loop = asyncio.get_running_loop()
        self._carrier = carrier
        self._high_bytes = high_bytes
        self._output = bytearray()
        self._full = False
        self._unread = bytearray()
        self._reading_paused = False
        self._taken = 0
        self._closing: Linger | None = None
        self._end_sent = False
        self._lost = False

    # Calls of the receiver; see weirpool.transports.base.Link.

    def write(self, data: bytes) -> None:
        """Send `data`, or discard it if the link is closing."""
        if self._closing is not None or self._lost:
            return
        self._output += data
        self._carrier.send(self)
        if not self._full and len(self._output) > self._high_bytes:
            self._full = True
            self.receiver.writing_paused()

    def get_extra_info(self, name: str) -> Any:
        """Return information about the connection."""
        return self._carrier.get_extra_info(name)

    def is_closing(self) -> bool:
        """Return whether output is discarded."""
        return self._closing is not None or self._lost

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that wait for the peer's window, or for the socket."""
        return len(self._output) + self._carrier.waiting(self)

    def progress(self) -> tuple[int, int]:
        """See `Link.progress`."""
        waiting, taken = self._carrier.progress(self)
        return waiting + len(self._output), taken

    def pause_reading(self) -> None:
        """Stop calling `received`. The peer may send until its window is used up."""
        self._reading_paused = True

    def resume_reading(self) -> None:
        """Call `received` again."""
        self._reading_paused = False
        self._loop.call_soon(self._deliver)

    def close(self) -> None:
        """Close after all output is written. Input is discarded until the peer ends its half too."""
        if self._closing is None and not self._lost:
            self._closing = Linger(LINGER, self.progress, self.abort)
            if self._unread:
                self._extend_window(len(self._unread))
                self._unread.clear()
            self._carrier.send(self)

    def abort(self) -> None:
        """Close now and discard unwritten output."""
        if not self._lost:
            self._output.clear()
            self._unread.clear()
            self._carrier.reset(self)

    # Calls of the connection.

    @property
    def unread(self) -> int:
        """The bytes that were received while reading was paused."""
        return len(self._unread)

    @property
    def unsent(self) -> int:
        """The bytes of output that the connection has not taken."""
        return len(self._output)

    @property
    def ending(self) -> bool:
        """True if the next thing to send is the end of our half."""
        return self._closing is not None and not self._output and not self._end_sent and not self._lost

    @property
    def ended(self) -> bool:
        """True if both halves have ended in order."""
        return self._end_sent and self.end_received

    def take(self, limit: int) -> bytes:
        """Remove and return up to `limit` bytes of output, which the caller sends."""
        data = bytes(self._output[:limit])
        del self._output[:limit]
        if self._full and len(self._output) <= self._high_bytes // 4:
            # In a later turn, because new output must not overtake these bytes.
            self._loop.call_soon(self._resume_writing)
        return data

    def end_sent(self) -> None:
        """Record that the end of our half was sent."""
        self._end_sent = True
        if self.end_received:
            self._carrier.ended(self)

    def received(self, data: bytes, count: int) -> None:
        """Deliver or buffer `data`, which used `count` bytes of the peer's window."""
        if self._closing is not None or self._lost:
            self._extend_window(count)
        elif self._reading_paused or self._unread:
            self._unread += data
            # Padding takes no memory.
            self._extend_window(count - len(data))
            # It is counted.
            self.receiver.received(b"")
        else:
            self.receiver.received(data)
            self._extend_window(count)

    def peer_ended(self) -> None:
        """Record the end of the peer's half. Ours ends too, after all input is delivered and all output sent."""
        self.end_received = True
        if self._end_sent:
            self._carrier.ended(self)
        elif not self._unread and not self._reading_paused:
            self.close()

    def lose(self, error: Exception | None) -> None:
        """Schedule the receiver's `link_lost`, once."""
        if self._lost:
            return
        if self._unread and error is None:
            error = LinkLost("the peer ended the link while reading was paused; its last data is lost")
        self._lost = True
        if self._closing is not None:
            self._closing.cancel()
        self._output.clear()
        self._unread.clear()
        self._loop.call_soon(lambda: self.receiver.link_lost(error))

    def _resume_writing(self) -> None:
        if self._full and not self._lost and len(self._output) <= self._high_bytes // 4:
            self._full = False
            self.receiver.writing_resumed()

    def _deliver(self) -> None:
        """Deliver the data that was received while reading was paused."""
        while self._unread and not self._reading_paused:
            data = bytes(self._unread[:READ_BYTES])
            del self._unread[:READ_BYTES]
            self.receiver.received(data)
            self._extend_window(len(data))
        if self.end_received and not self._unread and not self._reading_paused:
            self.close()

    def _extend_window(self, count: int) -> None:
        """Extend the peer's window, in steps of half of it."""
        self._taken += count
        if self._taken >= WINDOW_BYTES // 2 and not self._lost and not self.end_received:
            taken = self._taken
            self._taken = 0
            self._carrier.extend_window(self, taken)


def lose_all(links: dict[int, StreamLink], error: Exception | None, *, in_order: bool = False) -> None:
    """Close all links with `error`, except those that have ended; with `in_order`, the peer's end is sufficient."""
    for link in links.values():
        whole = link.ended or (in_order and link.end_received and not link.unsent)
        link.lose(None if whole else error)
    links.clear()


class StreamListener(Generic[C]):
    """Accepts connections, and links on them. If `draining` is set, all new links are refused with it."""

    def __init__(self, url: Url, accept: Accept, settings: Settings) -> None:
        self.url = url
        self.accept = accept
        self.settings = settings
        self.connections: set[C] = set()
        self.draining: Refused | None = None


class Slot:
    """The accepted slot of a connection for its next link, so that limits also count connections without links.

    Attributes:
        address: The peer's address.
        shared: The peer is a proxy, and each link may have another client. No slot is reserved for it.
        receiver: The receiver of the next link; None if the slot is not reserved.
        refusal: The reason why the connection gets no links; None if it may have some.
        cut: Ends the connection while its socket is not ready.

    Args:
        listener: The listener of the connection.
        hang_up: Closes the connection, which has no links, for a reason; without one, because it was idle.

    """

    def __init__(self, listener: StreamListener[Any], hang_up: HangUp) -> None:
        self.address = ""
        self.shared = False
        self.receiver: Receiver | None = None
        self.refusal: Refused | None = None
        self.cut: HangUp | None = None
        self._listener = listener
        self._settings = listener.settings
        self._hang_up = hang_up
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def next_receiver(self, address: str) -> Receiver | Refused:
        """Return the receiver of the next link, whose client has `address`, or the reason why it is refused."""
        listener = self._listener
        return listener.draining or self.receiver or self.refusal or listener.accept(address, self.evict)

    def reserve(self) -> None:
        """Reserve the slot for the next link, which must be opened within `connect_timeout`."""
        self.cut = None
        if self.refusal is None and not self.shared:
            receiver = self.next_receiver(self.address)
            if isinstance(receiver, Refused):
                self._hang_up(receiver.reason)
                return
            self.receiver = receiver
        if self._timer is None:
            self._timer = self._loop.call_later(self._settings.connect_timeout, self._hang_up, "")

    def evict(self, reason: str) -> None:
        """Give up the slot, which another connection gets; without a link, the connection is closed."""
        self.receiver = None
        if self._timer is not None:
            self._hang_up(reason)
        elif self.cut is not None:
            self.cut(reason)

    def release(self) -> None:
        """Release the slot, because its link is open."""
        self.receiver = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def lose(self, error: Exception | None) -> None:
        """Release the slot, and report the loss to the receiver of the next link."""
        receiver = self.receiver
        self.release()
        if receiver is not None:
            receiver.link_lost(error)
