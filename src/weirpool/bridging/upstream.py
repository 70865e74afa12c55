"""The connection to the upstream on behalf of one client."""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from ..aio.client import connect
from ..aio.dialer import SetupData
from ..aio.peer import Peer
from ..aio.service import Service
from ..connection import Connection
from ..errors import ConnectError, Rejected, SetupRejected, UnsupportedKind, WeirpoolError
from ..protocols import spec_of
from ..settings import DEFAULT_SETTINGS, Settings
from ..texts import concealed
from ..urls import Url, parse_urls
from .counters import Counters

__all__ = ["Destination", "Upstream"]

logger = logging.getLogger("weirpool.bridge")

FIRST_DELAY: Final = 0.1
MAX_DELAY: Final = 5.0
"""Bounds of the seconds after a failed attempt in which requests fail without another one."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a bridge forwards to; the fields are arguments of :func:`weirpool.connect`.

    Attributes:
        setup: The set-up; None: that of the client, if both sides have the same kind of set-up.

    """

    __repr__ = concealed

    url: str
    settings: Settings | None = None
    ssl: tls.SSLContext | None = None
    setup: SetupData | Callable[[], SetupData] | None = None

    def parsed(self) -> Url:
        """Return the parsed URL. Raises UrlError or LocalError if it, or a setting, is not valid."""
        [url] = parse_urls([self.url], self.settings, serving=False)
        return url

    def for_client(self, client: Connection, data_mime: str) -> Destination:
        """Return the destination with the set-up and MIME types of a client, whose data arrives as `data_mime`."""
        theirs, ours = spec_of(client.protocol), spec_of(self.parsed().protocol)
        settings = self.settings or DEFAULT_SETTINGS
        setup = self.setup
        if (theirs.metadata_mime is None) == (ours.metadata_mime is None) and theirs.string_codes == ours.string_codes:
            setup = client.setup if setup is None else setup
        mimes: dict[str, Any] = {}
        if ours.metadata_mime is not None and theirs.metadata_mime is not None:
            mimes["metadata_mime"] = client.metadata_mime
        if not ours.data_mime:
            mimes["data_mime"] = data_mime
        unset = {name: mime for name, mime in mimes.items() if mime and _is_default(settings, name)}
        settings = replace(settings, **unset)
        return replace(self, settings=settings, setup=b"" if setup is None else setup)


class Upstream:
    """Connects for one client when it is needed, and again after the connection is lost.

    Args:
        destination: Where to connect.
        service: Answers requests of the upstream.
        counters: Counts connections.
        client: The client's address, for the log.

    Attributes:
        settings: The settings of the connection.
        connection: The current connection; None before the first.

    """

    def __init__(self, destination: Destination, service: Service, counters: Counters, client: str) -> None:
        self._destination = destination
        self._service = service
        self._counters = counters
        self._client = client
        self._peer: Peer | None = None
        self._lock = asyncio.Lock()
        self._failure = ""
        self._retry_at = 0.0
        self._delay = FIRST_DELAY
        self.settings = destination.settings or DEFAULT_SETTINGS
        self.connection: Connection | None = None

    async def peer(self) -> Peer:
        """Return the peer, connected.

        Raises:
            Rejected: The upstream cannot be reached.
            SetupRejected: The upstream has rejected the set-up.

        """
        if self._peer is not None and not self._peer.closed:
            return self._peer
        async with self._lock:
            if self._peer is None or self._peer.closed:
                self._peer = await self._connect()
            return self._peer

    async def _connect(self) -> Peer:
        clock = asyncio.get_running_loop().time
        if self._failure and clock() < self._retry_at:
            raise Rejected(message=self._failure)
        try:
            peer = await self._open()
        except (ConnectError, SetupRejected) as error:
            self._counters.upstream_failures += 1
            self._failure = f"the upstream {self._destination.parsed().place} cannot be reached: {error}"
            self._retry_at = clock() + self._delay
            self._delay = min(2 * self._delay, MAX_DELAY)
            logger.warning("%s", self._failure, extra={"client": self._client})
            if isinstance(error, SetupRejected):
                raise
            raise Rejected(message=self._failure) from error
        self._failure, self._delay = "", FIRST_DELAY
        self._counters.upstream_connects += 1
        return peer

    async def _open(self) -> Peer:
        to = self._destination
        return await connect(
            to.url,
            service=self._service,
            settings=to.settings,
            ssl=to.ssl,
            setup=to.setup or b"",
            on_connection=self._connected,
            # A new session is made when there is a request for it, and only then.
            reconnect=False,
        )

    @asynccontextmanager
    async def _connected(self, connection: Connection) -> AsyncIterator[None]:
        self.connection = connection
        yield
        if connection.error is not None:
            logger.warning("the upstream was lost: %s", connection.error, extra={"client": self._client})

    async def push(self, metadata: bytes) -> None:
        """Pass on metadata of the whole connection, if the upstream's protocol has that."""
        try:
            await (await self.peer()).push(metadata)
        except UnsupportedKind:
            self._counters.metadata_dropped += 1
        except WeirpoolError as error:
            self._counters.failed(error)

    async def close(self) -> None:
        """Close the connection. The client is gone, and so are its requests."""
        if self._peer is not None:
            await self._peer.close(0)


def _is_default(settings: Settings, name: str) -> Any:
    return getattr(settings, name) == getattr(DEFAULT_SETTINGS, name)
