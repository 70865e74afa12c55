"""Serves the page and its WebSocket on this machine, to the browser that knows the token."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import msgspec

from ..errors import ConnectError
from ..pages.guard import HEADERS, is_meant, texts_script
from .conversation import Conversation, Place

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

    from .target import Target

__all__ = ["open_door"]

# Browsers that go away in the middle of something are no news.
logger = logging.getLogger("weirpool.tryit")
logger.setLevel(logging.CRITICAL)

HOST: Final = "127.0.0.1"
MAX_PAGES: Final = 8
MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""A message of the page: the data of one request, or all items to copy."""
PAGE: Final = {
    "": ("page.html", "text/html"),
    "page.css": ("page.css", "text/css"),
    "page.js": ("page.js", "text/javascript"),
    "form.js": ("form.js", "text/javascript"),
    "items.js": ("items.js", "text/javascript"),
    "variables.js": ("variables.js", "text/javascript"),
}


@asynccontextmanager
async def open_door(target: Target, place: Place, port: int = 0) -> AsyncIterator[str]:
    """Serve the page while the block lasts.

    Args:
        target: The server that is tried.
        place: How it is reached.
        port: The port; 0 lets the system choose one.

    Yields:
        The URL of the page, with a token that only the user knows.

    Raises:
        ConnectError: The port is not available.

    """
    from websockets.asyncio.server import serve

    door = _Door(target, place)
    try:
        server = await serve(
            door.converse,
            HOST,
            port,
            process_request=door.answer,
            max_size=MAX_MESSAGE_BYTES,
            max_queue=16,
            compression=None,
            server_header=None,
            logger=logger,
        )
    except OSError as error:
        raise ConnectError(f"cannot listen on {HOST}:{port} for HTTP: {error.strerror or error}") from error
    async with server:
        [socket] = server.sockets
        door.port = socket.getsockname()[1]
        target.changed = door.target_changed
        yield f"http://{HOST}:{door.port}/{door.token}/"


class _Door:
    """Answers requests of browsers."""

    def __init__(self, target: Target, place: Place) -> None:
        self.token = secrets.token_urlsafe(24)
        self.port = 0
        self._target = target
        self._place = place
        self._pages: dict[Conversation, Any] = {}
        self._tasks: set[Any] = set()

    def target_changed(self) -> None:
        """Tell all pages."""
        for page in self._pages:
            task = asyncio.create_task(_told(page))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Return the answer to a request; None lets it become a WebSocket."""
        hosts = request.headers.get_all("Host")
        if len(hosts) != 1 or not is_meant(hosts[0], HOST, port=self.port):
            return _answer(HTTPStatus.FORBIDDEN, "use the URL that the command has printed")
        token, _, name = request.path.partition("?")[0].removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return _answer(HTTPStatus.FORBIDDEN, "the token is missing; use the URL that the command has printed")
        if name == "socket":
            # Pages of other sites can open WebSockets, and cannot hide their origin.
            if request.headers.get_all("Origin") != [f"http://{hosts[0]}"]:
                return _answer(HTTPStatus.FORBIDDEN, "this page has another origin")
            if len(self._pages) >= MAX_PAGES:
                return _answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{MAX_PAGES} pages are open; close one")
            return None
        if name == "texts.js":
            return _answer(HTTPStatus.OK, texts_script(), "text/javascript")
        if name not in PAGE:
            return _answer(HTTPStatus.NOT_FOUND, "there is no such file")
        file, kind = PAGE[name]
        return _answer(HTTPStatus.OK, files(__package__).joinpath("page", file).read_bytes(), kind)

    async def converse(self, connection: ServerConnection) -> None:
        """Serve one page until it goes away."""
        from websockets.exceptions import ConnectionClosed

        async def report(message: dict[str, Any]) -> None:
            with suppress(ConnectionClosed):
                await connection.send(msgspec.json.encode(message).decode())

        page = Conversation(self._target, self._place, report)
        self._pages[page] = connection
        try:
            await page.tell_target()
            async for message in connection:
                await page.received(message)
        except ConnectionClosed:
            # The browser went away without a goodbye.
            return
        finally:
            del self._pages[page]
            await page.close()


async def _told(page: Conversation) -> None:
    await page.tell_target()


def _answer(status: HTTPStatus, body: str | bytes, kind: str = "text/plain") -> Response:
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    content = body if isinstance(body, bytes) else f"{body}\n".encode()
    fields = {
        **HEADERS,
        "Connection": "close",
        "Content-Type": f"{kind}; charset=utf-8",
        "Content-Length": str(len(content)),
    }
    return Response(status, status.phrase, Headers(fields), content)
