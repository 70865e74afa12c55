"""WebSocket: each frame of a session is one binary message, over the link of a socket.

What this file makes stands between two others: for the socket's link of :mod:`.tcp` it is the receiver, and for
whoever the WebSocket belongs to it is the link. So sockets, TLS and accepting are those of `tcp`.
"""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from math import inf
from typing import Any, Final, cast

from websockets.frames import OK_CLOSE_CODES, Close, CloseCode, Opcode

from ..errors import LimitExceeded, LinkLost, PenstockError, ProtocolError
from ..protocols import spec_of
from ..settings import Settings
from ..urls import Url
from ..wire.framing import MAX_MESSAGE_BYTES, Deframer
from . import tcp
from .base import REFUSING, Accept, Discard, Link, Listener, Receiver, Refused
from .lingering import LINGER, LONGEST, Linger
from .websocket_frames import FrameReader, control_frame, message_frames
from .websocket_handshake import ClientHandshake, ServerHandshake
from .websocket_runs import write_run

__all__ = ["WebSocketLink", "WebSocketListener", "connect", "listen"]

logger = logging.getLogger("penstock.transports")

LARGE: Final = 8_192
"""Bytes of one write that may take so long that a peer closes in the middle of them; see `WebSocketLink._end`."""


class WebSocketLink:
    """A link of messages, over that of a socket whose handshake is done."""

    __slots__ = (
        "_client",
        "_closing",
        "_cutter",
        "_ending",
        "_large_at",
        "_link",
        "_paused",
        "_reader",
        "pause_reading",
        "progress",
        "receiver",
        "resume_reading",
    )

    def __init__(self, link: tcp.SocketLink, receiver: Receiver, url: Url, settings: Settings, *, client: bool) -> None:
        self.receiver = receiver
        self._link = link
        self._client = client
        spec = spec_of(url.protocol)
        width = spec.prefix_bytes
        # Without lengths, each piece of output is a message, and where it ends means nothing.
        self._cutter = Deframer(width, MAX_MESSAGE_BYTES, 0, counts_itself=False) if width else None
        self._reader = FrameReader(
            masked=not client,
            max_bytes=settings.max_frame_bytes,
            width=width,
            # Nobody has said yet who they are.
            first_max_bytes=None if client or not width else settings.max_setup_frame_bytes,
            pass_over=spec.skips_oversized,
        )
        self._paused = False
        # Our Close is sent, or the link aborted; and the time that what is to follow may take.
        self._closing = False
        self._ending: Linger | None = None
        # When something large was written last.
        self._large_at = -inf
        self.progress = link.progress
        self.pause_reading = link.pause_reading
        self.resume_reading = link.resume_reading

    # For whom the link belongs to.

    def get_extra_info(self, name: str) -> Any:
        """Return what is known of the socket below."""
        return self._link.get_extra_info(name)

    def write(self, data: bytes) -> None:
        """Send the messages that are whole with `data`; what is written to a link that is closing is dropped."""
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
        """Return how many bytes the network has not taken yet."""
        pending = 0 if self._cutter is None else self._cutter.pending
        return self._link.get_write_buffer_size() + pending

    def close(self) -> None:
        """Close once everything is written and the peer has said that it closes, too. What it still sends is read."""
        self._say_close(Close(CloseCode.NORMAL_CLOSURE, ""))

    def abort(self) -> None:
        """Close now, without a word."""
        self._closing = True
        self._link.abort()

    # What the socket's link tells.

    def link_made(self, link: Link) -> None:
        """Nothing: it was made before its handshake."""

    def received(self, data: bytes) -> None:
        """Take one read."""
        reader = self._reader
        messages = reader.feed(data)
        # Without a whole message, too: a long one takes its time, and shows that the peer lives.
        self.receiver.received(messages)
        if reader.passed is not None:
            self._hand_on_passed()
        if reader.ping is not None:
            self._answer_ping()
        if reader.breach is not None or reader.close is not None:
            self._end(reader.breach or reader.close)

    def _hand_on_passed(self) -> None:
        """Hand on messages that were passed over, and what came after each."""
        reader = self._reader
        while reader.passed is not None:
            for piece in reader.take_passed():
                self.receiver.received(piece)
            messages = reader.feed(b"")
            if messages:
                self.receiver.received(messages)

    def writing_paused(self) -> None:
        """Tell that the link is full."""
        self._paused = True
        self.receiver.writing_paused()

    def writing_resumed(self) -> None:
        """Tell that the link has room again."""
        self._paused = False
        self._answer_ping()
        self.receiver.writing_resumed()

    def link_lost(self, error: Exception | None) -> None:
        """Tell that the link is gone, and why."""
        if self._ending is not None:
            self._ending.cancel()
        self.receiver.link_lost(self._reason(error))

    # Control frames.

    def _answer_ping(self) -> None:
        """Answer the last ping of a read, or of all the time that the peer does not read (RFC 6455, 5.5.3).

        So a flood of pings, which THREATS 8 tells of, costs no memory.
        """
        ping = self._reader.ping
        if ping is not None and not self._paused and not self._closing:
            self._reader.ping = None
            self._link.write(control_frame(Opcode.PONG, ping, self._client))

    def _say_close(self, close: Close, linger: float = 0.0) -> None:
        if not self._closing:
            self._closing = True
            # A Close without a code is answered in kind: 1005 never travels (RFC 6455, 7.4.1).
            payload = b"" if close.code == CloseCode.NO_STATUS_RCVD else close.serialize()
            self._link.write(control_frame(Opcode.CLOSE, payload, self._client))
            self._ending = Linger(linger or LINGER, self._link.progress, self._link.abort)

    def _end(self, close: Close | None) -> None:
        """End the link with the peer's Close, or the one that it has deserved.

        A peer may close in the middle of a message of ours, because it takes the time of it for silence; River's own
        implementation does. It still reads, and takes the message if it gets all of it; what is on its way, between
        this system and the peer's, nobody knows. So the link is kept until the peer ends it, and counts as alive.
        """
        loop = asyncio.get_running_loop()
        if self._reader.breach is None and not self._closing and loop.time() - self._large_at < LONGEST:
            self._link.linger = LONGEST
            self.progress = _always_moving
        if close is not None:
            self._say_close(close, self._link.linger)
        # RFC 6455, 7.1.1: the server closes the connection first, and the client waits for that.
        if not self._client:
            self._link.close()

    def _reason(self, error: Exception | None) -> Exception | None:
        """Return why the link is lost, when the socket's link gives `error`."""
        breach, close = self._reader.breach, self._reader.close
        if breach is not None:
            kind = LimitExceeded if breach.code == CloseCode.MESSAGE_TOO_BIG else ProtocolError
            return kind(f"the peer broke the WebSocket protocol: {breach.reason}")
        if close is not None and close.code not in OK_CLOSE_CODES:
            return LinkLost(f"the peer closed the WebSocket with {close.code}: {close.reason!r}", close.code)
        if error is None and close is None and not self._closing:
            return LinkLost("the connection ended without the closing handshake of WebSocket")
        return error


def _always_moving() -> tuple[int, int]:
    """Report output that moves, as `Link.progress` does, where nobody can know."""
    return LARGE, int(asyncio.get_running_loop().time() * 1e6)


def _hand_over(
    socket: tcp.SocketLink,
    handshake: ClientHandshake | ServerHandshake,
    receiver: Receiver,
    url: Url,
    settings: Settings,
    *,
    client: bool,
) -> None:
    """Make the link over a socket whose handshake is done, and tell its receiver of it."""
    link = socket.receiver = WebSocketLink(socket, receiver, url, settings, client=client)
    receiver.link_made(link)
    if handshake.rest:
        link.received(handshake.rest)


class _Connecting(Discard):
    """The receiver of a client's socket until the handshake is done: then, or when it has failed, `done` is done."""

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
        _hand_over(link, self._handshake, self._receiver, self._url, self._settings, client=True)

    def link_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionResetError())

    def give_up(self) -> None:
        if self._link is not None:
            self._link.abort()


class _Accepted(Discard):
    """The receiver of a server's socket until the handshake is done; so long it is listed in `handshakes`."""

    def __init__(self, receiver: Receiver | Refused, url: Url, settings: Settings, handshakes: set[_Accepted]) -> None:
        self.refused = isinstance(receiver, Refused)
        self._handshake = ServerHandshake(url, settings, receiver.reason if isinstance(receiver, Refused) else "")
        self._receiver = Discard() if isinstance(receiver, Refused) else receiver
        self._url = url
        self._settings = settings
        self._handshakes = handshakes
        self._link: tcp.SocketLink | None = None
        self._error: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None

    def link_made(self, link: Link) -> None:
        """Wait for the request, for some time."""
        self._link = cast(tcp.SocketLink, link)
        self._handshakes.add(self)
        self._timer = asyncio.get_running_loop().call_later(self._settings.connect_timeout, self.give_up)

    def received(self, data: bytes) -> None:
        link = self._link
        if link is None or self._error is not None:
            return
        try:
            if not self._handshake.feed(data):
                return
        except ProtocolError as error:
            self._refuse(link, error, self._handshake.answer)
            return
        link.write(self._handshake.answer)
        self._stop()
        _hand_over(link, self._handshake, self._receiver, self._url, self._settings, client=False)

    def link_lost(self, error: Exception | None) -> None:
        self._stop()
        if self._error is not None:
            logger.info("%s: a peer is refused: %s", self._url.place, self._error)
        self._receiver.link_lost(self._error or error)

    def give_up(self) -> None:
        """Drop a connection whose request does not come."""
        if self._link is not None:
            if self._error is None:
                self._error = LinkLost("no WebSocket handshake")
            self._link.abort()

    def decline(self) -> None:
        """Answer that the server is closing, whether or not the request has begun."""
        if self._link is not None and self._error is None:
            self._refuse(self._link, LinkLost("the server is closing"), self._handshake.unavailable())

    def _refuse(self, link: Link, error: Exception, answer: bytes) -> None:
        self._error = error
        link.write(answer)
        link.close()

    def _stop(self) -> None:
        self._handshakes.discard(self)
        if self._timer is not None:
            self._timer.cancel()


class WebSocketListener:
    """Accepts connections, and makes links of those that open a WebSocket."""

    def __init__(self, listener: Listener, handshakes: set[_Accepted]) -> None:
        self.url = listener.url
        self._listener = listener
        self._handshakes = handshakes

    async def close(self) -> None:
        """Accept no more links, and give up those that are still in their handshake."""
        await self._listener.close()
        for accepted in list(self._handshakes):
            accepted.decline()


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
    """Open a WebSocket. See :func:`penstock.transports.connect`."""
    host = tcp.ALL_INTERFACES.get(url.host, url.host)
    connecting = _Connecting(ClientHandshake(url, host, settings), receiver, url, settings)
    try:
        await tcp.connect(url, connecting, settings, ssl)
        await connecting.done
    except BaseException:
        connecting.give_up()
        raise


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> WebSocketListener:
    """Accept WebSockets. See :func:`penstock.transports.listen`."""
    handshakes: set[_Accepted] = set()

    def accept_socket(address: str) -> _Accepted | Refused:
        receiver = accept(address)
        if isinstance(receiver, Refused) and sum(accepted.refused for accepted in handshakes) >= REFUSING:
            return receiver
        return _Accepted(receiver, url, settings, handshakes)

    return WebSocketListener(await tcp.listen(url, accept_socket, settings, ssl), handshakes)
