"""Serves WebSocket clients on a route of an ASGI application."""

from __future__ import annotations

import asyncio
import ssl as tls
from collections.abc import Iterable
from types import TracebackType
from urllib.parse import urlencode

from ..errors import LocalError
from ..protocols import PROTOCOLS
from ..settings import DEFAULT_SETTINGS, Settings
from ..tap import Tap
from ..transports import Accept
from ..transports.asgi import AsgiListener, Receive, Scope, Send
from ..urls import Url, parse_urls
from .observers import Observers
from .peer import Peer
from .server import Server
from .service import Service
from .setup import Acceptor, ConnectionHook

__all__ = ["Mounted", "asgi"]


def asgi(
    service: Service,
    protocol: str = PROTOCOLS[0],
    *,
    settings: Settings | None = None,
    acceptor: Acceptor | None = None,
    taps: Iterable[Tap] = (),
    on_connection: ConnectionHook | None = None,
    **options: str,
) -> Mounted:
    """Return an ASGI application that serves `service` to WebSocket clients, on the port of the web application.

    Args:
        service: The handlers.
        protocol: The protocol of this route: ``rsocket``, whose servers also serve its predecessors, or ``river``. An
            application that offers several protocols has a route for each.
        settings: Limits and timeouts. `Settings.origins` lists the web pages that may connect.
        acceptor: As in :func:`weirpool.serve`. Its :class:`~weirpool.Setup` has the ASGI scope, where middleware of the
            application has put what it knows of the client, such as ``scope["user"]``.
        taps: Observers of all connections.
        on_connection: As in :func:`weirpool.serve`.
        options: The options of the protocol in URLs, such as River's ``codec="msgpack"``.

    Returns:
        The application, which works without more. Enter it (``async with``) in the lifespan of the application that it
        is mounted in, so that its connections are closed in order when that stops.

    Raises:
        UrlError: The protocol or an option is unknown.
        LocalError: A setting has no effect here.

    """
    query = f"?{urlencode(options)}" if options else ""
    [url] = parse_urls([f"{protocol}+ws://:0{query}"], settings, serving=True)
    if settings is not None and settings.proxy_protocol:
        raise LocalError("Settings.proxy_protocol has no effect here: the ASGI server owns the sockets")
    unknown = sorted(options.keys() - url.protocol_options)
    if unknown:
        known = ", ".join(sorted(url.protocol_options)) or "none"
        raise LocalError(f"asgi() has no option {unknown[0]!r} for {protocol}; known are: {known}")
    return Mounted(service, url, settings or DEFAULT_SETTINGS, Observers(taps, on_connection, acceptor))


class Mounted:
    """An ASGI application with one service; :func:`weirpool.asgi` returns it."""

    def __init__(self, service: Service, url: Url, settings: Settings, observers: Observers) -> None:
        self._service = service
        self._url = url
        self._settings = settings
        self._observers = observers
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: Server | None = None
        self._listener: AsgiListener | None = None

    async def __aenter__(self) -> Mounted:
        if self._listener is not None and self._listener.closed:
            # The application has started again.
            self._listener = None
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of an ASGI server: a WebSocket connection, or the events of its lifespan."""
        if scope["type"] == "websocket":
            listener = await self._open()
            await listener.serve(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._decline(send)

    @property
    def peers(self) -> list[Peer]:
        """The clients of all sessions, for requests from the server if the protocol supports them."""
        return self._server.peers if self._server is not None else []

    @property
    def connections(self) -> int:
        """The number of sessions, including those that wait for their client to reconnect."""
        return self._server.connections if self._server is not None else 0

    async def close(self, grace: float | None = None) -> None:
        """Refuse new clients, and close all connections after their open streams have ended.

        Args:
            grace: Seconds after which open streams fail; `Settings.close_grace` by default.

        """
        if self._server is not None:
            await self._server.close(grace)

    async def _open(self) -> AsgiListener:
        """Return the listener of the running event loop. Nothing here waits, so no two requests open one."""
        loop = asyncio.get_running_loop()
        if self._listener is None or self._loop is not loop:
            self._loop = loop
            self._server = await Server(self._service, [self._url], self._settings, None, self._observers, self._listen)
        assert self._listener is not None
        return self._listener

    async def _listen(self, url: Url, accept: Accept, settings: Settings, ssl: tls.SSLContext | None) -> AsgiListener:
        self._listener = AsgiListener(url, accept, settings)
        return self._listener

    async def _live(self, receive: Receive, send: Send) -> None:
        """Follow the lifespan of a server whose only application this is."""
        while (message := await receive())["type"] != "lifespan.shutdown":
            if message["type"] == "lifespan.startup":
                await self._open()
                await send({"type": "lifespan.startup.complete"})
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _decline(self, send: Send) -> None:
        """Answer an HTTP request, for which there is nothing here."""
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"upgrade", b"websocket")]
        text = f"This is a WebSocket endpoint for {self._url.protocol}.\n"
        # RFC 9110, 15.5.22: Upgrade Required.
        await send({"type": "http.response.start", "status": 426, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})
