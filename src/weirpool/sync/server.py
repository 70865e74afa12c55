"""Serves from the background loop."""

from __future__ import annotations

import ssl as tls
import threading
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType

from ..aio import server as aio
from ..aio.service import Service
from ..aio.setup import Acceptor, ConnectionHook
from ..ledger import LedgerSnapshot
from ..settings import Settings
from ..tap import Tap
from .loop import Close, LoopThread, loop_thread
from .peer import Peer

__all__ = ["Server", "serve"]


def serve(
    service: Service,
    *urls: str,
    settings: Settings | None = None,
    ssl: tls.SSLContext | None = None,
    acceptor: Acceptor | None = None,
    taps: Iterable[Tap] = (),
    on_connection: ConnectionHook | None = None,
) -> Server:
    """Serve `service` at `urls` from a background thread: ``with serve(service, url) as server``.

    It listens when this returns. Without a block, call :meth:`Server.close`. The arguments are those of
    :func:`weirpool.serve`. Handlers run in the event loop of the background thread, all in the same one: a plain
    handler must not block, and none may use `weirpool.sync`.

    Args:
        service: The handlers.
        urls: The protocols, transports and addresses to listen on. Port 0 lets the system choose one.
        settings: See :func:`weirpool.serve`, as for all arguments that follow.
        ssl: The TLS context.
        acceptor: Checks each client.
        taps: Observers of all connections.
        on_connection: Called with each connection.

    """

    async def opened() -> aio.Server:
        return await aio.serve(
            service,
            *urls,
            settings=settings,
            ssl=ssl,
            acceptor=acceptor,
            taps=taps,
            on_connection=on_connection,
        )

    loop = loop_thread()
    return Server(loop.wait(opened()), loop)


class Server:
    """Listens for clients of a service; see :func:`weirpool.sync.serve`."""

    def __init__(self, raw: aio.Server, loop: LoopThread) -> None:
        self._raw = raw
        self._loop = loop
        self._closed = threading.Event()
        self._close: Close = partial(raw.close, 0)
        loop.close_at_exit(self._close)

    def __repr__(self) -> str:
        return f"<Server {' '.join(self.urls)}{', closed' if self._closed.is_set() else ''}>"

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self, _warn: Callable[..., None] = warnings.warn) -> None:
        closed = getattr(self, "_closed", None)
        if closed is not None and self._loop.usable and not closed.is_set():
            _warn(f"{self!r} was not closed; use it as a context manager, or call close()", ResourceWarning, 1, self)
            self._loop.abandon(self._close)

    @property
    def urls(self) -> list[str]:
        """The URLs that it listens on, with the actual ports."""
        return self._raw.urls

    @property
    def tapped(self) -> bool:
        """True if it has taps."""
        return self._raw.tapped

    @property
    def connections(self) -> int:
        """The number of sessions, including those that wait for their client to reconnect."""
        return self._raw.connections

    @property
    def peers(self) -> list[Peer]:
        """The clients of all sessions, for requests from the server if the protocol supports them."""
        return [Peer(peer, self._loop, owned=False) for peer in self._loop.call(lambda: self._raw.peers)]

    def metrics(self) -> LedgerSnapshot:
        """Return how many bytes the process holds for its peers: those of all its servers and clients."""
        return self._loop.call(self._raw.metrics)

    def serve_forever(self) -> None:
        """Wait until the server is closed in another thread, or the main thread is interrupted."""
        self._closed.wait()

    def hand_over(self) -> tuple[list[str], list[int]]:
        """Leave the listening sockets to another process; see :meth:`weirpool.Server.hand_over`."""
        return self._loop.call(self._raw.hand_over)

    def close(self, grace: float | None = None) -> None:
        """Stop listening, and close all connections after their open streams have ended.

        Args:
            grace: Seconds after which open streams fail; `Settings.close_grace` by default; 0 fails them at once.

        """
        self._closed.set()
        if self._loop.usable:
            self._loop.wait(self._raw.close(grace))
            self._loop.closed(self._close)
