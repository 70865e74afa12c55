"""Opens the connection of a verb, sends its request, prints items and reports totals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..errors import ApplicationError
from ..urls import parse_url
from .bodies import bodies_of
from .console import note
from .framedump import FrameDump
from .lines import paced
from .output import Printer

if TYPE_CHECKING:
    from ..aio.metrics import MetricsSnapshot
    from ..aio.peer import Peer
    from ..aio.streams import Stream
    from ..payload import Payload
    from ..tap import Tap
    from .connect_options import ConnectOptions
    from .request_options import RequestOptions

__all__ = ["ask", "print_items", "summary", "with_peer", "with_peers"]


def with_peer(url: str, use: Callable[[Peer], Awaitable[None]], options: ConnectOptions) -> None:
    """Connect to `url`, await `use` with the peer, and close; see :func:`with_peers`."""

    async def with_one(peers: list[Peer]) -> None:
        await use(peers[0])

    with_peers(url, 1, with_one, options)


def with_peers(url: str, count: int, use: Callable[[list[Peer]], Awaitable[None]], options: ConnectOptions) -> None:
    """Make `count` connections to `url`, await `use` with the peers, and close.

    Raises:
        WeirpoolError: `connect` or `use` failed.
        TimeoutError: The time limit of the options was exceeded.

    """
    from ..aio.client import connect
    from ..aio.loop import run
    from ..aio.metrics import Metrics
    from ..aio.reconnect import Reconnect
    from ..transports import carries_messages

    began = monotonic()
    settings = options.settings(url)
    setup = options.setup_payload(url, settings)
    address, context = options.tls(url)
    metrics = Metrics()
    taps: list[Tap] = [metrics] if options.stats else []
    if options.debug:
        messages = carries_messages(parse_url(url))
        taps.append(FrameDump(note, secrets=options.show_secrets, messages=messages))
    policy = Reconnect(attempts=1 + options.retry, initial=True) if options.retry else None
    # An extension can be used only after the server's hello has listed it.
    shared: dict[str, Any] = {"settings": settings, "confirm": bool(settings.extensions)}

    async def main() -> None:
        async with asyncio.timeout(options.timeout), AsyncExitStack() as stack:
            peers = [
                await stack.enter_async_context(
                    connect(address, setup=setup, ssl=context, taps=taps, reconnect=policy, **shared)
                )
                for _ in range(count)
            ]
            try:
                await use(peers)
            except ApplicationError as error:
                error.data = bodies_of(url, options.data_mime).error_data(error)
                raise

    try:
        run(main())
    finally:
        if options.stats:
            note(summary(metrics.snapshot(), monotonic() - began))


def ask(
    url: str,
    route: str,
    request: RequestOptions,
    options: ConnectOptions,
    use: Callable[[Peer, str, Payload], Awaitable[None]],
) -> None:
    """Connect to `url`, await `use` with the peer, the route and the request, and close; see :func:`with_peer`."""
    request_route, payload = request.request(url, route, options.settings(url))
    payload = bodies_of(url, options.data_mime).outgoing(payload)

    async def send(peer: Peer) -> None:
        await use(peer, request_route, payload)

    with_peer(url, send, options)


async def print_items(items: Stream, printer: Printer, take: int | None, interval: float = 0) -> None:
    """Print the items of a stream until it ends, or until `take` of them are printed."""
    count = 0
    async with items:
        async for item in paced(items, interval) if interval else items:
            count += 1
            # Items that arrived together are written together, without delaying the last one.
            printer.item(item, flush=count == take or interval > 0 or not items.ready)
            if count == take:
                break


def summary(counted: MetricsSnapshot, seconds: float) -> str:
    """Return totals and rates as one line.

    Args:
        counted: The counters of all connections, at their end.
        seconds: The duration, including connecting.

    """
    requests = sum(counted.streams_opened.values())
    items = counted.received_items + counted.sent_items
    return (
        f"{requests:,} requests; items: {counted.received_items:,} received, {counted.sent_items:,} sent;"
        f" bytes: {counted.received_bytes:,} received, {counted.sent_bytes:,} sent;"
        f" {seconds:.3f} s, {items / max(seconds, 1e-6):,.0f} items/s"
    )
