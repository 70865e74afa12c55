"""WebSocket links of an ASGI server: it owns the sockets, and a web framework decides who may open links."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple

from ..errors import LimitExceeded, LinkLost, ProtocolError
from ..networks import networks
from ..protocols import spec_of
from ..settings import Settings
from ..urls import Url
from ..wire.framing import MAX_MESSAGE_BYTES, Deframer
from .base import BEGINNING_BYTES, SCOPE, Accept, Receiver, Refused
from .forwarded import client_address
from .lingering import LINGER, Linger
from .origins import are_allowed, refused_origin

__all__ = ["AsgiLink", "AsgiListener", "Message", "Receive", "Scope", "Send"]

logger = logging.getLogger("weirpool.transports")

Scope = Mapping[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]

# RFC 6455, 7.4.1.
NORMAL: Final = 1000
GOING_AWAY: Final = 1001
NOT_ACCEPTABLE: Final = 1003
NO_STATUS: Final = 1005
ABNORMAL: Final = 1006
POLICY: Final = 1008
TOO_BIG: Final = 1009
IN_ORDER: Final = frozenset({NORMAL, GOING_AWAY, NO_STATUS})
"""Codes of a peer that closes in order."""


class State(IntEnum):
    """The states of a link. CLOSING: the rest of the output is sent, then Close; input is discarded."""

    OPEN = 0
    CLOSING = 1
    LOST = 2


class AsgiLink:
    """A link of binary messages over one WebSocket connection of an ASGI server."""

    def __init__(self, scope: Scope, send: Send, receiver: Receiver, url: Url, settings: Settings) -> None:
        spec = spec_of(url.protocol)
        self.receiver = receiver
        self._scope = scope
        self._send = send
        self._high_bytes = settings.output_high_bytes
        self._width = spec.prefix_bytes
        # Without a length prefix, each chunk of output is a message, whose boundaries have no meaning.
        self._cutter = Deframer(self._width, MAX_MESSAGE_BYTES, 0, counts_itself=False) if self._width else None
        longest = 256**self._width - 1 if self._width else settings.max_frame_bytes
        # A session that skips long messages does so by itself; the server has bounded this one.
        self._max_bytes = longest if spec.skips_oversized else min(settings.max_frame_bytes, longest)
        self._answers = self._width > 0 and not spec.skips_oversized
        # The client is still unknown.
        self._next_max_bytes = min(settings.max_setup_frame_bytes, self._max_bytes) if self._width else self._max_bytes
        self._state = State.OPEN
        self._error: Exception | None = None
        self._close_code = NORMAL
        self._outgoing: deque[bytes] = deque()
        self._waiting = 0
        self._sent = 0
        self._paused = False
        self._wake = asyncio.Event()
        self._readable = asyncio.Event()
        self._readable.set()
        self._held = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._ending: Linger | None = None

    async def run(self, receive: Receive) -> None:
        """Carry messages until one side has closed. `link_lost` is the last call of the receiver."""
        try:
            self.receiver.link_made(self)
            if self._state != State.LOST:
                loop = asyncio.get_running_loop()
                writer = loop.create_task(self._write_messages())
                self._tasks = [writer, loop.create_task(self._read_messages(receive, writer))]
                ended, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    if not task.cancelled():
                        task.result()
        except BaseException as error:
            self._broke(error)
            raise
        finally:
            # Frameworks that cancel a scope would cancel each wait for these tasks, too.
            for task in self._tasks:
                task.cancel()
            if self._ending is not None:
                self._ending.cancel()
            self._lose()

    # Calls of the receiver; see weirpool.transports.base.Link.

    @property
    def unfinished(self) -> int:
        """0: the server passes on complete messages only."""
        return 0

    @property
    def unread(self) -> int:
        """The bytes of a message that arrived while reading was paused."""
        return self._held

    def write(self, data: bytes) -> None:
        """Send the messages that `data` completes, or discard them if the link is closing."""
        if self._state != State.OPEN:
            return
        self._outgoing.extend([data] if self._cutter is None else self._cutter.split(data))
        self._waiting += len(data)
        self._wake.set()
        if not self._paused and self._waiting > self._high_bytes:
            self._paused = True
            self.receiver.writing_paused()

    def is_closing(self) -> bool:
        """Return whether it is closed, or will be."""
        return self._state != State.OPEN

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the server has not accepted yet."""
        return self._waiting

    def progress(self) -> tuple[int, int]:
        """Return the numbers of bytes that wait, and that the server has accepted."""
        return self._waiting, self._sent

    def pause_reading(self) -> None:
        """Stop calling `received`. At most one message is taken from the server, to notice the end of the link."""
        self._readable.clear()

    def resume_reading(self) -> None:
        """Call `received` again."""
        self._readable.set()

    def close(self) -> None:
        """Close after all output is written."""
        self._close(NORMAL, None)

    def abort(self) -> None:
        """Close now and discard unwritten output. The server ends the connection."""
        if self._state != State.LOST:
            self._state = State.LOST
            self._outgoing.clear()
            for task in self._tasks:
                task.cancel()

    def get_extra_info(self, name: str) -> Any:
        """Return the ASGI scope for its name, and None for any other."""
        return self._scope if name == SCOPE else None

    # Input.

    async def _read_messages(self, receive: Receive, writer: asyncio.Task[None]) -> None:
        while self._state == State.OPEN:
            try:
                message = await receive()
            except Exception as error:  # As when writing.
                self._broke(error)
                return
            if message["type"] == "websocket.disconnect":
                self._error = _reason(message)
                return
            data = message.get("bytes")
            if data is None:
                self._close(NOT_ACCEPTABLE, ProtocolError("the peer sent a text message; only binary ones are allowed"))
            elif len(data) > self._next_max_bytes:
                what = f"a message has {len(data)} bytes, and at most {self._next_max_bytes} are accepted"
                if self._next_max_bytes < self._max_bytes and self._answers:
                    # The receiver of a first message answers it before the link is closed.
                    self.receiver.received(len(data).to_bytes(self._width, "big") + data[:BEGINNING_BYTES])
                self._close(TOO_BIG, LimitExceeded(what))
            else:
                self._held = len(data)
                await self._readable.wait()
                self._held = 0
                self._deliver(data)
        # The rest of the output, and Close.
        await asyncio.wait([writer])

    def _deliver(self, data: bytes) -> None:
        if self._state == State.OPEN:
            self._next_max_bytes = self._max_bytes
            self.receiver.received(len(data).to_bytes(self._width, "big") + data if self._width else data)

    # Output.

    async def _write_messages(self) -> None:
        try:
            while True:
                while self._outgoing:
                    await self._write(self._outgoing.popleft())
                if self._state == State.CLOSING:
                    await self._send({"type": "websocket.close", "code": self._close_code})
                    return
                self._wake.clear()
                await self._wake.wait()
        except Exception as error:  # Each server and framework has its own errors for a client that is gone.
            self._broke(error)

    async def _write(self, message: bytes) -> None:
        await self._send({"type": "websocket.send", "bytes": bytes(message)})
        size = self._width + len(message)
        self._waiting -= size
        self._sent += size
        if self._paused and self._waiting <= self._high_bytes // 4:
            self._paused = False
            self.receiver.writing_resumed()

    # Ends.

    def _close(self, code: int, error: Exception | None) -> None:
        if self._state == State.OPEN:
            self._state = State.CLOSING
            self._close_code = code
            self._error = error
            self._wake.set()
            # A message that waits for its reader is discarded.
            self._readable.set()
            self._ending = Linger(LINGER, self.progress, self.abort)

    def _broke(self, error: BaseException) -> None:
        """Note why the link ends, unless a reason is known."""
        if self._state == State.OPEN and self._error is None:
            self._error = LinkLost(f"the connection broke: {type(error).__name__}")

    def _lose(self) -> None:
        self._state = State.LOST
        self.receiver.link_lost(self._error)


def _reason(message: Message) -> Exception | None:
    """Return the error for a peer that has disconnected; None if it closed in order."""
    code = message.get("code") or NO_STATUS
    if code in IN_ORDER:
        return None
    if code == ABNORMAL:
        return LinkLost("the connection ended without a WebSocket closing handshake")
    return LinkLost(f"the peer closed the WebSocket with {code}: {message.get('reason') or ''!r}", code)


class _Refusal(NamedTuple):
    """The answer to a request that opens no link: its HTTP status, and the reason."""

    status: int
    reason: str


class AsgiListener:
    """Accepts the WebSocket connections that an ASGI server passes to it.

    Attributes:
        url: The protocol, and nothing else that matters.
        closed: True if new connections are refused.

    """

    def __init__(self, url: Url, accept: Accept, settings: Settings) -> None:
        self.url = url
        self._accept = accept
        self._settings = settings
        self._subprotocol = spec_of(url.protocol).subprotocol
        self._links: dict[AsgiLink, asyncio.Future[None]] = {}
        self.closed = False

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection, whose scope has the type ``websocket``, until it is closed."""
        if (await receive())["type"] != "websocket.connect":
            return
        hung_up: list[str] = []
        refusal = self._refusal(scope)
        receiver = None if refusal else self._accept(self._client(scope), hung_up.append)
        if isinstance(receiver, Refused):
            refusal = _Refusal(503, receiver.reason)
        if refusal is not None:
            await _refuse(scope, send, refusal)
            return
        assert receiver is not None and not isinstance(receiver, Refused)
        link = AsgiLink(scope, send, receiver, self.url, self._settings)
        self._links[link] = asyncio.get_running_loop().create_future()
        try:
            await self._open(scope, send, link, hung_up)
            await link.run(receive)
        finally:
            self._links.pop(link).set_result(None)

    async def _open(self, scope: Scope, send: Send, link: AsgiLink, hung_up: list[str]) -> None:
        """Accept the connection, whose place another one may get meanwhile."""
        known = self._subprotocol
        chosen = known if known in scope.get("subprotocols", ()) else None
        try:
            await send({"type": "websocket.accept", "subprotocol": chosen})
        except BaseException as error:
            link.receiver.link_lost(LinkLost(f"the connection broke: {type(error).__name__}"))
            raise
        if hung_up:
            link.close()

    async def close(self) -> None:
        """Refuse new connections."""
        self.closed = True

    async def ended(self, seconds: float) -> None:
        """Wait for the ends of all links. See `Listener.ended`."""
        if self._links:
            await asyncio.wait(self._links.values(), timeout=seconds)
        for link in list(self._links):
            link.abort()
        if self._links:
            await asyncio.wait(self._links.values(), timeout=LINGER)

    def hand_over(self) -> list[int]:
        """Return nothing: the sockets belong to the ASGI server."""
        return []

    def _refusal(self, scope: Scope) -> _Refusal | None:
        """Return why a connection is refused; None if it is not."""
        if self.closed:
            return _Refusal(503, "the server is closing")
        origins = _values(scope, b"origin")
        # THREATS 76: any page can connect to every server that its visitor's browser can reach; only Origin shows it.
        if not are_allowed(origins, _values(scope, b"host"), self._settings.origins):
            logger.warning("%s refused: %s", self._peer(scope) or "a peer", refused_origin(origins))
            return _Refusal(403, "this server does not accept connections from this origin")
        offered = scope.get("subprotocols", ())
        if self._subprotocol is not None and offered and self._subprotocol not in offered:
            return _Refusal(400, f"the only subprotocol here is {self._subprotocol!r}")
        try:
            self._client(scope)
        except ProtocolError as error:
            return _Refusal(400, str(error))
        return None

    @staticmethod
    def _peer(scope: Scope) -> str:
        """Return the address that the connection comes from; empty if the server does not know it."""
        return str((scope.get("client") or ("",))[0])

    def _client(self, scope: Scope) -> str:
        """Return the address of the client, which a trusted proxy names. Servers may have done this already."""
        peer = self._peer(scope)
        forwarded, forwarded_for = _values(scope, b"forwarded"), _values(scope, b"x-forwarded-for")
        return client_address(peer, forwarded, forwarded_for, networks(self._settings.trusted_proxies))


async def _refuse(scope: Scope, send: Send, refusal: _Refusal) -> None:
    """Answer an opening request, with a reason if the server can send one."""
    if "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": POLICY, "reason": refusal.reason[:120]})
        return
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": f"{refusal.reason}.\n".encode()})


def _values(scope: Scope, wanted: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope.get("headers", ()) if name.lower() == wanted]
