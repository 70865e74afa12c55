"""Publishers of a peer's streams."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from ..aio.peer import Peer, RequestMetadata
from ..aio.streams import Stream
from ..payload import Payload
from .interfaces import Publisher, Starting, Subscriber
from .subscriptions import TaskSubscription

__all__ = ["publisher_of"]

MOST: Final = 0x7FFF_FFFF
"""The maximum demand of one request: RSocket 1.0, REQUEST_N Frame. The rest is requested later."""


def publisher_of(
    peer: Peer,
    route: str,
    data: bytes | str | Payload = b"",
    *,
    metadata: RequestMetadata = None,
    endless: bool = False,
) -> Publisher[Payload]:
    """Return a publisher of a peer's stream. The demand of a subscriber is the demand on the wire.

    Each subscription is a separate stream. Its first request opens it, with that as the initial demand. Nothing is sent
    before it, so the end of the stream is unknown until then.

    Args:
        peer: The peer.
        route: The handler.
        data: The request.
        metadata: Metadata of the request, unless `data` includes its own.
        endless: See :meth:`weirpool.Peer.stream`.

    """
    open_stream = partial(peer.stream, route, data, metadata=metadata, manual=True, endless=endless)
    return Starting(lambda subscriber: _Receiving(subscriber, open_stream).begin())


class _Receiving(TaskSubscription[Payload]):
    """One subscription: `demand` is the total requested, `_wired` is the part sent to the peer."""

    def __init__(self, subscriber: Subscriber[Payload], open_stream: Callable[..., Stream]) -> None:
        super().__init__(subscriber)
        self._open_stream = open_stream
        self._stream: Stream | None = None
        self._wired = 0

    def requested(self) -> None:
        """Send the new demand to the peer, once the stream is open, up to the wire's maximum."""
        stream = self._stream
        count = min(self.demand, MOST) - self._wired
        if stream is not None and count > 0:
            self._wired += count
            stream.grant(count)

    async def send(self) -> None:
        """Pass on the items from the peer."""
        await self.demanded()
        self._wired = min(self.demand, MOST)
        async with self._open_stream(credit=self._wired) as stream:
            self._stream = stream
            self.requested()
            async for payload in stream:
                self._wired -= 1
                if not self.give(payload):
                    break
                if self.demand > MOST and self._wired <= MOST // 2:
                    self.requested()
