"""The collector's HTTP server: health, metrics, the status document, and the page that shows it.

It runs in threads of its own, so it answers while the event loop is busy, and never holds it up.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from ..errors import ConnectError
from ..observe.http import BoundedServer
from ..texts import shortened
from .board import Board
from .status import Document

__all__ = ["listening"]

logger = logging.getLogger("penstock.feeds")

POLL_SECONDS: Final = 0.1
"""How soon the server notices that it is to stop."""
PAGE: Final = {"/": "page.html", "/page.js": "page.js", "/page.css": "page.css"}
TYPES: Final = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
HEADERS: Final = {
    # Texts of peers are shown: nothing but the page's own files may run or load.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Answer(NamedTuple):
    """The answer to a request."""

    status: HTTPStatus
    kind: str
    body: bytes


@contextmanager
def listening(
    board: Board, host: str, port: int, exposition: Callable[[Document], bytes] | None = None
) -> Iterator[str]:
    """Serve a board over HTTP while the block lasts.

    Args:
        board: The statuses.
        host: The address to listen on. Everybody who can connect can see the statuses.
        port: The port; 0 lets the system choose one.
        exposition: Returns the metrics of a document; None: there are none.

    Yields:
        The URL of the page.

    Raises:
        ConnectError: The address is not available.

    """
    try:
        server = _Server(board, host, port, exposition)
    except OSError as error:
        raise ConnectError(f"cannot listen on {host}:{port} for HTTP: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), name="penstock http", daemon=True)
    thread.start()
    try:
        place = f"[{host}]" if ":" in host else host
        yield f"http://{place}:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(BoundedServer):
    def __init__(self, board: Board, host: str, port: int, exposition: Callable[[Document], bytes] | None) -> None:
        self.board = board
        self.exposition = exposition
        self.loopback = _is_loopback(host)
        super().__init__(host, port, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    # One request for each connection: an idle client must not keep a thread.
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        """Answer a request."""
        self._send(self._guarded(), with_body=True)

    def do_HEAD(self) -> None:
        """Answer a request without the body."""
        self._send(self._guarded(), with_body=False)

    def version_string(self) -> str:
        """Return the name of the server, without versions."""
        return "penstock"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: scrapes are many."""

    def _guarded(self) -> Answer:
        """Return the answer; that to a request which fails here is logged."""
        try:
            return self._answer()
        except Exception:
            logger.exception("a request for %s failed", shortened(self.path))
            return _text(HTTPStatus.INTERNAL_SERVER_ERROR, "this request failed; see the log of the collector")

    def _answer(self) -> Answer:
        if self.server.loopback and not _is_local(self.headers.get("Host", "")):
            # A site whose name is made to point to this machine must not read the statuses.
            return _text(HTTPStatus.FORBIDDEN, "this server listens on a loopback address; use localhost")
        path = self.path.partition("?")[0]
        if path in PAGE:
            name = PAGE[path]
            kind = f"{TYPES[name.partition('.')[2]]}; charset=utf-8"
            return Answer(HTTPStatus.OK, kind, files(__package__).joinpath("page", name).read_bytes())
        if path == "/healthz":
            return _verdict(self.server.board.healthy(), "an event loop that collects does not answer")
        if path == "/readyz":
            return _verdict(self.server.board.document().ready, "not all feeds have been started")
        if path == "/status":
            return Answer(HTTPStatus.OK, "application/json", msgspec.json.encode(self.server.board.document()))
        if path == "/metrics":
            if self.server.exposition is None:
                return _text(HTTPStatus.NOT_IMPLEMENTED, "metrics need a package; run: pip install 'penstock[metrics]'")
            text = self.server.exposition(self.server.board.document())
            return Answer(HTTPStatus.OK, "text/plain; version=0.0.4; charset=utf-8", text)
        return _text(HTTPStatus.NOT_FOUND, "there are /, /status, /metrics, /healthz and /readyz")

    def _send(self, answer: Answer, *, with_body: bool) -> None:
        self.send_response(answer.status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if with_body:
            self.wfile.write(answer.body)


def _verdict(good: bool, problem: str) -> Answer:
    return _text(HTTPStatus.OK, "ok") if good else _text(HTTPStatus.SERVICE_UNAVAILABLE, problem)


def _text(status: HTTPStatus, text: str) -> Answer:
    return Answer(status, "text/plain; charset=utf-8", text.encode() + b"\n")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _is_local(header: str) -> bool:
    """Return True if a Host header names this machine."""
    try:
        return _is_loopback(urlsplit(f"//{header}").hostname or "")
    except ValueError:
        return False
