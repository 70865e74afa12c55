"""Bridges: a server whose service is another server."""

from __future__ import annotations

import logging
import ssl as tls
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from ..aio.dialer import SetupData
from ..aio.handlers import Next, Request
from ..aio.server import Server, serve
from ..aio.setup import Acceptor, current_connection
from ..connection import Connection
from ..errors import LocalError, Rejected, WeirpoolError
from ..kinds import Kind
from ..protocols import TextForm, connection_settings, spec_of, text_form
from ..settings import DEFAULT_SETTINGS, Settings
from ..tap import Tap
from ..urls import Url, parse_urls
from .anyroute import AnyRoute
from .counters import Counters
from .forwarding import Forwarder, Target
from .kinds import RouteKinds
from .translation import Side, Translation
from .upstream import Destination, Upstream
from .watching import Unwatched, Watch

__all__ = ["bridge"]

logger = logging.getLogger("weirpool.bridge")

TEXT_MIME: Final = "application/json"
"""The MIME type of the text form of data."""


def bridge(
    to: str,
    *urls: str,
    settings: Settings | None = None,
    ssl: tls.SSLContext | None = None,
    acceptor: Acceptor | None = None,
    taps: Iterable[Tap] = (),
    kinds: Mapping[str, Kind] | None = None,
    counters: Counters | None = None,
    watch: Watch = Unwatched,
    to_settings: Settings | None = None,
    to_ssl: tls.SSLContext | None = None,
    to_setup: SetupData | Callable[[], SetupData] | None = None,
) -> Server:
    """Listen at `urls`, and forward every request to the server at `to`: ``async with bridge(to, url) as server``.

    The two sides may use different protocols and transports. Each client has a connection to the upstream of its own,
    so that clients do not affect each other. The upstream is asked for items only as clients request them. Requests of
    the upstream are forwarded to the client, if both protocols have them.

    Args:
        to: The URL of the upstream.
        urls: The URLs to listen on.
        settings: The settings of the side that listens.
        ssl: Its TLS context.
        acceptor: Checks the set-up of each client; see :func:`weirpool.serve`.
        taps: Observers of the connections of clients.
        kinds: The kinds of routes, if the protocol of the clients does not tell them and the upstream's needs them.
            Without it, what cannot be told apart is requested as a stream, and as a call if the upstream refuses that.
        counters: Counts what the bridge does.
        watch: Called with each request of a client; returns a `StreamWatcher` that observes its interaction.
        to_settings: The settings of connections to the upstream.
        to_ssl: Their TLS context.
        to_setup: Their set-up; by default that of each client, if both protocols have the same kind of set-up.

    Returns:
        A server, as :func:`weirpool.serve` returns it.

    Raises:
        UrlError: A URL has an unknown protocol, transport or address.
        LocalError: There is no URL to listen on, or a setting has no effect.

    """
    if not urls:
        raise LocalError("bridge() needs the URL of the upstream, and at least one URL to listen on")
    destination = Destination(to, to_settings, to_ssl, to_setup)
    places = parse_urls(urls, settings, serving=True)
    known, counters = RouteKinds(kinds or {}), counters or Counters()
    made = _Bridge(destination, places, settings or DEFAULT_SETTINGS, known, counters, watch)
    return serve(
        made.service, *urls, settings=settings, ssl=ssl, acceptor=acceptor, taps=taps, on_connection=made.connected
    )


class _Bridge:
    """The clients of a bridge, and their upstreams."""

    def __init__(
        self,
        destination: Destination,
        places: list[Url],
        settings: Settings,
        kinds: RouteKinds,
        counters: Counters,
        watch: Watch,
    ) -> None:
        self._watch = watch
        self._destination = destination
        self._url = destination.parsed()
        self._settings = settings
        self._kinds = kinds
        self._counters = counters
        self._clients: dict[Connection, tuple[Upstream, Forwarder]] = {}
        self._forms = {_data_mime(place): text_form(place.protocol, place.options) for place in places}
        self.service = AnyRoute(kinds.kind_of, self._forward)
        self.service.push(self._pushed)

    @asynccontextmanager
    async def connected(self, client: Connection) -> AsyncIterator[None]:
        """Connect to the upstream for a client, and close that with the client.

        If the upstream is down, the client is admitted: its requests fail until the upstream is back.
        """
        data_mime = client.data_mime if self._side(client).form is None else TEXT_MIME
        destination = self._destination.for_client(client, data_mime)
        back = Forwarder(lambda: self._back(client, upstream), self._kinds, self._counters)
        service = AnyRoute(self._kinds.kind_of, back)
        upstream = Upstream(destination, service, self._counters, client.address)
        try:
            await upstream.peer()
        except Rejected:
            pass
        forwarder = Forwarder(lambda: self._there(client, upstream), self._kinds, self._counters, self._watch)
        self._clients[client] = upstream, forwarder
        self._counters.clients += 1
        self._counters.clients_total += 1
        logger.info("client %s connected", client.address, extra={"client": client.address})
        try:
            yield
        finally:
            del self._clients[client]
            self._counters.clients -= 1
            logger.info("client %s closed", client.address, extra={"client": client.address})
            await upstream.close()

    async def _forward(self, request: Request, next: Next) -> Any:
        client = self._clients.get(request.connection)
        if client is None:
            raise Rejected(message=Rejected.CLOSING)
        return await client[1](request, next)

    async def _there(self, client: Connection, upstream: Upstream) -> Target:
        """Return the target of a client's request."""
        try:
            peer = await upstream.peer()
        except Rejected:
            raise
        except WeirpoolError as error:
            raise Rejected(message=f"the upstream {self._url.place} cannot be reached: {error}") from error
        connection = upstream.connection
        assert connection is not None
        there = Side(connection, text_form(self._url.protocol, self._url.options))
        guess = _merges_calls(client) and not _merges_calls(connection)
        translation = Translation(self._side(client), there, self._counters)
        return Target(peer, translation, guess)

    async def _back(self, client: Connection, upstream: Upstream) -> Target:
        """Return the target of a request of the upstream: the client."""
        connection = upstream.connection
        assert connection is not None
        there = Side(connection, text_form(self._url.protocol, self._url.options))
        translation = Translation(there, self._side(client), self._counters)
        return Target(client.peer, translation, False)

    def _side(self, client: Connection) -> Side:
        form: TextForm | None = self._forms.get((client.protocol, client.data_mime))
        return Side(client, form)

    async def _pushed(self, metadata: bytes) -> None:
        client = self._clients.get(current_connection())
        if client is None:
            self._counters.metadata_dropped += 1
        else:
            await client[0].push(metadata)


def _merges_calls(connection: Connection) -> bool:
    """Return whether a server cannot tell calls from streams in the connection's protocol."""
    # Only protocols with types of metadata have a kind in each request.
    return spec_of(connection.protocol).metadata_mime is None


def _data_mime(place: Url) -> tuple[str, str]:
    return place.protocol, connection_settings(place.protocol, DEFAULT_SETTINGS, place.options).data_mime
