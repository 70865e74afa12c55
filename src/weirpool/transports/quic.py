"""QUIC: each bidirectional stream of a connection is a link, whose bytes are sent unchanged.

Frames of the session have a length prefix, as on TCP. A server detects a stream by its first bytes, because QUIC does
not announce streams. A client's connection has one link.
"""

from __future__ import annotations

import asyncio
import socket
import ssl as tls
from typing import Any, Final

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection as QuicState
from aioquic.quic.events import ConnectionTerminated
from aioquic.quic.packet import QuicErrorCode
from aioquic.tls import AlertDescription

from ..errors import ConnectError, LinkLost
from ..protocols import spec_of
from ..settings import Settings
from ..urls import Url
from .base import Accept, Receiver, forget
from .names import addresses_of
from .quic_connection import ABORTED, NO_ALPN, QuicConnection, client_configuration, server_configuration
from .quic_server import QuicListener
from .reloading import Reloaded
from .streams import StreamLink, lose_all
from .tcp import LOOPBACK

__all__ = ["connect", "listen"]

RECEIVE_BYTES: Final = 2_097_152
"""The receive buffer of a socket: datagrams that do not fit are lost and sent again."""
UNTRUSTED: Final = frozenset(
    QuicErrorCode.CRYPTO_ERROR + alert
    for alert in (
        AlertDescription.bad_certificate,
        AlertDescription.certificate_expired,
        AlertDescription.certificate_unknown,
        AlertDescription.unknown_ca,
    )
)


class ClientConnection(QuicConnection):
    """The connection of a client, with one link; `opened` is done when the handshake is complete."""

    def __init__(self, quic: QuicState, url: Url, receiver: Receiver, settings: Settings) -> None:
        super().__init__(quic, url, settings)
        self._receiver = receiver
        self._alpn = spec_of(url.protocol).alpn
        self.opened: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the socket, unless the task that has opened it was canceled, when uvloop leaves it open."""
        super().connection_made(transport)
        if self.opened.cancelled():
            self._close_socket()

    def handshake_completed(self, alpn: str | None) -> None:
        """Open the link."""
        if alpn != self._alpn:
            self._fail_open(f"the server does not offer {self._alpn!r} (ALPN); check the port")
        elif not self.opened.done():
            stream_id = self._quic.get_next_available_stream_id()
            link = StreamLink(self, stream_id, self._receiver, self._settings.output_high_bytes)
            self._links[stream_id] = link
            self.opened.set_result(None)
            self._receiver.link_made(link)

    def opened_by_peer(self, stream_id: int) -> StreamLink | None:
        """Close the connection: only its client opens a stream."""
        self.drop(LinkLost("the server opened a stream, which only clients may"))
        return None

    def terminated(self, event: ConnectionTerminated) -> None:
        """Close the link, or report why it could not be opened."""
        super().terminated(event)
        why = event.reason_phrase or f"error {event.error_code:#x}"
        if event.error_code in UNTRUSTED:
            self._fail_open(f"the certificate is not trusted ({why}); pass its CA with ?ca=FILE")
        elif event.error_code in NO_ALPN:
            self._fail_open(f"the server does not offer {self._alpn!r} ({why}); check the port")
        else:
            self._fail_open(f"the server closed the connection ({why})")
        self.drop()

    def error_received(self, error: Exception) -> None:
        """Handle an error of the socket, usually that the port has no listener."""
        if not self.opened.done():
            self.opened.set_exception(error)
        self.drop(LinkLost(f"the connection broke: {getattr(error, 'strerror', None) or error}"))

    def connection_lost(self, error: Exception | None) -> None:
        """Close the link if it is still open."""
        lose_all(self._links, error)

    def ended(self, link: StreamLink) -> None:
        """Close the connection, which closes the link."""
        self.hang_up()
        self._close_socket()

    def reset(self, link: StreamLink) -> None:
        """Abort the connection."""
        self.drop()

    def stream_over(self) -> None:
        """Abort the connection, which has no other stream."""
        self.drop()

    def drop(self, error: Exception | None = None) -> None:
        """Abort the connection, and its link with `error`."""
        lose_all(self._links, error)
        self.hang_up(ABORTED)
        self._close_socket()

    def give_up(self) -> None:
        """Close the socket when nobody waits for the link any more. Call `drop` first if the handshake has begun."""
        forget(self.opened)
        self._close_socket()

    def _close_socket(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _fail_open(self, reason: str) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectError(f"cannot connect to {self._url.place}: {reason}"))


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
    """Open a link over QUIC. See :func:`weirpool.transports.connect`."""
    host = LOOPBACK.get(url.host, url.host)
    configuration = client_configuration(url, host, settings, ssl)
    failure = OSError(f"{host} has no address")
    for family, _, _, _, address in await addresses_of(host, url.port, socket.SOCK_DGRAM):
        try:
            await _connect_to(address, family, url, receiver, settings, configuration)
            return
        except OSError as error:
            failure = error
    raise failure


async def _connect_to(
    address: Any, family: int, url: Url, receiver: Receiver, settings: Settings, configuration: QuicConfiguration
) -> None:
    connection = ClientConnection(QuicState(configuration=configuration), url, receiver, settings)
    try:
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: connection, remote_addr=address[:2], family=family
        )
    except BaseException:
        connection.give_up()
        raise
    try:
        _set_receive_buffer(transport.get_extra_info("socket"))
        connection.connect(transport.get_extra_info("peername"))
        await connection.opened
    except BaseException:
        connection.drop()
        connection.give_up()
        raise


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> QuicListener:
    """Accept links over QUIC. See :func:`weirpool.transports.listen`."""
    certified = Reloaded(url, ("cert", "key"), lambda: server_configuration(url, settings, ssl))
    listener = QuicListener(url, accept, settings)
    await listener.open(await _bound(url), certified)
    return listener


async def _bound(url: Url) -> list[socket.socket]:
    """Return sockets bound to all addresses of the URL's host, with the same port."""
    port = url.port or 0
    host = url.host or ("::" if socket.has_dualstack_ipv6() else "0.0.0.0")
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, kind, proto, _, address in infos:
            bound = socket.socket(family, kind, proto)
            sockets.append(bound)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, bool(url.host))
            _set_receive_buffer(bound)
            bound.setblocking(False)
            bound.bind((address[0], port, *address[2:]))
            port = sockets[0].getsockname()[1]
    except OSError:
        for bound in sockets:
            bound.close()
        raise
    return sockets


def _set_receive_buffer(bound: Any) -> None:
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
