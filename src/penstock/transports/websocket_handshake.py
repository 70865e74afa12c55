"""The opening handshake of WebSocket: RFC 6455, section 4, without sockets."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote, unquote

from websockets.client import ClientProtocol
from websockets.exceptions import NegotiationError
from websockets.http11 import Request, Response
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol
from websockets.uri import WebSocketURI

from ..errors import ConnectError, LocalError, ProtocolError
from ..protocols import spec_of
from ..settings import Settings
from ..texts import shown_line
from ..urls import Url
from .origins import are_allowed

__all__ = ["ClientHandshake", "ServerHandshake"]

HEAD_BYTES: Final = 16_384
"""The longest request or response: some large cookies."""
HEAD_END: Final = b"\r\n\r\n"

WHAT_TO_DO: Final = {
    401: "give credentials with Settings.headers",
    403: "are the credentials right (Settings.headers), and is the origin allowed?",
    404: "is the path of the URL right?",
    426: "does it speak WebSocket there?",
    429: "it has too many connections; try later",
    503: "it has no room, or is starting; try later",
}
REASON_BYTES: Final = 200
"""How much is shown of what a server says that has no room."""
ELSEWHERE: Final = "it is elsewhere; connect to where it is"
OTHERWISE: Final = "does it speak WebSocket there?"

# At its level DEBUG, the library logs all headers, with whatever secrets they hold.
_quiet = logging.getLogger("penstock.transports.handshake")
_quiet.setLevel(logging.WARNING)


class _Handshake:
    """Gathers what stands before the first empty line; `rest` is what came behind it, the first frames."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.rest = b""

    def head(self, data: bytes) -> bytes | None:
        """Return it once it is whole. Raises ProtocolError if it is too long."""
        seen = max(0, len(self._data) - len(HEAD_END))
        self._data += data
        end = self._data.find(HEAD_END, seen)
        if (end if end >= 0 else len(self._data)) > HEAD_BYTES:
            raise ProtocolError(f"the head of its opening handshake is longer than {HEAD_BYTES} bytes")
        if end < 0:
            return None
        end += len(HEAD_END)
        self.rest = bytes(self._data[end:])
        return bytes(self._data[:end])


class ClientHandshake(_Handshake):
    """The client's side, which sends `request` first. The host is the one that is really connected to.

    Raises LocalError if `Settings.headers` has one that belongs to the handshake.
    """

    def __init__(self, url: Url, host: str, settings: Settings) -> None:
        super().__init__()
        self._url = url
        path = quote(url.path or "/", safe="/:@!$&'()*+,;=~-._")
        subprotocol = spec_of(url.protocol).subprotocol
        self._protocol = ClientProtocol(
            WebSocketURI(url.transport == "wss", host, url.port or 0, path, ""),
            subprotocols=None if subprotocol is None else [Subprotocol(subprotocol)],
            logger=_quiet,
        )
        request = self._protocol.connect()
        own = {name.lower() for name in request.headers}
        for name, value in settings.headers:
            if name.lower() in own:
                raise LocalError(
                    f"Settings.headers has {name}, which the WebSocket handshake sets itself; leave it out"
                )
            request.headers[name] = value
        self.request = request.serialize()

    def feed(self, data: bytes) -> bool:
        """Take what the server sent; return whether that is all.

        Raises ConnectError if the server refuses, or does not speak WebSocket.
        """
        try:
            head = self.head(data)
        except ProtocolError as error:
            raise ConnectError(f"cannot connect to {self._url.place}: {error}") from None
        if head is None:
            return False
        self._check_status(head)
        self._protocol.receive_data(head)
        problem = self._protocol.handshake_exc
        if problem is not None:
            raise ConnectError(
                f"cannot connect to {self._url.place}: the server's opening handshake is wrong: {problem}"
            ) from problem
        return True

    def _check_status(self, head: bytes) -> None:
        line = head.partition(b"\r\n")[0].decode("ascii", "replace")
        version, _, status = line.partition(" ")
        code = status[:3]
        if not version.startswith("HTTP/") or not (code.isascii() and code.isdigit()):
            raise ConnectError(f"cannot connect to {self._url.place}: the answer is no HTTP; {OTHERWISE}")
        if code != "101":
            todo = WHAT_TO_DO.get(int(code), ELSEWHERE if code.startswith("3") else OTHERWISE)
            reason = self.rest[:REASON_BYTES].decode("utf-8", "replace") if code == "503" else ""
            said = f"{status[:80]}: {reason.strip()}" if reason else status[:80]
            raise ConnectError(f"cannot connect to {self._url.place}: the server answered {shown_line(said)}; {todo}")


class ServerHandshake(_Handshake):
    """The server's side; `answer` is what to send, once `feed` has returned True or raised.

    With a `refusal`, no request is granted, and this is why.
    """

    def __init__(self, url: Url, settings: Settings, refusal: str = "") -> None:
        super().__init__()
        self._path = url.path or "/"
        self._refusal = refusal
        self._origins = settings.origins
        self._subprotocol = spec_of(url.protocol).subprotocol
        self._protocol = ServerProtocol(select_subprotocol=lambda _, offered: self._choose(offered), logger=_quiet)
        self.answer = b""

    def feed(self, data: bytes) -> bool:
        """Take what the client sent; return whether that is all.

        Raises ProtocolError if the request is refused; `answer` says why.
        """
        try:
            head = self.head(data)
        except ProtocolError as error:
            self.answer = self._protocol.reject(431, f"{error}.\n").serialize()
            raise
        if head is None:
            return False
        response = self._response(head)
        self.answer = response.serialize()
        if response.status_code != 101:
            raise ProtocolError(
                f"its opening request was answered with {response.status_code} {response.reason_phrase}"
            )
        return True

    def unavailable(self) -> bytes:
        """Return the answer of a server that is closing, to a request of which not all has come."""
        return self._protocol.reject(503, "The server is closing.\n").serialize()

    def _response(self, head: bytes) -> Response:
        self._protocol.receive_data(head)
        requests = self._protocol.events_received()
        if not requests or not isinstance(requests[0], Request):
            return self._protocol.reject(400, "This is no request that opens a WebSocket.\n")
        request = requests[0]
        if unquote(request.path.partition("?")[0]) != self._path:
            return self._protocol.reject(404, "There is nothing here.\n")
        # THREATS 76: any page can open connections to wherever its visitor's browser can. Only the browser says so.
        if not are_allowed(request.headers.get_all("Origin"), request.headers.get_all("Host"), self._origins):
            return self._protocol.reject(403, "This server takes no connections from pages of this origin.\n")
        if self._refusal:
            return self._protocol.reject(503, f"{self._refusal}.\n")
        return self._protocol.accept(request)

    def _choose(self, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        """Choose a subprotocol. Many clients offer none, and are let in."""
        known = self._subprotocol
        if known is None or not offered:
            return None
        if known in offered:
            return Subprotocol(known)
        raise NegotiationError(f"{known} is spoken here")
