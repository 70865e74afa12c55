"""What the verbs that talk to another side have in common: the request, the connection, and its end."""

from __future__ import annotations

import asyncio
import ssl as tls
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ..errors import LocalError
from ..payload import Payload
from .arguments import read_bytes
from .bodies import Bodies
from .output import Printer

if TYPE_CHECKING:
    from ..aio.peer import Peer
    from ..aio.streams import Stream

__all__ = ["print_items", "request_of", "tls_context", "with_peer"]


def request_of(data: str, metadata: str | None) -> Payload:
    """Return the request that the options --data and --metadata stand for.

    Raises:
        LocalError: A file cannot be read.

    """
    return Payload(read_bytes(data), None if metadata is None else read_bytes(metadata))


def with_peer(
    url: str,
    use: Callable[[Peer], Awaitable[None]],
    *,
    retry: int,
    timeout: float | None,
    cafile: str | None,
    insecure: bool,
) -> None:
    """Connect, await `use` with the other side, and close.

    Args:
        url: Where to.
        use: What to do there.
        retry: How often to try again when no connection can be made.
        timeout: Seconds that all of it may take; None: as long as it likes.
        cafile: A file of certificates to trust, for TLS.
        insecure: Trust any certificate.

    Raises:
        PenstockError: As `connect` and `use` do.
        TimeoutError: It took longer.

    """
    from ..aio.client import connect
    from ..aio.loop import run
    from ..aio.reconnect import Reconnect

    context = tls_context(cafile, insecure)
    policy = Reconnect(attempts=1 + retry, initial=True) if retry else None

    async def main() -> None:
        async with asyncio.timeout(timeout), connect(url, ssl=context, reconnect=policy) as peer:
            await use(peer)

    run(main())


async def print_items(items: Stream, as_json: bool, take: int | None, bodies: Bodies) -> None:
    """Print the items of a stream until it ends, or until `take` of them are printed."""
    printer = Printer(as_json)
    count = 0
    async with items:
        async for item in items:
            count += 1
            # What arrived together is written together; nobody waits for what is here.
            printer.item(bodies.incoming(item), flush=count == take or not items.ready)
            if count == take:
                break


def tls_context(cafile: str | None, insecure: bool) -> tls.SSLContext | None:
    """Return what decides whom to trust; None for what the URL says, or else the system's certificate authorities.

    Raises:
        LocalError: The file holds no certificates.

    """
    if cafile is None and not insecure:
        return None
    try:
        context = tls.create_default_context(cafile=cafile)
    except OSError as error:
        raise LocalError(f"cannot read certificates from {cafile!r}: {error.strerror or error}") from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = tls.CERT_NONE
    return context
