"""The opening handshake of WebSocket: RFC 6455, section 4, without sockets."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import quote, unquote

from websockets.client import ClientProtocol
from websockets.datastructures import Headers
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
from .origins import are_allowed, refused_origin

__all__ = ["ClientHandshake", "ServerHandshake"]

HEAD_BYTES: Final = 16_384
"""The maximum size of a request or response: enough for several large cookies."""
HEAD_END: Final = b"\r\n\r\n"
METHOD: Final = re.compile(rb"\Z|[A-Z]{1,16}(?: |\Z)")
"""The beginning of every request. Other bytes are refused without waiting for the end of the head."""
NOT_A_HANDSHAKE: Final = "This is not a valid WebSocket handshake.\n"

ADVICE: Final = {
    401: "pass credentials with Settings.headers",
    403: "check the credentials (Settings.headers) and the origin",
    404: "check the path of the URL",
    429: "the server has too many connections; try again later",
    503: "the server is full or starting; try again later",
}
REASON_BYTES: Final = 200
"""Bytes of a full server's reason to show."""
REDIRECTED: Final = "redirects are not followed; connect to the new address"
DEFAULT_ADVICE: Final = "check that it uses WebSocket on this port"

# At level DEBUG, the library logs all headers, which may contain secrets.
_logger = logging.getLogger("weirpool.transports.handshake")
_logger.setLevel(logging.WARNING)


class _Handshake:
    """Collects the head, which ends with an empty line."""

    def __init__(self) -> None:
        self._data = bytearray()

    def head(self, data: bytes) -> bytes | None:
        """Return the head when it is complete, otherwise None. Raises ProtocolError if it is too long."""
        seen = max(0, len(self._data) - len(HEAD_END))
        self._data += data
        end = self._data.find(HEAD_END, seen)
        if (end if end >= 0 else len(self._data)) > HEAD_BYTES:
            raise ProtocolError(f"the head of the peer's opening handshake is longer than {HEAD_BYTES} bytes")
        if end < 0:
            return None
        head = bytes(self._data[: end + len(HEAD_END)])
        del self._data[: len(head)]
        return head

    @property
    def held(self) -> int:
        """The bytes of an incomplete head."""
        return len(self._data)

    def take_rest(self) -> bytes:
        """Return the data after the head, the first frames, which are not kept."""
        rest, self._data = bytes(self._data), bytearray()
        return rest


class ClientHandshake(_Handshake):
    """The client side, which sends `request` first. `host` is the host that is actually connected to.

    Raises LocalError if `Settings.headers` has one that is reserved for the handshake.
    """

    def __init__(self, url: Url, host: str, settings: Settings) -> None:
        super().__init__()
        self._url = url
        path = quote(url.path or "/", safe="/:@!$&'()*+,;=~-._")
        subprotocol = spec_of(url.protocol).subprotocol
        self._protocol = ClientProtocol(
            WebSocketURI(url.transport == "wss", host, url.port or 0, path, ""),
            subprotocols=None if subprotocol is None else [Subprotocol(subprotocol)],
            logger=_logger,
        )
        request = self._protocol.connect()
        own = {name.lower() for name in request.headers}
        for name, value in settings.headers:
            if name.lower() in own:
                raise LocalError(f"Settings.headers has {name}, which is reserved for the WebSocket handshake; omit it")
            request.headers[name] = value
        self.request = request.serialize()

    def feed(self, data: bytes) -> bool:
        """Process data from the server; return True if the handshake is complete.

        Raises ConnectError if the server refuses it, or does not use WebSocket.
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
                f"cannot connect to {self._url.place}: the server's opening handshake is invalid: {problem}"
            ) from problem
        return True

    def _check_status(self, head: bytes) -> None:
        line = head.partition(b"\r\n")[0].decode("ascii", "replace")
        version, _, status = line.partition(" ")
        code = status[:3]
        if not version.startswith("HTTP/") or not (code.isascii() and code.isdigit()):
            raise ConnectError(f"cannot connect to {self._url.place}: the answer is not HTTP; {DEFAULT_ADVICE}")
        if code != "101":
            todo = ADVICE.get(int(code), REDIRECTED if code.startswith("3") else DEFAULT_ADVICE)
            reason = self._data[:REASON_BYTES].decode("utf-8", "replace") if code == "503" else ""
            what = f"{status[:80]}: {reason.strip()}" if reason else status[:80]
            raise ConnectError(f"cannot connect to {self._url.place}: the server answered {shown_line(what)}; {todo}")


class ServerHandshake(_Handshake):
    """The server side; `answer` is the response to send after `feed` has returned True or raised.

    `refuses` is called with the headers of a request that is otherwise accepted. It returns why the request is refused,
    or an empty text. It raises ProtocolError if the headers are invalid.
    """

    def __init__(self, url: Url, settings: Settings, refuses: Callable[[Headers], str] = lambda _: "") -> None:
        super().__init__()
        self._path = url.path or "/"
        self._refuses = refuses
        self._origins = settings.origins
        self._subprotocol = spec_of(url.protocol).subprotocol
        self._protocol = ServerProtocol(select_subprotocol=lambda _, offered: self._choose(offered), logger=_logger)
        self._problem = ""
        self.answer = b""

    def feed(self, data: bytes) -> bool:
        """Process data from the client; return True if the handshake is complete.

        Raises ProtocolError if the request is refused; `answer` has the reason.
        """
        try:
            head = self.head(data)
        except ProtocolError as error:
            self.answer = self._protocol.reject(431, f"{error}.\n").serialize()
            raise
        if head is None:
            if METHOD.match(self._data) is None:
                self.answer = self._protocol.reject(400, NOT_A_HANDSHAKE).serialize()
                raise ProtocolError(f"the first bytes are {self._data[:12].hex()}, not a WebSocket handshake")
            return False
        response = self._response(head)
        self.answer = response.serialize()
        if response.status_code != 101:
            answer = f"the opening request was answered with {response.status_code} {response.reason_phrase}"
            raise ProtocolError(f"{answer}: {self._problem}" if self._problem else answer)
        return True

    def unavailable(self, reason: str) -> bytes:
        """Return the response to an incomplete request, which the server no longer waits for."""
        return self._protocol.reject(503, f"{reason}.\n").serialize()

    def _response(self, head: bytes) -> Response:
        self._protocol.receive_data(head)
        requests = self._protocol.events_received()
        if not requests or not isinstance(requests[0], Request):
            return self._protocol.reject(400, NOT_A_HANDSHAKE)
        request = requests[0]
        if unquote(request.path.partition("?")[0]) != self._path:
            return self._protocol.reject(404, "There is no WebSocket at this path.\n")
        # THREATS 76: any page can connect to every server that its visitor's browser can reach; only Origin shows it.
        origins = request.headers.get_all("Origin")
        if not are_allowed(origins, request.headers.get_all("Host"), self._origins):
            self._problem = refused_origin(origins)
            return self._protocol.reject(403, "This server does not accept connections from this origin.\n")
        try:
            refusal = self._refuses(request.headers)
        except ProtocolError as error:
            return self._protocol.reject(400, f"{error}.\n")
        if refusal:
            return self._protocol.reject(503, f"{refusal}.\n")
        return self._protocol.accept(request)

    def _choose(self, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        """Choose a subprotocol. Clients that offer none are accepted, because many do not."""
        known = self._subprotocol
        if known is None or not offered:
            return None
        if known in offered:
            return Subprotocol(known)
        raise NegotiationError(f"this server supports only the subprotocol {known}")
