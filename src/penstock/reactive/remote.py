"""Streams of a peer as publishers."""

from __future__ import annotations

from typing import Final

from ..aio.peer import Peer, RequestMetadata
from ..aio.streams import Stream
from ..payload import Payload
from .interfaces import Publisher, Subscriber, check_subscriber
from .subscriptions import TaskSubscription

__all__ = ["publisher_of"]

MOST: Final = 0x7FFF_FFFF
"""Demand that a wire can carry at once: RSocket 1.0, REQUEST_N Frame. What is beyond it is said later."""


def publisher_of(
    peer: Peer,
    route: str,
    data: bytes | str | Payload = b"",
    *,
    metadata: RequestMetadata = None,
    endless: bool = False,
) -> Publisher[Payload]:
    """Return a publisher of what a peer streams. The demand of a subscriber is the demand on the wire.

    Each subscription is a stream of its own. It is opened by the first request, with that as its initial demand;
    before, nothing is sent, and so no end is learned.

    Args:
        peer: Who is asked.
        route: The handler.
        data: The request.
        metadata: Metadata of the request, unless `data` has its own.
        endless: See :meth:`penstock.Peer.stream`.

    """
    return _Remote(peer, route, data, metadata, endless)


class _Remote:
    def __init__(
        self,
        peer: Peer,
        route: str,
        data: bytes | str | Payload,
        metadata: RequestMetadata,
        endless: bool,
    ) -> None:
        self._peer = peer
        self._route = route
        self._data = data
        self._metadata = metadata
        self._endless = endless

    def subscribe(self, subscriber: Subscriber[Payload]) -> None:
        """Open a stream for `subscriber` when it requests items."""
        check_subscriber(subscriber)
        _Receiving(subscriber, self).begin()

    def stream(self, credit: int) -> Stream:
        """Return the stream of one subscription."""
        return self._peer.stream(
            self._route, self._data, metadata=self._metadata, credit=credit, manual=True, endless=self._endless
        )


class _Receiving(TaskSubscription[Payload]):
    """One subscription: `demand` is what was requested, of which `_wired` is said to the peer."""

    def __init__(self, subscriber: Subscriber[Payload], remote: _Remote) -> None:
        super().__init__(subscriber)
        self._remote = remote
        self._stream: Stream | None = None
        self._wired = 0

    def requested(self) -> None:
        """Say so to the peer, once the stream is open and as far as the wire can."""
        stream = self._stream
        count = min(self.demand, MOST) - self._wired
        if stream is not None and count > 0:
            self._wired += count
            stream.grant(count)

    async def send(self) -> None:
        """Hand on what the peer sends."""
        await self.demanded()
        self._wired = min(self.demand, MOST)
        async with self._remote.stream(self._wired) as stream:
            self._stream = stream
            self.requested()
            async for payload in stream:
                self._wired -= 1
                if not self.give(payload):
                    break
                if self.demand > MOST and self._wired <= MOST // 2:
                    self.requested()
