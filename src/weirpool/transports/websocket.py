"""WebSocket: opens and accepts links, whose frames are binary messages, over the links of :mod:`.tcp`."""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from contextlib import suppress
from typing import Final, cast

from websockets.datastructures import Headers

from ..errors import ConnectError, LimitExceeded, LinkLost, ProtocolError, WeirpoolError
from ..ledger import Unclaimed
from ..networks import networks
from ..settings import Settings
from ..urls import Url
from . import tcp
from .base import MAX_REFUSED_LINKS, Accept, Discard, HangUp, Link, Listener, Receiver, Refused, forget
from .forwarded import client_address
from .places import Places
from .websocket_handshake import ClientHandshake, ServerHandshake
from .websocket_link import start_link

__all__ = ["WebSocketListener", "connect", "listen"]

logger = logging.getLogger("weirpool.transports")

TOO_MANY: Final = "too many clients wait for an answer"


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
        except WeirpoolError as error:
            self.done.set_exception(error)
            return
        self.done.set_result(None)
        start_link(link, self._handshake, self._receiver, self._url, self._settings, client=True)

    def link_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            lost = ConnectError(f"cannot connect to {self._url.place}: {error}") if error else ConnectionResetError()
            self.done.set_exception(lost)

    def abort(self) -> None:
        forget(self.done)
        if self._link is not None:
            self._link.abort()


class _Accepted(Discard):
    """The receiver of a server's socket during the handshake; until its end it is one of `handshakes`.

    The client of a trusted proxy is accepted when its address is known, until which `receiver` is None. `hang_up` ends
    the link while its socket is not ready.
    """

    def __init__(self, handshakes: _Handshakes, address: str, hang_up: HangUp | None) -> None:
        self._handshakes = handshakes
        self._accept = handshakes.accept
        self._url = handshakes.url
        self._settings = handshakes.settings
        self._address = self._client = address
        self._hang_up = hang_up
        self.receiver: Receiver | Refused | None = None
        self._handshake = ServerHandshake(self._url, self._settings, self._refuses)
        self._link: tcp.SocketLink | None = None
        self._error: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._unclaimed = Unclaimed(address, self._settings, self._must_release)

    def _refuses(self, headers: Headers) -> str:
        """Return why the client is refused, if it is. See `ServerHandshake`."""
        if self.receiver is None:
            told = headers.get_all("Forwarded"), headers.get_all("X-Forwarded-For")
            self._client = client_address(self._address, *told, networks(self._settings.trusted_proxies))
            self.receiver = self._accept(self._client, self.decline)
        return self.receiver.reason if isinstance(self.receiver, Refused) else ""

    def link_made(self, link: Link) -> None:
        """Start waiting for the request, for at most `connect_timeout`."""
        self._link = cast(tcp.SocketLink, link)
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
        start_link(link, self._handshake, receiver, self._url, self._settings, self._client, client=False)

    def link_lost(self, error: Exception | None) -> None:
        self._stop()
        if self._error is not None:
            logger.info("%s: refused a peer: %s", self._url.place, self._error)
        receiver = self._accept(self._address, None) if self.receiver is None else self.receiver
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

    def decline(self, reason: str) -> None:
        """Answer with a reason, even if no request was received."""
        if self._link is None:
            if self._hang_up is not None:
                self._hang_up(reason)
        elif self._error is None:
            self._refuse(self._link, LinkLost(reason), self._handshake.unavailable(reason))

    def _refuse(self, link: Link, error: Exception, answer: bytes) -> None:
        self._error = error
        # The rest of the request is not needed while the answer is sent.
        self._handshake.take_rest()
        self._unclaimed.count(0)
        link.write(answer)
        link.close()

    def _stop(self) -> None:
        self._handshakes.end(self)
        self._unclaimed.count(0)
        if self._timer is not None:
            self._timer.cancel()


class WebSocketListener:
    """Accepts connections, and creates links for those that open a WebSocket."""

    def __init__(self, listener: Listener, handshakes: _Handshakes) -> None:
        self.url = listener.url
        self.ended = listener.ended
        self.hand_over = listener.hand_over
        self._listener = listener
        self._handshakes = handshakes

    async def close(self) -> None:
        """Accept no more links, and decline unfinished handshakes."""
        await self._listener.close()
        self._handshakes.decline("the server is closing")


class _Handshakes:
    """The unfinished handshakes of a listener."""

    def __init__(self, accept: Accept, url: Url, settings: Settings) -> None:
        self.accept = accept
        self.url = url
        self.settings = settings
        self._all: set[_Accepted] = set()
        # Those whose client is not known yet, and those that are refused. `accept` limits the others.
        self._unknown = Places[_Accepted](settings.max_connections, lambda each: each.decline(TOO_MANY))
        self._refused = Places[_Accepted](MAX_REFUSED_LINKS, lambda each: each.decline(TOO_MANY))

    def begin(self, address: str, hang_up: HangUp | None) -> _Accepted | Refused:
        """Return the receiver of a socket; see `Accept`."""
        accepted = _Accepted(self, address, hang_up)
        if address not in networks(self.settings.trusted_proxies):
            accepted.receiver = self.accept(address, accepted.decline)
        if accepted.receiver is None or isinstance(accepted.receiver, Refused):
            places = self._unknown if accepted.receiver is None else self._refused
            now = asyncio.get_running_loop().time()
            if not places.make_room(now):
                return Refused(TOO_MANY)
            places.take(accepted, now)
        self._all.add(accepted)
        return accepted

    def decline(self, reason: str) -> None:
        """Decline all."""
        for accepted in list(self._all):
            accepted.decline(reason)

    def end(self, accepted: _Accepted) -> None:
        """Remove a handshake that has ended."""
        self._all.discard(accepted)
        self._unknown.leave(accepted)
        self._refused.leave(accepted)


async def connect(url: Url, receiver: Receiver, settings: Settings, ssl: tls.SSLContext | None) -> None:
    """Open a WebSocket. See :func:`weirpool.transports.connect`."""
    host = tcp.LOOPBACK.get(url.host, url.host)
    connecting = _Connecting(ClientHandshake(url, host, settings), receiver, url, settings)
    try:
        await tcp.connect(url, connecting, settings, ssl)
        await connecting.done
    except BaseException:
        connecting.abort()
        raise


async def listen(url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> WebSocketListener:
    """Accept WebSockets. See :func:`weirpool.transports.listen`."""
    handshakes = _Handshakes(accept, url, settings)
    listener = await tcp.listen(url, handshakes.begin, settings, ssl)
    handshakes.url = listener.url
    return WebSocketListener(listener, handshakes)
