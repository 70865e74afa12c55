"""The blocking client: ``with connect(url) as peer``."""

from __future__ import annotations

import ssl as tls
from collections.abc import Callable, Iterable
from typing import Literal

from ..aio import client as aio
from ..aio.dialer import SetupData
from ..aio.handlers import Interceptor
from ..aio.peer import Peer as AsyncPeer
from ..aio.reconnect import Reconnect
from ..aio.service import Service
from ..aio.setup import ConnectionHook
from ..settings import Settings
from ..tap import Tap
from .loop import loop_thread
from .peer import Peer

__all__ = ["connect"]


def connect(
    url: str,
    *,
    service: Service | None = None,
    settings: Settings | None = None,
    setup: SetupData | Callable[[], SetupData] = b"",
    ssl: tls.SSLContext | None = None,
    checkpoint: bytes | None = None,
    secret: bytes = b"",
    confirm: bool = False,
    interceptors: Iterable[Interceptor] = (),
    taps: Iterable[Tap] = (),
    on_connection: ConnectionHook | None = None,
    reconnect: Reconnect | Literal[False] | None = None,
    timeout: float | None = None,
) -> Peer:
    """Connect to a server: ``with connect(url) as peer``, or ``peer = connect(url)``, and later ``peer.close()``.

    The arguments are those of :func:`weirpool.connect`. Handlers, interceptors, taps and hooks run in the thread of the
    event loop, so they must not block.

    Args:
        url: The protocol, transport and address: ``rsocket+tcp://127.0.0.1:7878``.
        service: See :func:`weirpool.connect`, as for all arguments that follow.
        settings: Limits and timeouts.
        setup: The set-up payload, or a function that returns it.
        ssl: The TLS context.
        checkpoint: The result of a checkpoint in another process.
        secret: The secret in that process.
        confirm: Whether to wait until the server has accepted the set-up.
        interceptors: Functions around all requests of the peer.
        taps: Observers of events.
        on_connection: Called with the connection.
        reconnect: How to reconnect if the connection breaks.
        timeout: Seconds to wait at most for the connection, and by default for each response, and for the next item of
            each stream. None: no limit but those of the settings.

    Raises:
        TimeoutError: The connection takes longer than `timeout`.

    """

    async def opened() -> AsyncPeer:
        return await aio.connect(
            url,
            service=service,
            settings=settings,
            setup=setup,
            ssl=ssl,
            checkpoint=checkpoint,
            secret=secret,
            confirm=confirm,
            interceptors=interceptors,
            taps=taps,
            on_connection=on_connection,
            reconnect=reconnect,
        )

    loop = loop_thread()
    return Peer(loop.wait(opened(), timeout, f"connecting to {url}"), loop, timeout)
