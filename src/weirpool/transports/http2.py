"""HTTP/2, plain (`h2c`) and over TLS (`h2`): each stream of a connection is a link, whose bytes are in DATA frames.

A client sends one POST, and the server answers 200 at once. Then both bodies are streams of bytes. Frames of the
session have a length prefix, as on TCP, so the boundaries of DATA frames have no meaning.
"""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from contextlib import suppress
from functools import partial
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

from h2 import events
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

from .. import errors
from ..errors import ConnectError, LocalError
from ..networks import networks
from ..protocols import PROTOCOLS, spec_of
from ..settings import Settings
from ..texts import shown
from ..urls import Url
from . import tcp
from .base import MAX_REFUSED_LINKS, Accept, HangUp, Receiver, Refused, forget, settled
from .forwarded import client_address
from .http2_connection import ALPN, Http2Connection, code_name
from .origins import are_allowed
from .places import Places
from .streams import Slot, StreamLink, StreamListener
from .tls import client_context, server_contexts, with_alpn

__all__ = ["ClientConnection", "Http2Listener", "ServerConnection", "connect", "listen"]

logger = logging.getLogger("weirpool.transports")

OWN_HEADERS: Final = frozenset(
    {"content-type", "host", "connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"}
)
"""Headers that the request sets itself, or that HTTP/2 does not allow: RFC 9113, section 8.2.2."""
CLOSING: Final = Refused("the server is closing")
TOO_MANY: Final = "too many clients wait for an answer"
UNOPENED: Final = "before the link was open; check that it uses HTTP/2 on this port"
REASON: Final = b"reason"
"""The header of a response that names the limit that was reached."""

TYPES: Final = frozenset({"", *(spec_of(protocol).content_type for protocol in PROTOCOLS)})
"""The content types of servers. Older ones have that of one protocol for all of them, or none."""
REDIRECTED: Final = "the server has moved ({status}); redirects are not followed, connect to the new address"
REASONS: Final = {
    **{status: REDIRECTED.format(status=status.decode()) for status in (b"301", b"302", b"303", b"307", b"308")},
    b"401": "the server wants credentials (401); pass them with Settings.headers",
    b"403": "the server refused this client (403); check its origin, and the credentials for proxies",
    b"404": "the server has nothing at that path (404); check the path of the URL",
    b"405": "the server accepts no POST at that path (405); check that it serves {protocol} there",
    b"415": "the server does not accept {type} (415); check that it serves {protocol} at that path",
    b"503": "the server accepts no more connections now (503); try again later",
}


class ClientConnection(Http2Connection):
    """The connection of a client, with one link; `opened` is done when the server has answered.

    Raises LocalError if `Settings.headers` has one that is reserved.
    """

    def __init__(self, url: Url, receiver: Receiver, settings: Settings) -> None:
        super().__init__(url, settings, is_client=True)
        self._receiver = receiver
        for name, _ in settings.headers:
            if name.lower() in OWN_HEADERS:
                raise LocalError(f"Settings.headers has {name}, which is reserved for HTTP/2 or the request; omit it")
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def link_made(self, link: Any) -> None:
        """Open the stream."""
        super().link_made(link)
        if not self._done:
            host = f"[{self._url.host}]" if ":" in self._url.host else self._url.host
            headers = [
                (":method", "POST"),
                (":scheme", "https" if self._url.transport == "h2" else "http"),
                (":authority", f"{host or 'localhost'}:{self._url.port}"),
                (":path", quote(self._url.path or "/")),
                ("content-type", spec_of(self._url.protocol).content_type),
                *((name.lower(), value) for name, value in self._settings.headers),
            ]
            self._h2.send_headers(self._h2.get_next_available_stream_id(), headers)
            self.flush()

    def handle(self, event: events.Event) -> None:
        """Take one event of h2."""
        if not isinstance(event, events.ResponseReceived):
            super().handle(event)
            return
        headers = dict(event.headers)
        status = headers.get(b":status", b"")
        spec = spec_of(self._url.protocol)
        type = headers.get(b"content-type", b"").partition(b";")[0].strip().decode(errors="replace").lower()
        if status == b"200" and type not in TYPES:
            self._refused(f"the server answered with {shown(type)}, not {spec.content_type}; check the path of the URL")
        elif status != b"200":
            reason = REASONS.get(status, "").format(protocol=spec.name, type=spec.content_type)
            reason = reason or f"the server answered with status {status.decode(errors='replace')}"
            if REASON in headers:
                reason = f"{shown(headers[REASON].decode(errors='replace'))}; {reason}"
            self._refused(reason)
        elif not self.opened.done():
            link = StreamLink(self, event.stream_id, self._receiver, self._settings.output_high_bytes)
            self._links[event.stream_id] = link
            self.opened.set_result(None)
            self._receiver.link_made(link)

    def link_lost(self, error: Exception | None) -> None:
        """Close the link, or report that it could not be opened."""
        super().link_lost(error)
        self._fail_open(str(error) if error is not None else f"the server closed the connection {UNOPENED}")

    def ended(self, link: StreamLink) -> None:
        """Close the connection, which closes the link."""
        self.hang_up()

    def reset(self, link: StreamLink) -> None:
        """Abort the connection, which closes the link."""
        self.drop()

    def fail(self, error: Exception, code: ErrorCodes | None) -> None:
        """Close the connection with an error, even if it is not open yet."""
        super().fail(error, code)
        self._fail_open(f"{error} {UNOPENED}")
        self.drop()

    def _stream_reset(self, event: events.StreamReset) -> None:
        super()._stream_reset(event)
        self._refused(f"the server refused the stream ({code_name(event.error_code)})")

    def give_up(self) -> None:
        """Abort the connection, because nobody waits for its opening any more."""
        forget(self.opened)
        if self._socket is not None:
            self._socket.abort()

    def _fail_open(self, reason: str) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectError(f"cannot connect to {self._url.place}: {reason}"))

    def _refused(self, reason: str) -> None:
        self._fail_open(reason)
        self.drop()

    def _alpn_failed(self) -> None:
        self._refused(f"the server does not offer HTTP/2 on this port (TLS did not negotiate ALPN {ALPN!r})")


class ServerConnection(Http2Connection):
    """An accepted connection with any number of links; `over` is done when its socket is closed.

    The first link gets `receiver`. It is None for the connection of a proxy, whose links may have different clients.
    """

    def __init__(self, listener: Http2Listener, receiver: Receiver | Refused | None, address: str) -> None:
        settings = listener.settings
        shared = receiver is None
        streams = settings.max_connections if shared else 0
        super().__init__(listener.url, settings, is_client=False, address=address, max_streams=streams)
        self._listener = listener
        self._content_type = spec_of(listener.url.protocol).content_type
        self.slot = Slot(listener, partial(self.hang_up, ErrorCodes.NO_ERROR))
        self.slot.address = address
        self.slot.shared = shared
        if isinstance(receiver, Refused):
            self.slot.refusal = receiver
        else:
            self.slot.receiver = receiver
        self._declined = False
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def link_made(self, link: Any) -> None:
        """Start waiting for a stream."""
        super().link_made(link)
        self.slot.reserve()

    def handle(self, event: events.Event) -> None:
        """Take one event of h2."""
        if isinstance(event, events.RequestReceived):
            self._request_received(event)
        else:
            super().handle(event)

    def link_lost(self, error: Exception | None) -> None:
        """Close all links, and release the slot."""
        super().link_lost(error)
        self.slot.lose(self._error or error)
        self._listener.remove(self)
        if not self.over.done():
            self.over.set_result(None)

    def ended(self, link: StreamLink) -> None:
        """Remove a stream that has ended in order. The last one of a closing server is removed with the socket."""
        if self._listener.draining and len(self._links) == 1:
            self.hang_up()
        else:
            self._links.pop(link.stream_id, None)
            link.lose(None)
            self.stream_over()

    def reset(self, link: StreamLink) -> None:
        """End a stream now."""
        self._links.pop(link.stream_id, None)
        with suppress(ProtocolError):
            self._h2.reset_stream(link.stream_id, ErrorCodes.CANCEL)
        self.flush()
        link.lose(None)
        if (self._done or self._listener.draining) and not self._links:
            self.drop()
        self.stream_over()

    def stream_over(self) -> None:
        """Wait for another stream if the last one has ended."""
        if not self._links and not self._done:
            self.slot.reserve()
        self._count()

    @property
    def idle(self) -> bool:
        """True if it has no links."""
        return not self._links

    def _error_status(self, headers: list[tuple[bytes, bytes]]) -> int:
        """Return the error status for a request with these headers; 0 if it is valid."""
        values: dict[bytes, list[str]] = {}
        for name, value in headers:
            values.setdefault(name, []).append(value.decode("latin-1"))
        path = values.get(b":path", [""])[0].partition("?")[0]
        if unquote_to_bytes(path.encode("latin-1")) != (self._url.path or "/").encode():
            return 404
        if values.get(b":method") != ["POST"]:
            return 405
        # THREATS 83: a page of any site can send this request from its visitor's browser. It cannot omit the origin,
        # and without a preflight request it can only use the content types of forms.
        hosts = {*values.get(b":authority", ()), *values.get(b"host", ())}
        if not are_allowed(values.get(b"origin", ()), hosts, self._settings.origins):
            return 403
        types = [value.partition(";")[0].strip(" \t").lower() for value in values.get(b"content-type", ())]
        return 0 if types == [self._content_type] else 415

    def _client_address(self, headers: list[tuple[bytes, bytes]]) -> str:
        """Return the address of the client of a request with these headers. A proxy sends those of many clients."""
        if not self.slot.shared:
            return self.slot.address
        forwarded, forwarded_for = (
            [value.decode("latin-1") for name, value in headers if name == wanted]
            for wanted in (b"forwarded", b"x-forwarded-for")
        )
        proxies = networks(self._settings.trusted_proxies)
        return client_address(self.slot.address, forwarded, forwarded_for, proxies)

    def _request_received(self, event: events.RequestReceived) -> None:
        """Create a link for a stream that the peer has opened."""
        try:
            address = self._client_address(event.headers)
        except errors.ProtocolError as error:
            self._decline(event.stream_id, self.slot.address, 400, str(error))
            return
        status = self._error_status(event.headers)
        if status:
            wanted = f"this server serves {self._url.protocol}, whose content-type is {self._content_type}"
            self._decline(event.stream_id, address, status, wanted if status == 415 else "")
            return
        receiver = self.slot.next_receiver(address)
        if isinstance(receiver, Refused):
            self._decline(event.stream_id, address, 503, receiver.reason)
            return
        self.slot.receiver = receiver
        try:
            self._h2.send_headers(event.stream_id, [(":status", "200"), ("content-type", self._content_type)])
        except ProtocolError:
            # The stream was reset in the same read. That event will find no link, so it is counted here.
            if self.slot.shared:
                self.slot.lose(None)
            self.stream_over()
            return
        self.slot.release()
        link = StreamLink(self, event.stream_id, receiver, self._settings.output_high_bytes)
        self._links[event.stream_id] = link
        self.flush()
        receiver.link_made(link)

    def _decline(self, stream_id: int, address: str, status: int, reason: str = "") -> None:
        """Refuse a request. It counts as a stream that ended at once."""
        if not self._declined:
            # One line per connection, because a peer can open many streams.
            self._declined = True
            logger.info("%s: refused a peer: its request was answered with %d", self._url.place, status)
        headers = [(":status", str(status)), *([("allow", "POST")] if status == 405 else [])]
        if reason:
            headers.append((REASON.decode(), reason))
        with suppress(ProtocolError):
            self._h2.send_headers(stream_id, headers, end_stream=True)
            self._h2.reset_stream(stream_id, ErrorCodes.NO_ERROR)
        self.stream_over()

    def _alpn_failed(self) -> None:
        logger.warning("refused %s: TLS did not negotiate ALPN %r", self.slot.address, ALPN)
        self._done = True
        if self._socket is not None:
            self._socket.abort()


class Http2Listener(StreamListener[ServerConnection]):
    """Accepts connections over sockets, and links on them."""

    def __init__(self, url: Url, accept: Accept, settings: Settings) -> None:
        super().__init__(url, accept, settings)
        self._sockets: tcp.SocketListener | None = None
        self._refused = Places[ServerConnection](MAX_REFUSED_LINKS, lambda each: each.slot.evict(TOO_MANY))

    async def open(self, ssl: tls.SSLContext | None) -> None:
        """Start to listen."""
        self._sockets = await tcp.listen_with(
            self.url, self._connected, self.settings, server_contexts(self.url, ssl, ALPN)
        )
        self.url = self._sockets.url

    async def close(self) -> None:
        """Accept no more connections or links, and close connections without links."""
        if self._sockets is not None:
            await self._sockets.close()
        self.draining = CLOSING
        for connection in list(self.connections):
            if connection.idle:
                connection.drop()
        await settled([connection.over for connection in self.connections if connection.idle])

    async def ended(self, seconds: float) -> None:
        """Wait for the ends of all links. See `Listener.ended`."""
        if self._sockets is not None:
            await self._sockets.ended(seconds)

    def hand_over(self) -> list[int]:
        """Leave the sockets to another process. See `Listener.hand_over`."""
        return [] if self._sockets is None else self._sockets.hand_over()

    def remove(self, connection: ServerConnection) -> None:
        """Remove a closed connection."""
        self.connections.discard(connection)
        self._refused.leave(connection)

    def _connected(self, address: str, hang_up: HangUp | None) -> Receiver | Refused:
        connection: ServerConnection
        proxied = address in networks(self.settings.trusted_proxies)
        receiver = None if proxied else self.accept(address, lambda reason: connection.slot.evict(reason))
        now = asyncio.get_running_loop().time()
        if isinstance(receiver, Refused):
            if not self._refused.make_room(now):
                return Refused(receiver.reason)
        elif receiver is None and len(self.connections) >= self.settings.max_connections:
            return Refused("too many connections of proxies are open")
        connection = ServerConnection(self, receiver, address)
        connection.slot.cut = hang_up
        if isinstance(receiver, Refused):
            self._refused.take(connection, now)
        self.connections.add(connection)
        return connection


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
    """Open a link over HTTP/2. See :func:`weirpool.transports.connect`."""
    context = client_context(url, ssl)
    if context is not None:
        with_alpn(context, ALPN)
    connection = ClientConnection(url, receiver, settings)
    try:
        await tcp.connect(url, connection, settings, context)
        await connection.opened
    except BaseException:
        connection.give_up()
        raise


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> Http2Listener:
    """Accept links over HTTP/2. See :func:`weirpool.transports.listen`."""
    listener = Http2Listener(url, accept, settings)
    await listener.open(ssl)
    return listener
