"""WebSocket: each frame of a session is one binary message, over the link of a socket.

The classes of this module are receivers of :mod:`.tcp` links, and links for the receivers above. Sockets, TLS and
accepting are those of `tcp`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from contextlib import suppress
from math import inf
from typing import Any, Final, cast

from websockets.datastructures import Headers
from websockets.frames import OK_CLOSE_CODES, Close, CloseCode, Opcode

from ..core.rates import Rate
from ..errors import LimitExceeded, LinkLost, PenstockError, ProtocolError
from ..ledger import Unclaimed
from ..networks import networks
from ..protocols import spec_of
from ..settings import Settings
from ..urls import Url
from ..wire.framing import MAX_MESSAGE_BYTES, Deframer
from . import tcp
from .base import MAX_REFUSED_LINKS, Accept, Discard, Link, Listener, Receiver, Refused, forget
from .forwarded import client_address
from .lingering import LINGER, MAX_LINGER, Linger
from .streams import RATE_SECONDS
from .websocket_frames import FrameReader, control_frame, message_frames
from .websocket_handshake import ClientHandshake, ServerHandshake
from .websocket_runs import write_run

__all__ = ["WebSocketLink", "WebSocketListener", "connect", "listen"]

logger = logging.getLogger("penstock.transports")

LARGE: Final = 8_192
"""A write of this size may take so long that a peer closes before its end; see `WebSocketLink._end`."""


class WebSocketLink:
    """A link of messages, over the link of a socket whose handshake is complete."""

    __slots__ = (
        "_client", "_closing", "_controls", "_cutter", "_ending", "_large_at", "_link", "_paused", "_reader",
        "progress", "receiver"
    )  # fmt: skip
    unread = 0

    def __init__(self, link: tcp.SocketLink, receiver: Receiver, url: Url, settings: Settings, *, client: bool) -> None:
        self.receiver = receiver
        self._link = link
        self._client = client
        spec = spec_of(url.protocol)
        width = spec.prefix_bytes
        # Without a length prefix, each chunk of output is a message, whose boundaries have no meaning.
        self._cutter = Deframer(width, MAX_MESSAGE_BYTES, 0, counts_itself=False) if width else None
        self._reader = FrameReader(
            masked=not client,
            max_bytes=settings.max_frame_bytes,
            width=width,
            # The client is still unknown.
            first_max_bytes=None if client or not width else settings.max_setup_frame_bytes,
            skip_long=spec.skips_oversized,
            max_empty=settings.max_empty_fragments,
        )
        self._controls = Rate(settings.max_control_frames, RATE_SECONDS)
        # Closing: we sent Close or aborted the link; `_ending` is the limit for the time after that.
        self._paused = self._closing = False
        self._ending: Linger | None = None
        self._large_at = -inf  # The time of the last large write.
        self.progress = link.progress

    # Calls of the receiver; see penstock.transports.base.Link.

    @property
    def unfinished(self) -> int:
        """The bytes of an incomplete message."""
        return self._reader.unfinished

    def get_extra_info(self, name: str) -> Any:
        """Return information about the socket."""
        return self._link.get_extra_info(name)

    def is_closing(self) -> bool:
        """Return whether the socket's link is closing."""
        return self._link.is_closing()

    def pause_reading(self) -> None:
        """Stop reading."""
        self._link.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._link.resume_reading()

    def write(self, data: bytes) -> None:
        """Send the messages that `data` completes, or discard them if the link is closing."""
        if self._closing:
            return
        if len(data) >= LARGE:
            self._large_at = asyncio.get_running_loop().time()
        cutter = self._cutter
        if cutter is None:
            messages = [data]
        else:
            if not cutter.pending:
                frames, taken = write_run(data, cutter.prefix, self._client)
                if frames:
                    self._link.write(frames)
                    if taken == len(data):
                        return
                    data = data[taken:]
            messages = cutter.split(data)
        for chunk in message_frames(messages, self._client):
            self._link.write(chunk)

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the network has not accepted yet."""
        pending = 0 if self._cutter is None else self._cutter.pending
        return self._link.get_write_buffer_size() + pending

    def close(self) -> None:
        """Close after all output is written. Input is discarded until the peer closes too."""
        self._send_close(Close(CloseCode.NORMAL_CLOSURE, ""))

    def abort(self) -> None:
        """Close now, without a Close frame."""
        self._closing = True
        self._reader.forget()
        self._link.abort()

    # Calls of the socket's link; see penstock.transports.base.Receiver.

    def link_made(self, link: Link) -> None:
        """Do nothing: the socket's link was made before the handshake."""

    def received(self, data: bytes) -> None:
        """Process one read. After our Close, nobody would use it, and it is not counted."""
        if self._closing:
            return
        reader = self._reader
        messages = reader.feed(data)
        # Also without a complete message, because a part of a long one shows that the peer is alive.
        self.receiver.received(messages)
        if reader.skipped is not None:
            self._deliver_skipped()
        if reader.controls:
            reader.limit_controls(self._controls, asyncio.get_running_loop().time())
        if reader.ping is not None:
            self._answer_ping()
        if reader.violation is not None or reader.close is not None:
            self._end(reader.violation or reader.close)

    def _deliver_skipped(self) -> None:
        """Deliver the skipped messages, and the messages after each."""
        reader = self._reader
        while reader.skipped is not None:
            for piece in reader.take_skipped():
                self.receiver.received(piece)
            messages = reader.feed(b"")
            if messages:
                self.receiver.received(messages)

    def writing_paused(self) -> None:
        """Tell the receiver to pause."""
        self._paused = True
        self.receiver.writing_paused()

    def writing_resumed(self) -> None:
        """Answer the last ping, and tell the receiver to continue."""
        self._paused = False
        self._answer_ping()
        self.receiver.writing_resumed()

    def link_lost(self, error: Exception | None) -> None:
        """Report the loss to the receiver."""
        if self._ending is not None:
            self._ending.cancel()
        self.receiver.link_lost(self._reason(error))

    # Control frames.

    def _answer_ping(self) -> None:
        """Answer only the last ping of a read, or while the peer did not read (RFC 6455, 5.5.3; THREATS 8)."""
        ping = self._reader.ping
        if ping is not None and not self._paused and not self._closing:
            self._reader.ping = None
            self._link.write(control_frame(Opcode.PONG, ping, self._client))

    def _send_close(self, close: Close) -> None:
        if self._closing:
            return
        self._closing = True
        self._reader.forget()
        # A Close without a code is answered without one: 1005 is never sent (RFC 6455, 7.4.1).
        payload = b"" if close.code == CloseCode.NO_STATUS_RCVD else close.serialize()
        self._link.write(control_frame(Opcode.CLOSE, payload, self._client))
        # RFC 6455, 7.1.1: the server closes the connection first, and the client waits for that.
        if self._client:
            self._ending = Linger(self._link.linger or LINGER, self._link.progress, self._link.abort)
        else:
            self._link.close()

    def _end(self, close: Close | None) -> None:
        """End the link with `close`: the answer to the peer's Close, or the Close for its violation.

        A peer may close while it receives a long message from us, because it mistakes the delay for silence, as River's
        reference does. It still reads, and accepts the message if it is complete. Progress between both systems is not
        visible here, so the link is kept until the peer closes it, and counts as alive.
        """
        loop = asyncio.get_running_loop()
        if self._reader.violation is None and not self._closing and loop.time() - self._large_at < MAX_LINGER:
            self._link.linger = MAX_LINGER
            self.progress = _assumed_progress
        if close is not None:
            self._send_close(close)

    def _reason(self, error: Exception | None) -> Exception | None:
        """Return the reason of the loss; `error` is the reason of the socket's link."""
        violation, close = self._reader.violation, self._reader.close
        if violation is not None:
            kind = LimitExceeded if violation.code == CloseCode.MESSAGE_TOO_BIG else ProtocolError
            return kind(f"the peer violated the WebSocket protocol: {violation.reason}")
        if close is not None and close.code not in OK_CLOSE_CODES:
            return LinkLost(f"the peer closed the WebSocket with {close.code}: {close.reason!r}", close.code)
        if error is None and close is None and not self._closing:
            return LinkLost("the connection ended without a WebSocket closing handshake")
        return error


def _assumed_progress() -> tuple[int, int]:
    """Return continuous progress, for use as `Link.progress` while the actual progress is unknown."""
    return LARGE, int(asyncio.get_running_loop().time() * 1e6)


def _start_link(
    socket: tcp.SocketLink,
    handshake: ClientHandshake | ServerHandshake,
    receiver: Receiver,
    url: Url,
    settings: Settings,
    *,
    client: bool,
) -> None:
    """Create the link over a socket whose handshake is complete, and pass it to its receiver."""
    link = socket.receiver = WebSocketLink(socket, receiver, url, settings, client=client)
    receiver.link_made(link)
    rest = handshake.take_rest()
    if rest:
        link.received(rest)


class _Connecting(Discard):
    """The receiver of a client's socket during the handshake; `done` is done when it has succeeded or failed."""

    def __init__(self, handshake: ClientHandshake, receiver: Receiver, url: Url, settings: Settings) -> None:
        self._handshake = handshake
        self._receiver = receiver
        self._url = url
        self._settings = settings
        self._link: tcp.SocketLink | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def link_made(self, link: Link) -> None:
        self._link = cast(tcp.SocketLink, link)
        link.write(self._handshake.request)

    def received(self, data: bytes) -> None:
        link = self._link
        if link is None or self.done.done():
            return
        try:
            if not self._handshake.feed(data):
                return
        except PenstockError as error:
            self.done.set_exception(error)
            return
        self.done.set_result(None)
        _start_link(link, self._handshake, self._receiver, self._url, self._settings, client=True)

    def link_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionResetError())

    def abort(self) -> None:
        forget(self.done)
        if self._link is not None:
            self._link.abort()


class _Accepted(Discard):
    """The receiver of a server's socket during the handshake; until its end it is in `handshakes`.

    The client of a trusted proxy is accepted when its address is known, until which `receiver` is None.
    """

    def __init__(self, accept: Accept, address: str, url: Url, settings: Settings, handshakes: set[_Accepted]) -> None:
        self._accept = accept
        self._address = address
        self.receiver: Receiver | Refused | None = None
        self._handshake = ServerHandshake(url, settings, self._refuses)
        self._url = url
        self._settings = settings
        self._handshakes = handshakes
        self._link: tcp.SocketLink | None = None
        self._error: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._unclaimed = Unclaimed(address, settings, self._must_release)

    def _refuses(self, headers: Headers) -> str:
        """Return why the client is refused, if it is. See `ServerHandshake`."""
        if self.receiver is None:
            told = headers.get_all("Forwarded"), headers.get_all("X-Forwarded-For")
            self.receiver = self._accept(client_address(self._address, *told, networks(self._settings.trusted_proxies)))
        return self.receiver.reason if isinstance(self.receiver, Refused) else ""

    def link_made(self, link: Link) -> None:
        """Start waiting for the request, for at most `connect_timeout`."""
        self._link = cast(tcp.SocketLink, link)
        self._handshakes.add(self)
        self._timer = self._loop.call_later(self._settings.connect_timeout, self.abort)

    def received(self, data: bytes) -> None:
        link = self._link
        if link is None or self._error is not None:
            return
        try:
            if not self._handshake.feed(data):
                self._unclaimed.count(self._handshake.held)
                return
        except ProtocolError as error:
            self._refuse(link, error, self._handshake.answer)
            return
        link.write(self._handshake.answer)
        self._stop()
        receiver = cast(Receiver, self.receiver)
        _start_link(link, self._handshake, receiver, self._url, self._settings, client=False)

    def link_lost(self, error: Exception | None) -> None:
        self._stop()
        if self._error is not None:
            logger.info("%s: refused a peer: %s", self._url.place, self._error)
        receiver = self._accept(self._address) if self.receiver is None else self.receiver
        if not isinstance(receiver, Refused):
            receiver.link_lost(self._error or error)

    def _must_release(self) -> None:
        # From the ledger, in any thread.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        """Abort a connection whose request takes too much memory."""
        held = self._unclaimed.size
        if held:
            self._error = LimitExceeded(f"{held} bytes of a WebSocket handshake, and a limit of bytes is reached")
            self.abort()

    def abort(self) -> None:
        """Abort a connection whose request was not received in time."""
        if self._link is not None:
            if self._error is None:
                self._error = LinkLost("no WebSocket handshake in time")
            self._link.abort()

    def decline(self) -> None:
        """Answer that the server is closing, even if no request was received."""
        if self._link is not None and self._error is None:
            self._refuse(self._link, LinkLost("the server is closing"), self._handshake.unavailable())

    def _refuse(self, link: Link, error: Exception, answer: bytes) -> None:
        self._error = error
        # The rest of the request is not needed while the answer is sent.
        self._handshake.take_rest()
        self._unclaimed.count(0)
        link.write(answer)
        link.close()

    def _stop(self) -> None:
        self._handshakes.discard(self)
        self._unclaimed.count(0)
        if self._timer is not None:
            self._timer.cancel()


class WebSocketListener:
    """Accepts connections, and creates links for those that open a WebSocket."""

    def __init__(self, listener: Listener, handshakes: set[_Accepted]) -> None:
        self.url = listener.url
        self.ended = listener.ended
        self.hand_over = listener.hand_over
        self._listener = listener
        self._handshakes = handshakes

    async def close(self) -> None:
        """Accept no more links, and decline unfinished handshakes."""
        await self._listener.close()
        for accepted in list(self._handshakes):
            accepted.decline()


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
    """Open a WebSocket. See :func:`penstock.transports.connect`."""
    host = tcp.LOOPBACK.get(url.host, url.host)
    connecting = _Connecting(ClientHandshake(url, host, settings), receiver, url, settings)
    try:
        await tcp.connect(url, connecting, settings, ssl)
        await connecting.done
    except BaseException:
        connecting.abort()
        raise


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> WebSocketListener:
    """Accept WebSockets. See :func:`penstock.transports.listen`."""
    handshakes: set[_Accepted] = set()

    def accept_socket(address: str) -> _Accepted | Refused:
        receiver = None if address in networks(settings.trusted_proxies) else accept(address)
        if receiver is None or isinstance(receiver, Refused):
            limit = settings.max_connections if receiver is None else MAX_REFUSED_LINKS
            if sum(type(each.receiver) is type(receiver) for each in handshakes) >= limit:
                return Refused("too many clients wait for an answer")
        accepted = _Accepted(accept, address, url, settings, handshakes)
        accepted.receiver = receiver
        return accepted

    listener = await tcp.listen(url, accept_socket, settings, ssl)
    url = listener.url
    return WebSocketListener(listener, handshakes)
