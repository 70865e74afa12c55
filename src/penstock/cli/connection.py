"""What the verbs that talk to another side have in common: the connection, its end, and the items that come."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import TYPE_CHECKING

from ..errors import ApplicationError
from .bodies import bodies_of
from .output import Printer
from .pace import paced
from .stats import summary

if TYPE_CHECKING:
    from ..aio.peer import Peer
    from ..aio.reconnect import Reconnect
    from ..aio.streams import Stream
    from ..payload import Payload
    from ..tap import Tap
    from .connect_options import ConnectOptions
    from .request_options import RequestOptions

__all__ = ["ask", "print_items", "tell", "with_peer"]


def with_peer(url: str, use: Callable[[Peer], Awaitable[None]], options: ConnectOptions) -> None:
    """Connect, await `use` with the other side, and close.

    Args:
        url: Where to.
        use: What to do there.
        options: How.

    Raises:
        PenstockError: As `connect` and `use` do.
        TimeoutError: It took longer than the options allow.

    """
    from ..aio.client import connect
    from ..aio.loop import run
    from ..aio.metrics import Metrics

    began = monotonic()
    settings = options.settings(url)
    setup = options.setup_payload(url, settings)
    place, context = options.tls(url)
    metrics = Metrics()
    taps: list[Tap] = [metrics] if options.stats else []
    if options.debug:
        taps.append(_dump(url, options))
    policy = _policy(options.retry)

    async def main() -> None:
        connecting = connect(place, settings=settings, setup=setup, ssl=context, taps=taps, reconnect=policy)
        async with asyncio.timeout(options.timeout), connecting as peer:
            try:
                await use(peer)
            except ApplicationError as error:
                error.data = bodies_of(url).error_data(error)
                raise

    try:
        run(main())
    finally:
        if options.stats:
            tell(summary(metrics.snapshot(), monotonic() - began))


def ask(
    url: str,
    route: str,
    request: RequestOptions,
    options: ConnectOptions,
    use: Callable[[Peer, str, Payload], Awaitable[None]],
) -> None:
    """Connect, await `use` with the other side, the route to ask for and the request, and close.

    Raises:
        PenstockError: As `connect` and `use` do, or an option is wrong.
        TimeoutError: It took longer than the options allow.

    """
    wanted, payload = request.request(url, route, options.settings(url))
    payload = bodies_of(url).outgoing(payload)

    async def asking(peer: Peer) -> None:
        await use(peer, wanted, payload)

    with_peer(url, asking, options)


async def print_items(items: Stream, printer: Printer, take: int | None, interval: float = 0) -> None:
    """Print the items of a stream until it ends, or until `take` of them are printed."""
    count = 0
    async with items:
        async for item in paced(items, interval) if interval else items:
            count += 1
            # What arrived together is written together; nobody waits for what is here.
            printer.item(item, flush=count == take or interval > 0 or not items.ready)
            if count == take:
                break


def tell(line: str) -> None:
    """Write a line to standard error at once."""
    print(line, file=sys.stderr, flush=True)


def _policy(retry: int) -> Reconnect | None:
    """Return what tries again so often when no connection can be made."""
    from ..aio.reconnect import Reconnect

    return Reconnect(attempts=1 + retry, initial=True) if retry else None


def _dump(url: str, options: ConnectOptions) -> Tap:
    from ..transports import carries_messages
    from ..urls import parse_url
    from .framedump import FrameDump

    return FrameDump(tell, secrets=options.show_secrets, messages=carries_messages(parse_url(url)))
