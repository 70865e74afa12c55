"""TCP, TLS and Unix sockets: what asyncio's own transports carry."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl as tls
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, cast
from weakref import WeakKeyDictionary

from ..errors import LinkLost, UrlError
from ..settings import Settings
from ..urls import Url
from .base import Accept, Receiver, Refused, certificate_errors, check_options, link_error
from .lingering import LINGER, Linger, taken
from .reading import ReadBuffer, Reading

__all__ = ["ALL_INTERFACES", "SocketLink", "SocketListener", "client_context", "connect", "listen", "server_context"]

logger = logging.getLogger("penstock.transports")

BACKLOG: Final = 1_024
"""Connections that the system holds until we accept them."""
ACCEPT_RETRY: Final = 0.25
"""Seconds to wait when there are no file descriptors left: some may be closed by then."""
OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

METHODS: Final = ("write", "get_write_buffer_size", "pause_reading", "resume_reading", "abort", "get_extra_info")
"""The methods of a link that are its transport's own."""
ALL_INTERFACES: Final = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""Hosts that a server listens on and nobody can connect to: whoever names them means this machine."""

ENCRYPTED: Final = {"tcp": "tls", "unix": "tls", "ws": "wss", "h2c": "h2"}
"""For each transport over sockets, the one that is encrypted. Those that say more than bytes are built on these."""

_read_buffers: WeakKeyDictionary[asyncio.AbstractEventLoop, ReadBuffer] = WeakKeyDictionary()


def _read_buffer() -> ReadBuffer:
    """Return the read buffer that all links of this event loop share."""
    loop = asyncio.get_running_loop()
    buffer = _read_buffers.get(loop)
    if buffer is None:
        buffer = _read_buffers[loop] = ReadBuffer()
    return buffer


class SocketLink(Reading, asyncio.BufferedProtocol):
    """A link over an asyncio transport, and the protocol of that transport.

    The methods of :class:`~penstock.transports.base.Link` are the transport's own, bound when it is there. The peer may
    take `linger` seconds to close its half, or `LINGER` where that is 0.
    """

    __slots__ = (
        "_closing",
        "_high_bytes",
        "_transport",
        "abort",
        "get_extra_info",
        "get_write_buffer_size",
        "linger",
        "pause_reading",
        "resume_reading",
        "write",
    )

    write: Callable[[bytes], None]
    get_write_buffer_size: Callable[[], int]
    pause_reading: Callable[[], None]
    resume_reading: Callable[[], None]
    abort: Callable[[], None]
    get_extra_info: Callable[[str], Any]
    _transport: asyncio.Transport

    def __init__(self, receiver: Receiver, high_bytes: int) -> None:
        super().__init__(receiver, _read_buffer())
        self._high_bytes = high_bytes
        self._closing: Linger | None = None
        self.linger = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Become a link."""
        # uvloop's transports have these methods, and none of asyncio's base classes.
        transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=self._high_bytes)
        for name in METHODS:
            setattr(self, name, getattr(transport, name))
        self._transport = transport
        self.receiver.link_made(self)

    def progress(self) -> tuple[int, int]:
        """Return what waits, and a number that grows as the other end's system takes it; see `Link.progress`."""
        held, confirmed = taken(self.get_extra_info("socket"))
        waiting = self.get_write_buffer_size() + held
        # Where nothing is known of the other end, what waits gets less.
        return waiting, -waiting if confirmed is None else confirmed

    @property
    def made(self) -> bool:
        """Whether its transport is there."""
        return hasattr(self, "write")

    @property
    def alpn(self) -> str | None:
        """What TLS has agreed to carry (ALPN), if anything."""
        encryption = self._transport.get_extra_info("ssl_object")
        return None if encryption is None else encryption.selected_alpn_protocol()

    def close(self) -> None:
        """Close once everything is written. What still comes in is read and dropped until the peer closes, too.

        A socket that is closed with input unread is reset, and with it goes what the peer has not read of ours.
        """
        if self._closing is None:
            self._closing = Linger(self.linger or LINGER, self.progress, self.abort)
            try:
                if self._transport.can_write_eof():
                    self._transport.write_eof()
                else:
                    self._transport.close()
            except OSError:
                # The peer has broken the connection, and asyncio does not know it yet.
                self._transport.abort()

    def pause_writing(self) -> None:
        """Tell that the link is full."""
        self.receiver.writing_paused()

    def resume_writing(self) -> None:
        """Tell that the link has room again."""
        self.receiver.writing_resumed()

    def connection_lost(self, error: Exception | None) -> None:
        """Tell that the link is gone. One that was never made is told of by who tried to make it."""
        if self._closing is not None:
            self._closing.cancel()
        if self.made:
            self.receiver.link_lost(link_error(error))


class SocketListener:
    """Accepts connections, before any handshake, and makes links of them."""

    def __init__(
        self, url: Url, sockets: list[socket.socket], accept: Accept, settings: Settings, context: tls.SSLContext | None
    ) -> None:
        self.url = url
        self._sockets = sockets
        self._accept = accept
        self._settings = settings
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._accepting = [self._loop.create_task(self._accept_links(listening)) for listening in sockets]
        self._handshakes: dict[asyncio.Task[None], SocketLink] = {}

    async def close(self) -> None:
        """Accept no more links, and give up those that are still in their handshake."""
        # A link that is made lives on, also where the task that made it has not heard of that yet.
        tasks = [*self._accepting, *(task for task, link in self._handshakes.items() if not link.made)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listening in self._sockets:
            listening.close()
        if self.url.transport == "unix":
            with suppress(FileNotFoundError):
                os.unlink(self.url.path)

    async def _accept_links(self, listening: socket.socket) -> None:
        starved = False
        while True:
            try:
                connection, address = await self._loop.sock_accept(listening)
            except OSError as error:
                # THREATS 74: without file descriptors we wait; a peer that has gone already is no trouble.
                if error.errno in OUT_OF_RESOURCES:
                    if not starved:
                        logger.warning("%s: no connection can be accepted: %s", self.url.place, error.strerror)
                    starved = True
                    await asyncio.sleep(ACCEPT_RETRY)
                continue
            starved = False
            receiver = self._accept(address[0] if isinstance(address, tuple) else "")
            if isinstance(receiver, Refused):
                connection.close()
                continue
            link = SocketLink(receiver, self._settings.output_high_bytes)
            task = self._loop.create_task(self._make_link(connection, link, receiver))
            self._handshakes[task] = link
            task.add_done_callback(partial(self._link_made, connection, receiver))

    async def _make_link(self, connection: socket.socket, link: SocketLink, receiver: Receiver) -> None:
        try:
            _no_delay(connection)
            await self._loop.connect_accepted_socket(lambda: link, connection, **_tls(self._context, self._settings))
        except OSError as error:
            receiver.link_lost(LinkLost(f"no TLS handshake: {error.strerror or error}"))

    def _link_made(self, connection: socket.socket, receiver: Receiver, task: asyncio.Task[None]) -> None:
        """Clear up after a link that is made, or was given up."""
        del self._handshakes[task]
        if task.cancelled():
            connection.close()
            receiver.link_lost(None)


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
    """Open a link over a socket. See :func:`penstock.transports.connect`."""
    context = client_context(url, ssl)
    loop = asyncio.get_running_loop()
    protocol = partial(SocketLink, receiver, settings.output_high_bytes)
    host = ALL_INTERFACES.get(url.host, url.host)
    if url.transport == "unix":
        await loop.create_unix_connection(protocol, url.path)
        return
    connection = await _connected(loop, host, url.port or 0)
    name = host if context is not None else None
    try:
        await loop.create_connection(protocol, sock=connection, server_hostname=name, **_tls(context, settings))
    finally:
        _let_go(loop, connection)


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> SocketListener:
    """Accept links over sockets. See :func:`penstock.transports.listen`."""
    context = server_context(url, ssl)
    sockets = [_bound_unix(url.path)] if url.transport == "unix" else await _bound(url)
    for listening in sockets:
        listening.setblocking(False)
        listening.listen(BACKLOG)
    if url.transport != "unix":
        url = url.with_port(sockets[0].getsockname()[1])
    return SocketListener(url, sockets, accept, settings, context)


async def _connected(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """Return a socket connected to the first address of `host` that answers."""
    failure = OSError(f"{host} has no address")
    for family, kind, proto, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        connection = socket.socket(family, kind, proto)
        try:
            connection.setblocking(False)
            _no_delay(connection)
            await loop.sock_connect(connection, address)
        except BaseException as error:
            connection.close()
            if not isinstance(error, OSError):
                raise
            failure = error
        else:
            return connection
    raise failure


async def _bound(url: Url) -> list[socket.socket]:
    """Return sockets bound to every address of the URL's host, all with one port."""
    loop = asyncio.get_running_loop()
    port = url.port or 0
    if not url.host:
        return [_bound_to_all(port)]
    infos = await loop.getaddrinfo(url.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, _, _, _, address in infos:
            sockets.append(socket.create_server((address[0], port, *address[2:]), family=family))
            port = sockets[0].getsockname()[1]
    except OSError:
        for listening in sockets:
            listening.close()
        raise
    return sockets


def _bound_to_all(port: int) -> socket.socket:
    """Return a socket that listens on all interfaces, IPv6 and IPv4, or IPv4 where there is no IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
        except OSError as error:
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):
                raise
    return socket.create_server(("", port))


def _bound_unix(path: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    try:
        if _is_stale(path):
            os.unlink(path)
        listening.bind(path)
    except OSError:
        listening.close()
        raise
    return listening


def _is_stale(path: str) -> bool:
    """Whether `path` is a socket that nobody listens on any more."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
    except OSError as error:
        return isinstance(error, ConnectionRefusedError)
    return False


def _no_delay(connection: socket.socket) -> None:
    # Flushes are batched by us; Nagle's algorithm would only hold them back.
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _let_go(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
    """Leave the descriptor to a loop that has taken it over; asyncio's own loops go on with the object."""
    # uvloop closes descriptors by itself, and tells the object only of a link that is lost later than this. The object
    # would close the number once more, and by then it may be that of a file of another thread.
    if not isinstance(loop, asyncio.BaseEventLoop):
        connection.detach()


def _tls(context: tls.SSLContext | None, settings: Settings) -> dict[str, Any]:
    """Return the arguments that make asyncio speak TLS, or not."""
    if context is None:
        return {}
    return {
        "ssl": context,
        "ssl_handshake_timeout": settings.connect_timeout,
        "ssl_shutdown_timeout": settings.close_grace,
    }


def client_context(url: Url, ssl: tls.SSLContext | None) -> tls.SSLContext | None:
    """Return what TLS needs to connect to `url`: `ssl` or what the URL names. None where it is not encrypted.

    Raises UrlError for options that the transport does not know, and for files that cannot be read.
    """
    if url.transport in ENCRYPTED:
        check_options(url, frozenset())
        if ssl is not None:
            encrypted = f"{url.protocol}+{ENCRYPTED[url.transport]}://"
            raise UrlError(f"ssl is given, but '{url}' is not encrypted; write {encrypted}")
        return None
    check_options(url, frozenset({"ca"}))
    if ssl is not None:
        return ssl
    with certificate_errors(url):
        return tls.create_default_context(cafile=url.options.get("ca"))


def server_context(url: Url, ssl: tls.SSLContext | None) -> tls.SSLContext | None:
    """Return what TLS needs to listen at `url`: `ssl` or what the URL names. None where it is not encrypted.

    Raises UrlError for options that the transport does not know or that are missing, and for files that cannot be read.
    """
    if url.transport in ENCRYPTED:
        # One context serves all places of a server, and not each of them needs it.
        check_options(url, frozenset())
        return None
    check_options(url, frozenset({"cert", "key"}))
    if ssl is not None:
        return ssl
    if "cert" not in url.options:
        raise UrlError(f"'{url}' needs a certificate: give ssl=..., or add ?cert=FILE&key=FILE")
    context = tls.create_default_context(tls.Purpose.CLIENT_AUTH)
    with certificate_errors(url):
        context.load_cert_chain(url.options["cert"], url.options.get("key"))
    return context
