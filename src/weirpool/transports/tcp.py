"""TCP, TLS and Unix sockets, over asyncio's own transports."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl as tls
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final, cast
from weakref import WeakKeyDictionary, WeakSet

from ..errors import LinkLost
from ..settings import Settings
from ..urls import Url
from .base import LOST, SILENT, Accept, Receiver, Refused, link_error, settled
from .encrypted import EncryptedTransport
from .lingering import LINGER, Linger, tcp_progress
from .names import addresses_of
from .proxied import ProxiedConnections
from .reading import ReadBuffer, Reading
from .sockets import FileOfSocket, listening_sockets, readable, user_of
from .tls import Contexts, client_context, server_contexts, tls_arguments

__all__ = ["LOOPBACK", "SocketLink", "SocketListener", "connect", "listen", "listen_with"]

logger = logging.getLogger("weirpool.transports")

ACCEPT_RETRY: Final = 0.25
"""Seconds to wait after running out of file descriptors: some may be closed by then."""
POLL_SECONDS: Final = 0.02
"""The interval, in seconds, at which a listener checks whether its links are closed: they do not report it."""
ABORT_TURNS: Final = 3
ACCEPTED_AT_ONCE: Final = 8
"""Links that are accepted in one turn of the loop: making one takes up to half a millisecond."""
FAILURE_SECONDS: Final = 1.0
"""The shortest time between two log lines about failed TLS handshakes."""
OUT_OF_RESOURCES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

METHODS: Final = (
    "write", "get_write_buffer_size", "is_closing", "pause_reading", "resume_reading", "abort", "get_extra_info"
)  # fmt: skip
"""The methods of a link that are those of its asyncio transport."""
LOOPBACK: Final = {"": "localhost", "0.0.0.0": "127.0.0.1", "::": "::1"}
"""The hosts to connect to for those that a server listens on, but that are not addresses."""

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

    The methods of :class:`~weirpool.transports.base.Link` are those of the transport, bound when it is connected. The
    peer may take `linger` seconds to close its half, or `LINGER` if that is 0. It is `over` when its socket is closed,
    and not `answered` if it is a client's link over TLS from which nothing was read.
    """

    __slots__ = (
        "__weakref__", "_closing", "_encrypted", "_high_bytes", "_transport", "abort", "answered", "get_extra_info",
        "get_write_buffer_size", "is_closing", "linger", "over", "pause_reading", "resume_reading", "write"
    )  # fmt: skip

    unfinished = unread = 0
    write: Callable[[bytes], None]
    is_closing: Callable[[], bool]
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
        self._encrypted: EncryptedTransport | None = None
        self.linger = 0.0
        self.over = False
        self.answered = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the link."""
        # uvloop's transports have these methods, but none of asyncio's base classes.
        transport = cast(asyncio.Transport, transport)
        if transport.get_extra_info("sslcontext") is not None:
            self._encrypted = EncryptedTransport(transport, self)
            transport = cast(asyncio.Transport, self._encrypted)
        transport.set_write_buffer_limits(high=self._high_bytes)
        self._bind(transport)
        self.receiver.link_made(self)

    def _bind(self, transport: asyncio.Transport) -> None:
        for name in METHODS:
            setattr(self, name, getattr(transport, name))
        self._transport = transport

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
                elif not self._transport.is_closing():
                    # After an abort, closing asyncio's transports of TLS makes their methods raise AttributeError.
                    self._transport.close()
            except (OSError, RuntimeError):
                # The peer has reset the connection, but asyncio has not noticed it yet; or uvloop has, and closed it.
                self._transport.abort()

    def pause_writing(self) -> None:
        """Tell the receiver to pause, or keep the output here if it is encrypted."""
        if self._encrypted is None:
            self.receiver.writing_paused()
        else:
            self._encrypted.pause_writing()

    def resume_writing(self) -> None:
        """Tell the receiver to continue, or pass on what was kept."""
        if self._encrypted is None:
            self.receiver.writing_resumed()
        else:
            self._encrypted.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss to the receiver. If the link was never made, its creator reports it."""
        self.over = True
        if self._closing is not None:
            self._closing.cancel()
        if self._encrypted is not None:
            if not (self.answered or self._encrypted.ended_here or isinstance(error, tls.SSLError)):
                error = LinkLost(SILENT)
            # Release the buffers of TLS now, and not when the garbage collector runs.
            self._encrypted = None
            self._bind(cast(asyncio.Transport, LOST))
        if self.made:
            self.receiver.link_lost(link_error(error))


class _Unanswered:
    """The receiver of a client's link over TLS until the server has sent something."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def link_made(self, link: Any) -> None:
        self._link = link
        link.answered = False
        self._receiver.link_made(link)

    def received(self, data: bytes) -> None:
        self._link.answered = True
        if self._link.receiver is self:
            self._link.receiver = self._receiver
        self._receiver.received(data)

    def writing_paused(self) -> None:
        self._receiver.writing_paused()

    def writing_resumed(self) -> None:
        self._receiver.writing_resumed()

    def link_lost(self, error: Exception | None) -> None:
        self._receiver.link_lost(error)


class SocketListener:
    """Accepts connections, before any handshake, and creates links for them."""

    def __init__(
        self, url: Url, sockets: list[socket.socket], accept: Accept, settings: Settings, contexts: Contexts
    ) -> None:
        self.url = url
        self._sockets = sockets
        self._accept = accept
        self._settings = settings
        self._contexts = contexts
        # Another process may accept links of inherited sockets, and has to remove the file of a Unix socket.
        self._shared = "fd" in url.options
        self._file = FileOfSocket(url.path if url.transport == "unix" else "")
        self._loop = asyncio.get_running_loop()
        self._proxied = ProxiedConnections(settings, self._admit, accept)
        self._accepting = [self._loop.create_task(self._accept_links(listening)) for listening in sockets]
        self._handshakes: dict[asyncio.Task[None], SocketLink] = {}
        self._links: WeakSet[SocketLink] = WeakSet()
        self._failure_at = -FAILURE_SECONDS

    async def close(self) -> None:
        """Accept no more links, and abort unfinished handshakes."""
        # Links that are made stay open, even if their task has not ended yet. Without TLS, accepted ones will be made.
        unfinished = [task for task, link in self._handshakes.items() if self._contexts is not None and not link.made]
        tasks = [*self._accepting, *unfinished]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self._proxied.close(), return_exceptions=True)
        if not self._shared:
            self._file.remove()
            for listening in self._sockets:
                self._accept_queued(listening)
        for listening in self._sockets:
            listening.close()

    async def ended(self, seconds: float) -> None:
        """Wait for the ends of all links. See `Listener.ended`."""
        deadline = self._loop.time() + seconds
        while (self._handshakes or self._open_links) and self._loop.time() < deadline:  # noqa: ASYNC110 (as above)
            await asyncio.sleep(POLL_SECONDS)
        await settled(list(self._handshakes))
        for link in self._open_links:
            link.abort()
        # The loop closes their sockets in its next turns.
        for _ in range(ABORT_TURNS):
            await asyncio.sleep(0)

    @property
    def _open_links(self) -> list[SocketLink]:
        return [link for link in self._links if link.made and not link.over]

    def hand_over(self) -> list[int]:
        """Leave the sockets to another process. See `Listener.hand_over`."""
        self._shared = True
        return [listening.fileno() for listening in self._sockets]

    def _accept_queued(self, listening: socket.socket) -> None:
        """Accept the links that the system has queued, which it would reset; their clients may have sent requests."""
        # Without a handshake, clients of TLS have sent nothing.
        while self._contexts is None:
            try:
                self._accepted(*listening.accept())
            except OSError:
                return

    async def _accept_links(self, listening: socket.socket) -> None:
        starved = False
        for number in count(1):
            if not number % ACCEPTED_AT_ONCE:
                await asyncio.sleep(0)
            try:
                connection, address = listening.accept()
            except BlockingIOError:
                # Not `sock_accept`: canceling it may lose a link that it has accepted.
                await readable(self._loop, listening)
                continue
            except OSError as error:
                # THREATS 74: wait for file descriptors. Other errors concern one peer, which has disconnected.
                if error.errno in OUT_OF_RESOURCES:
                    if not starved:
                        logger.warning("%s: cannot accept connections: %s", self.url.place, error.strerror)
                    starved = True
                    await asyncio.sleep(ACCEPT_RETRY)
                continue
            starved = False
            self._accepted(connection, address)

    def _accepted(self, connection: socket.socket, address: Any) -> None:
        connection.setblocking(False)
        name = address[0] if isinstance(address, tuple) else user_of(connection)
        if not self._proxied.take(connection, name):
            self._admit(connection, name)

    def _admit(self, connection: socket.socket, address: str) -> None:
        """Create the link of a connection whose client has this address, unless it is refused."""
        task: asyncio.Task[None]
        accepted = self._accept(address, lambda _: task.cancel())
        receiver = accepted.explainer() if isinstance(accepted, Refused) else accepted
        if receiver is None:
            connection.close()
            return
        link = SocketLink(receiver, self._settings.output_high_bytes)
        task = self._loop.create_task(self._make_link(connection, link, receiver, address))
        self._handshakes[task] = link
        self._links.add(link)
        task.add_done_callback(partial(self._link_made, connection, receiver))

    async def _make_link(self, connection: socket.socket, link: SocketLink, receiver: Receiver, address: str) -> None:
        try:
            arguments = self._prepared(connection)
            making = self._loop.connect_accepted_socket(lambda: link, connection, **arguments)
            await _linked(link, connection, making)
        except OSError as error:
            reason = f"the TLS handshake failed: {error.strerror or error}"
            self._note_failure(address, reason, error)
            receiver.link_lost(LinkLost(reason))

    def _prepared(self, connection: socket.socket) -> dict[str, Any]:
        """Return asyncio's arguments for TLS; close the connection if that fails, because nobody else would."""
        try:
            _no_delay(connection)
            return tls_arguments(None if self._contexts is None else self._contexts(), self._settings)
        except BaseException:
            connection.close()
            raise

    def _note_failure(self, address: str, reason: str, error: OSError) -> None:
        """Log a failed handshake; not those of clients that went away, and at most one a second."""
        now = self._loop.time()
        logged = isinstance(error, tls.SSLError) and now - self._failure_at >= FAILURE_SECONDS
        if logged:
            self._failure_at = now
        logger.log(logging.WARNING if logged else logging.DEBUG, "%s refused: %s", address or "a peer", reason)

    def _link_made(self, connection: socket.socket, receiver: Receiver, task: asyncio.Task[None]) -> None:
        """Clean up after a link was made or its handshake aborted."""
        del self._handshakes[task]
        if task.cancelled():
            connection.close()
            receiver.link_lost(None)


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
    """Open a link over a socket. See :func:`weirpool.transports.connect`."""
    context = client_context(url, ssl)
    loop = asyncio.get_running_loop()
    link = SocketLink(receiver if context is None else _Unanswered(receiver), settings.output_high_bytes)
    host = LOOPBACK.get(url.host, url.host)
    making: Awaitable[Any]
    if url.transport == "unix":
        connection = await _connected_to(loop, socket.socket(socket.AF_UNIX), url.path)
        making = loop.create_unix_connection(lambda: link, sock=connection)
    else:
        connection = await _connected(loop, host, url.port or 0)
        name = host if context is not None else None
        arguments = tls_arguments(context, settings)
        making = loop.create_connection(lambda: link, sock=connection, server_hostname=name, **arguments)
    try:
        await _linked(link, connection, making)
    finally:
        _detach(loop, connection)


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> SocketListener:
    """Accept links over sockets. See :func:`weirpool.transports.listen`."""
    return await listen_with(url, accept, settings, server_contexts(url, ssl))


async def listen_with(url: Url, accept: Accept, settings: Settings, contexts: Contexts | None) -> SocketListener:
    """Accept links over sockets, each with its own TLS context if there is one; see :func:`server_contexts`."""
    sockets = await listening_sockets(url)
    if url.transport != "unix":
        url = url.with_port(sockets[0].getsockname()[1])
    return SocketListener(url, sockets, accept, settings, contexts)


async def _linked(link: SocketLink, connection: socket.socket, making: Awaitable[Any]) -> None:
    """Wait until `link` is made over `connection`. If the task is canceled, let that fail, and abort the link.

    Canceling `making` is not safe on uvloop: it never reports the loss of a link that was just made, and nobody
    retrieves the error of a TLS handshake.
    """
    task = asyncio.ensure_future(making)
    try:
        await asyncio.wait((task,))
    except asyncio.CancelledError:
        task.add_done_callback(partial(_discard, link))
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        await asyncio.wait((task,))
        raise
    task.result()


def _discard(link: SocketLink, task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()
    if link.made:
        link.abort()


async def _connected(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """Return a socket connected to the first reachable address of `host`."""
    failure = OSError(f"{host} has no address")
    for family, kind, proto, _, address in await addresses_of(host, port, socket.SOCK_STREAM):
        try:
            return await _connected_to(loop, socket.socket(family, kind, proto), address)
        except OSError as error:
            failure = error  # There may be no IPv6, whatever the resolver says.
    raise failure


async def _connected_to(loop: asyncio.AbstractEventLoop, connection: socket.socket, address: Any) -> socket.socket:
    try:
        connection.setblocking(False)
        _no_delay(connection)
        await loop.sock_connect(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


def _no_delay(connection: socket.socket) -> None:
    # Writes are already batched; Nagle's algorithm would only delay them.
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _detach(loop: asyncio.AbstractEventLoop, connection: socket.socket) -> None:
    """Detach the descriptor if the loop owns it. asyncio's own loops use the socket object instead."""
    # uvloop closes the number, not the object, which would close it again after another thread has reused it.
    if not isinstance(loop, asyncio.BaseEventLoop):
        connection.detach()
