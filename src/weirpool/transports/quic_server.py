"""The server side of QUIC: a listener, its sockets, and connections with any number of links."""

from __future__ import annotations

import asyncio
import logging
import socket
from dataclasses import replace
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
from .base import Accept, Receiver, Refused, settled
from .quic_connection import ABORTED, NO_ALPN, NO_ERROR, QuicConnection
from .reloading import Reloaded
from .streams import Slot, StreamLink, StreamListener, lose_all

__all__ = ["QuicListener", "ServerConnection"]

logger = logging.getLogger("weirpool.transports")

NO_MORE_LINKS: Final = Refused("the server accepts no more connections")


class ServerConnection(QuicConnection):
    """An accepted connection with any number of links."""

    def __init__(self, listener: QuicListener, quic: QuicState) -> None:
        super().__init__(quic, listener.url, listener.settings)
        self._listener = listener
        self._slot = Slot(listener, partial(self.hang_up, NO_ERROR))
        listener.connections.add(self)

    @property
    def idle(self) -> bool:
        """True if it has no links."""
        return not self._links

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        """Handle a datagram. The first one reserves a slot, or the connection is refused."""
        if not self._slot.address:
            self._slot.address = self.address = addr[0]
            receiver = self._slot.next_receiver(self._slot.address)
            if isinstance(receiver, Refused):
                self._refuse(cast(bytes, data), addr, receiver.reason)
                return
            self._slot.receiver = receiver
            self._slot.reserve()
        super().datagram_received(data, addr)

    def _refuse(self, data: bytes, address: Any, reason: str) -> None:
        """Close the connection before its handshake. The keys to encrypt this are derived from the first datagram."""
        self._quic.receive_datagram(data, address, now=self._loop.time())
        self._done = True
        self._quic.close(QuicErrorCode.CONNECTION_REFUSED, QuicFrameType.PADDING, reason)
        self.transmit()
        self._remove(None)

    def opened_by_peer(self, stream_id: int) -> StreamLink | None:
        """Return a link for a stream that the client has opened; None if it is refused."""
        # RFC 9000, section 2.1: the ids of bidirectional client streams are divisible by 4.
        slot = self._slot
        receiver: Receiver | Refused = slot.next_receiver(slot.address) if stream_id % 4 == 0 else NO_MORE_LINKS
        if isinstance(receiver, Refused):
            if stream_id % 4 == 0:
                self.abandon(stream_id)
            else:
                self.hang_up(ABORTED, "unidirectional streams are not supported")
            return None
        slot.release()
        link = self._links[stream_id] = StreamLink(self, stream_id, receiver, self._settings.output_high_bytes)
        receiver.link_made(link)
        return link

    def terminated(self, event: ConnectionTerminated) -> None:
        """Remove the connection."""
        super().terminated(event)
        self._done = True
        wanted = f"; this server offers {spec_of(self._url.protocol).alpn!r}" if event.error_code in NO_ALPN else ""
        self._remove(LinkLost(f"the connection ended: {event.reason_phrase}{wanted}"))

    def ended(self, link: StreamLink) -> None:
        """Remove a stream that has ended in order."""
        self._links.pop(link.stream_id, None)
        link.lose(None)
        self.stream_over()

    def reset(self, link: StreamLink) -> None:
        """End a stream now."""
        self.abandon(link.stream_id)
        link.lose(None)
        self.stream_over()

    def stream_over(self) -> None:
        """Wait for another stream if the last one has ended."""
        if not self._links and not self._done:
            self._slot.reserve()

    def hang_up(self, code: int = NO_ERROR, reason: str = "") -> None:
        """Close the connection and its links. QUIC still answers datagrams of it for a while."""
        if not self._done:
            super().hang_up(code, reason)
            lose_all(self._links, LinkLost(f"this side closed the connection: {reason or 'no link was open'}"))
            self._remove(None)

    def _remove(self, error: Exception | None) -> None:
        self._slot.lose(error)
        self._listener.remove(self)


class _Endpoint(QuicServer):
    """One socket of a listener. Clients must first validate their address (RFC 9000, section 8.1.2)."""

    def __init__(self, listener: QuicListener, certified: Reloaded[QuicConfiguration]) -> None:
        configuration = replace(certified.current())
        super().__init__(configuration=configuration, create_protocol=self._connected, retry=True)
        self._listener = listener
        self._certified = certified
        self.closed: asyncio.Future[None] = self._loop.create_future()

    def _connected(self, quic: QuicState, stream_handler: None = None) -> ServerConnection:
        """Create a connection, which reads the certificate from the configuration after this."""
        current = self._certified.current()
        mine = self._configuration
        mine.certificate, mine.certificate_chain = current.certificate, current.certificate_chain
        mine.private_key = current.private_key
        return ServerConnection(self._listener, quic)

    def connection_lost(self, error: Exception | None) -> None:
        """Record that the socket is closed."""
        self.closed.set_result(None)

    def close_socket(self) -> None:
        """Close the socket, which its connections share."""
        if self._transport is not None:
            self._transport.close()


class QuicListener(StreamListener[ServerConnection]):
    """Accepts connections over datagrams, and links on them."""

    def __init__(self, url: Url, accept: Accept, settings: Settings) -> None:
        super().__init__(url, accept, settings)
        self._endpoints: list[_Endpoint] = []

    async def open(self, sockets: list[socket.socket], certified: Reloaded[QuicConfiguration]) -> None:
        """Start to listen."""
        loop = asyncio.get_running_loop()
        self.url = self.url.with_port(sockets[0].getsockname()[1])
        for bound in sockets:
            _, endpoint = await loop.create_datagram_endpoint(partial(_Endpoint, self, certified), sock=bound)
            self._endpoints.append(endpoint)

    async def close(self) -> None:
        """Accept no more connections or links. The sockets are closed after the last link."""
        self.draining = NO_MORE_LINKS
        for connection in list(self.connections):
            if connection.idle:
                connection.hang_up()
        self._close_when_empty()
        if not self.connections:
            await settled([endpoint.closed for endpoint in self._endpoints])

    async def ended(self, seconds: float) -> None:
        """Wait for the ends of all connections. See `Listener.ended`."""
        if self.connections:
            await asyncio.wait([endpoint.closed for endpoint in self._endpoints], timeout=seconds)
        for connection in list(self.connections):
            connection.hang_up()
        await settled([endpoint.closed for endpoint in self._endpoints])

    def hand_over(self) -> list[int]:
        """Return nothing: with two processes at one socket, each would receive packets of the other's connections."""
        return []

    def remove(self, connection: ServerConnection) -> None:
        """Remove a closed connection."""
        self.connections.discard(connection)
        self._close_when_empty()

    def _close_when_empty(self) -> None:
        if self.draining and not self.connections:
            for endpoint in self._endpoints:
                endpoint.close_socket()
