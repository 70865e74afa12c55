"""QUIC: each bidirectional stream of a connection is a link, whose bytes travel as they are.

Frames of the session have their length in front, as on TCP. A server learns of a stream when the first bytes of it
come in: QUIC has no other sign.
"""

from __future__ import annotations

import asyncio
import socket
import ssl as tls
from typing import Any, Final

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection

from ..settings import Settings
from ..urls import Url
from .base import Accept, Receiver, connect_errors, listen_errors
from .quic_client import ClientConnection
from .quic_connection import client_configuration, server_configuration
from .quic_server import QuicListener
from .tcp import ALL_INTERFACES

__all__ = ["connect", "listen"]

RECEIVE_BYTES: Final = 2_097_152
"""What the system may hold for a socket until we read it: what finds no room is lost, and sent again."""


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
    """Open a link over QUIC. See :func:`penstock.transports.connect`."""
    host = ALL_INTERFACES.get(url.host, url.host)
    configuration = client_configuration(url, host, settings, ssl)
    loop = asyncio.get_running_loop()
    failure = OSError(f"{host} has no address")
    with connect_errors(url, settings):
        async with asyncio.timeout(settings.connect_timeout):
            for family, _, _, _, address in await loop.getaddrinfo(host, url.port, type=socket.SOCK_DGRAM):
                try:
                    await _connect_to(address, family, url, receiver, settings, configuration)
                    return
                except OSError as error:
                    failure = error
            raise failure


async def _connect_to(
    address: Any, family: int, url: Url, receiver: Receiver, settings: Settings, configuration: QuicConfiguration
) -> None:
    quic = QuicConnection(configuration=configuration)
    transport, connection = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: ClientConnection(quic, url, receiver, settings), remote_addr=address[:2], family=family
    )
    try:
        _room_to_receive(transport.get_extra_info("socket"))
        connection.connect(transport.get_extra_info("peername"))
        await connection.opened
    except BaseException:
        connection.drop()
        raise


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> QuicListener:
    """Accept links over QUIC. See :func:`penstock.transports.listen`."""
    configuration = server_configuration(url, settings, ssl)
    listener = QuicListener(url, accept, settings)
    with listen_errors(url):
        await listener.open(await _bound(url), configuration)
    return listener


async def _bound(url: Url) -> list[socket.socket]:
    """Return sockets bound to every address of the URL's host, all with one port."""
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
            _room_to_receive(bound)
            bound.setblocking(False)
            bound.bind((address[0], port, *address[2:]))
            port = sockets[0].getsockname()[1]
    except OSError:
        for bound in sockets:
            bound.close()
        raise
    return sockets


def _room_to_receive(bound: Any) -> None:
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
