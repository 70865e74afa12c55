"""The server's side of QUIC: a listener, its sockets, and connections that carry any number of links."""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import partial
from typing import Any, Final, cast

from aioquic.asyncio.server import QuicServer
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection as QuicState
from aioquic.quic.events import ConnectionTerminated
from aioquic.quic.packet import QuicErrorCode, QuicFrameType

from ..errors import LinkLost
from ..protocols import spec_of
from ..settings import Settings
from ..urls import Url
from .base import Accept, Receiver, Refused
from .quic_connection import ABORTED, NO_ALPN, NO_ERROR, QuicConnection
from .streams import Place, StreamLink, StreamListener, lose_all

__all__ = ["QuicListener", "ServerConnection"]

logger = logging.getLogger("penstock.transports")

NOTHING_HERE: Final = Refused("the server takes no more connections")


class ServerConnection(QuicConnection):
    """A connection that came in, with any number of links on it."""

    def __init__(self, listener: QuicListener, quic: QuicState, stream_handler: None = None) -> None:
        super().__init__(quic, listener.url, listener.settings)
        self._listener = listener
        self._place = Place(listener, self.hang_up)
        listener.connections.add(self)

    @property
    def idle(self) -> bool:
        """Whether it has no links."""
        return not self._links

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        """Take a datagram; the first one asks for a place."""
        if not self._place.address:
            self._place.address = addr[0]
            receiver = self._place.take()
            if isinstance(receiver, Refused):
                self._refuse(cast(bytes, data), addr, receiver.reason)
                return
            self._place.receiver = receiver
            self._place.wait()
        super().datagram_received(data, addr)

    def _refuse(self, data: bytes, address: Any, reason: str) -> None:
        """Close the connection before any handshake. What to encrypt that with is in the first datagram."""
        self._quic.receive_datagram(data, address, now=self._loop.time())
        self._done = True
        self._quic.close(QuicErrorCode.CONNECTION_REFUSED, QuicFrameType.PADDING, reason)
        self.transmit()
        self._gone(None)

    def opened_by_peer(self, stream_id: int) -> StreamLink | None:
        """Make a link of a stream that the client has opened."""
        # RFC 9000, section 2.1: bidirectional streams of clients have numbers that 4 divides.
        receiver: Receiver | Refused = self._place.take() if stream_id % 4 == 0 else NOTHING_HERE
        if isinstance(receiver, Refused):
            if stream_id % 4 == 0:
                self.abandon(stream_id)
            else:
                self.hang_up(ABORTED, "streams of one direction carry nothing here")
            return None
        self._place.leave()
        link = self._links[stream_id] = StreamLink(self, stream_id, receiver, self._settings.output_high_bytes)
        receiver.link_made(link)
        return link

    def terminated(self, event: ConnectionTerminated) -> None:
        """Forget the connection."""
        super().terminated(event)
        self._done = True
        wanted = f"; this server speaks {spec_of(self._url.protocol).alpn!r}" if event.error_code in NO_ALPN else ""
        self._gone(LinkLost(f"the connection ended: {event.reason_phrase}{wanted}"))

    def ended(self, link: StreamLink) -> None:
        """Forget a stream that has ended in order."""
        self._links.pop(link.stream_id, None)
        link.lose(None)
        self.stream_over(link)

    def reset(self, link: StreamLink) -> None:
        """End a stream now."""
        self.abandon(link.stream_id)
        link.lose(None)
        self.stream_over(link)

    def stream_over(self, link: StreamLink) -> None:
        """Count a stream that has ended, and wait for another one."""
        reason = self._place.flood(link.made_at)
        if reason:
            logger.warning("%s: the connection is closed: %s", self._url.place, reason)
            self.hang_up(ABORTED, reason)
        elif not self._links and not self._done:
            self._place.wait()

    def hang_up(self, code: int = NO_ERROR, reason: str = "") -> None:
        """Close the connection; it is of no more use, though QUIC has some more to say of it."""
        if not self._done:
            super().hang_up(code, reason)
            lose_all(self._links, LinkLost(f"this side closed the connection: {reason or 'it was idle'}"))
            self._gone(None)

    def _gone(self, error: Exception | None) -> None:
        self._place.lose(error)
        self._listener.gone(self)


class _Endpoint(QuicServer):
    """One socket of a listener. Who connects shows first that it is where it says (RFC 9000, section 8.1.2)."""

    def __init__(self, listener: QuicListener, configuration: QuicConfiguration) -> None:
        super().__init__(configuration=configuration, create_protocol=partial(ServerConnection, listener), retry=True)
        self.closed: asyncio.Future[None] = self._loop.create_future()

    def connection_lost(self, error: Exception | None) -> None:
        """Take note that the socket is closed."""
        self.closed.set_result(None)

    def close_socket(self) -> None:
        """Close the socket, which all connections share."""
        if self._transport is not None:
            self._transport.close()


class QuicListener(StreamListener[ServerConnection]):
    """Accepts connections over datagrams, and links on them."""

    def __init__(self, url: Url, accept: Accept, settings: Settings) -> None:
        super().__init__(url, accept, settings)
        self._endpoints: list[_Endpoint] = []

    async def open(self, sockets: list[socket.socket], configuration: QuicConfiguration) -> None:
        """Begin to listen."""
        loop = asyncio.get_running_loop()
        self.url = self.url.with_port(sockets[0].getsockname()[1])
        for bound in sockets:
            _, endpoint = await loop.create_datagram_endpoint(partial(_Endpoint, self, configuration), sock=bound)
            self._endpoints.append(endpoint)

    async def close(self) -> None:
        """Accept no more connections, nor links on those that there are. The sockets go with the last link."""
        self.draining = NOTHING_HERE
        for connection in list(self.connections):
            if connection.idle:
                connection.hang_up()
        self._close_when_empty()
        if not self.connections:
            await asyncio.gather(*(endpoint.closed for endpoint in self._endpoints))

    def gone(self, connection: ServerConnection) -> None:
        """Forget a connection that is closed."""
        self.connections.discard(connection)
        self._close_when_empty()

    def _close_when_empty(self) -> None:
        if self.draining and not self.connections:
            for endpoint in self._endpoints:
                endpoint.close_socket()
