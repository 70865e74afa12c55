"""The collector's HTTP server: health, metrics, the status document, and the page that shows it.

It runs in threads of its own, so it answers while the event loop is busy, and never holds it up.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec

from .._build import pip_command
from ..errors import ConnectError
from ..observe.http import BoundedServer
from ..pages.guard import HEADERS, is_meant, texts_script
from ..texts import shortened, shown_json
from .board import Board
from .status import Document

__all__ = ["listening"]

logger = logging.getLogger("weirpool.feeds")

POLL_SECONDS: Final = 0.1
"""How soon the server notices that it is to stop."""
PAGE: Final = {"/": "page.html", "/page.js": "page.js", "/page.css": "page.css"}
TYPES: Final = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


class Answer(NamedTuple):
    """The answer to a request."""

    status: HTTPStatus
    kind: str
    body: bytes


@contextmanager
def listening(
    board: Board,
    host: str,
    port: int,
    exposition: Callable[[Document], bytes] | None = None,
    *,
    names: Collection[str] = (),
) -> Iterator[str]:
    """Serve a board over HTTP while the block lasts.

    Args:
        board: The statuses.
        host: The address to listen on. Everybody who can connect can see the statuses.
        port: The port; 0 lets the system choose one.
        exposition: Returns the metrics of a document; None: there are none.
        names: Names of the server that it answers to, besides addresses and those of this machine.

    Yields:
        The URL of the page.

    Raises:
        ConnectError: The address is not available.

    """
    try:
        server = _Server(board, host, port, exposition, names)
    except OSError as error:
        raise ConnectError(f"cannot listen on {host}:{port} for HTTP: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), name="weirpool http", daemon=True)
    thread.start()
    try:
        place = f"[{host}]" if ":" in host else host
        yield f"http://{place}:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(BoundedServer):
    def __init__(
        self,
        board: Board,
        host: str,
        port: int,
        exposition: Callable[[Document], bytes] | None,
        names: Collection[str],
    ) -> None:
        self.board = board
        self.exposition = exposition
        self.host = host
        self.names = names
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
        return "weirpool"

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
        hosts = self.headers.get_all("Host", [""])
        if len(hosts) != 1 or not is_meant(hosts[0], self.server.host, self.server.names):
            return _text(
                HTTPStatus.FORBIDDEN, "use the address of this server, or start it with --http-name and its name"
            )
        path = self.path.partition("?")[0]
        if path in PAGE:
            name = PAGE[path]
            kind = f"{TYPES[name.partition('.')[2]]}; charset=utf-8"
            return Answer(HTTPStatus.OK, kind, files(__package__).joinpath("page", name).read_bytes())
        if path == "/texts.js":
            return Answer(HTTPStatus.OK, "text/javascript; charset=utf-8", texts_script())
        if path == "/healthz":
            return _verdict(self.server.board.healthy(), "an event loop that collects does not answer")
        if path == "/readyz":
            return _verdict(self.server.board.document().ready, "not all feeds have been started")
        if path == "/status":
            document = msgspec.json.encode(self.server.board.document()).decode()
            # Whoever prints it may do so in a terminal.
            return Answer(HTTPStatus.OK, "application/json", shown_json(document).encode())
        if path == "/metrics":
            if self.server.exposition is None:
                return _text(HTTPStatus.NOT_IMPLEMENTED, f"metrics need a package; run: {pip_command('metrics')}")
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
