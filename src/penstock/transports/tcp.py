"""TCP, TLS and Unix sockets, over asyncio's own transports."""

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
from .lingering import LINGER, Linger, tcp_progress
from .proxied import ProxiedConnections
from .reading import ReadBuffer, Reading

__all__ = ["LOOPBACK", "SocketLink", "SocketListener", "client_context", "connect", "listen", "server_context"]

logger = logging.getLogger("penstock.transports")

BACKLOG: Final = 1_024
"""Connections that the system queues until they are accepted."""
ACCEPT_RETRY: Final = 0.25
"""Seconds to wait after running out of file descriptors: some may be closed by then."""
OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

METHODS: Final = ("write", "get_write_buffer_size", "pause_reading", "resume_reading", "abort", "get_extra_info")
"""The methods of a link that are those of its asyncio transport."""
LOOPBACK: Final = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""The hosts to connect to for those that a server listens on, but that are not addresses."""

ENCRYPTED: Final = {"tcp": "tls", "unix": "tls", "ws": "wss", "h2c": "h2"}
"""The encrypted counterpart of each unencrypted transport over sockets."""

_read_buffers: WeakKeyDictionary[asyncio.AbstractEventLoop, ReadBuffer] = WeakKeyDictionary()


def _read_buffer() -> ReadBuffer:
    """Return the shared read buffer of this event loop."""
    loop = asyncio.get_running_loop()
    buffer = _read_buffers.get(loop)
    if buffer is None:
        buffer = _read_buffers[loop] = ReadBuffer()
    return buffer


class SocketLink(Reading, asyncio.BufferedProtocol):
    """A link over an asyncio transport, and the protocol of that transport.

    The methods of :class:`~penstock.transports.base.Link` are those of the transport, bound when it is connected. The
    peer may take `linger` seconds to close its half, or `LINGER` if that is 0.
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

    unfinished = 0
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
        """Start the link."""
        # uvloop's transports have these methods, but none of asyncio's base classes.
        transport = cast(asyncio.Transport, transport)
        transport.set_write_buffer_limits(high=self._high_bytes)
        for name in METHODS:
            setattr(self, name, getattr(transport, name))
        self._transport = transport
        self.receiver.link_made(self)

    def progress(self) -> tuple[int, int]:
        """See `Link.progress`."""
        held, confirmed = tcp_progress(self.get_extra_info("socket"))
        waiting = self.get_write_buffer_size() + held
        # Without acknowledgements, a shrinking backlog is the only sign of progress.
        return waiting, -waiting if confirmed is None else confirmed

    @property
    def made(self) -> bool:
        """True if it has been connected to its transport."""
        return hasattr(self, "write")

    @property
    def alpn(self) -> str | None:
        """The protocol that TLS has negotiated (ALPN), if any."""
        encryption = self._transport.get_extra_info("ssl_object")
        return None if encryption is None else encryption.selected_alpn_protocol()

    def close(self) -> None:
        """Close after all output is written. Input is read and discarded until the peer closes too.

        Closing a socket with unread input resets it, and the peer would lose output that it has not read.
        """
        if self._closing is None:
            self._closing = Linger(self.linger or LINGER, self.progress, self.abort)
            try:
                if self._transport.can_write_eof():
                    self._transport.write_eof()
                else:
                    self._transport.close()
            except (OSError, RuntimeError):
                # The peer has reset the connection, but asyncio has not noticed it yet; or uvloop has, and closed it.
                self._transport.abort()

    def pause_writing(self) -> None:
        """Tell the receiver to pause."""
        self.receiver.writing_paused()

    def resume_writing(self) -> None:
        """Tell the receiver to continue."""
        self.receiver.writing_resumed()

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss to the receiver. If the link was never made, its creator reports it."""
        if self._closing is not None:
            self._closing.cancel()
        if self.made:
            self.receiver.link_lost(link_error(error))


class SocketListener:
    """Accepts connections, before any handshake, and creates links for them."""

    def __init__(
        self, url: Url, sockets: list[socket.socket], accept: Accept, settings: Settings, context: tls.SSLContext | None
    ) -> None:
        self.url = url
        self._sockets = sockets
        self._accept = accept
        self._settings = settings
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._proxied = ProxiedConnections(settings, self._admit, accept)
        self._accepting = [self._loop.create_task(self._accept_links(listening)) for listening in sockets]
        self._handshakes: dict[asyncio.Task[None], SocketLink] = {}

    async def close(self) -> None:
        """Accept no more links, and abort unfinished handshakes."""
        # Links that are made stay open, even if their task has not ended yet.
        tasks = [*self._accepting, *(task for task, link in self._handshakes.items() if not link.made)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._proxied.close(), return_exceptions=True)
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
                # THREATS 74: wait for file descriptors. Other errors concern one peer, which has disconnected.
                if error.errno in OUT_OF_RESOURCES:
                    if not starved:
                        logger.warning("%s: cannot accept connections: %s", self.url.place, error.strerror)
                    starved = True
                    await asyncio.sleep(ACCEPT_RETRY)
                continue
            starved = False
            name = address[0] if isinstance(address, tuple) else ""
            if not self._proxied.take(connection, name):
                self._admit(connection, name)

    def _admit(self, connection: socket.socket, address: str) -> None:
        """Create the link of a connection whose client has this address, unless it is refused."""
        accepted = self._accept(address)
        receiver = accepted.explainer() if isinstance(accepted, Refused) else accepted
        if receiver is None:
            connection.close()
            return
        link = SocketLink(receiver, self._settings.output_high_bytes)
        task = self._loop.create_task(self._make_link(connection, link, receiver))
        self._handshakes[task] = link
        task.add_done_callback(partial(self._link_made, connection, receiver))

    async def _make_link(self, connection: socket.socket, link: SocketLink, receiver: Receiver) -> None:
        try:
            _no_delay(connection)
            await self._loop.connect_accepted_socket(
                lambda: link, connection, **_tls_arguments(self._context, self._settings)
            )
        except OSError as error:
            receiver.link_lost(LinkLost(f"the TLS handshake failed: {error.strerror or error}"))

    def _link_made(self, connection: socket.socket, receiver: Receiver, task: asyncio.Task[None]) -> None:
        """Clean up after a link was made or its handshake aborted."""
        del self._handshakes[task]
        if task.cancelled():
            connection.close()
            receiver.link_lost(None)


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
    """Open a link over a socket. See :func:`penstock.transports.connect`."""
    context = client_context(url, ssl)
    loop = asyncio.get_running_loop()
    protocol = partial(SocketLink, receiver, settings.output_high_bytes)
    host = LOOPBACK.get(url.host, url.host)
    if url.transport == "unix":
        await loop.create_unix_connection(protocol, url.path)
        return
    connection = await _connected(loop, host, url.port or 0)
    name = host if context is not None else None
    try:
        await loop.create_connection(
            protocol, sock=connection, server_hostname=name, **_tls_arguments(context, settings)
        )
    finally:
        _detach(loop, connection)


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
    """Return a socket connected to the first reachable address of `host`."""
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
    """Return sockets bound to all addresses of the URL's host, with the same port."""
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
    """Return a socket that listens on all interfaces, over IPv6 and IPv4, or IPv4 only if there is no IPv6."""
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
    """Return True if `path` is a socket without a listener."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)
    except OSError as error:
        return isinstance(error, ConnectionRefusedError)
    return False


def _no_delay(connection: socket.socket) -> None:
    # Writes are already batched; Nagle's algorithm would only delay them.
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _detach(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
    """Detach the descriptor if the loop owns it. asyncio's own loops use the socket object instead."""
    # uvloop closes descriptors without closing the object. The object would close the number again, when another thread
    # may have reused it for a file.
    if not isinstance(loop, asyncio.BaseEventLoop):
        connection.detach()


def _tls_arguments(context: tls.SSLContext | None, settings: Settings) -> dict[str, Any]:
    """Return asyncio's arguments for TLS; none without a context."""
    if context is None:
        return {}
    return {
        "ssl": context,
        "ssl_handshake_timeout": settings.connect_timeout,
        "ssl_shutdown_timeout": settings.close_grace,
    }


def client_context(url: Url, ssl: tls.SSLContext | None) -> tls.SSLContext | None:
    """Return the TLS context to connect to `url`: `ssl`, or one with the URL's CA; None for unencrypted transports.

    Raises UrlError if options are unknown, a file cannot be read, or `ssl` is given for an unencrypted transport.
    """
    if url.transport in ENCRYPTED:
        check_options(url, frozenset())
        if ssl is not None:
            encrypted = f"{url.protocol}+{ENCRYPTED[url.transport]}://"
            raise UrlError(f"ssl cannot be used with '{url}', which is not encrypted; write {encrypted}")
        return None
    check_options(url, frozenset({"ca"}))
    if ssl is not None:
        return ssl
    with certificate_errors(url):
        return tls.create_default_context(cafile=url.options.get("ca"))


def server_context(url: Url, ssl: tls.SSLContext | None) -> tls.SSLContext | None:
    """Return the TLS context to listen at `url`: `ssl`, or one with the URL's files; None for unencrypted transports.

    Raises UrlError if options are unknown or missing, or a file cannot be read.
    """
    if url.transport in ENCRYPTED:
        # `ssl` applies to all URLs of a server, some of which may be unencrypted.
        check_options(url, frozenset())
        return None
    check_options(url, frozenset({"cert", "key"}))
    if ssl is not None:
        return ssl
    if "cert" not in url.options:
        raise UrlError(f"'{url}' needs a certificate; pass ssl=..., or add ?cert=FILE&key=FILE")
    context = tls.create_default_context(tls.Purpose.CLIENT_AUTH)
    with certificate_errors(url):
        context.load_cert_chain(url.options["cert"], url.options.get("key"))
    return context
