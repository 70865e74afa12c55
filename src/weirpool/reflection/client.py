"""Asks a peer for its description."""

from __future__ import annotations

import asyncio
from typing import Final

from ..aio.peer import Peer, RequestMetadata
from ..errors import ApplicationError
from .description import ROUTE, Description, NotDescribed, Why, read

__all__ = ["describe"]

SECONDS: Final = 10.0
"""How long to wait for the answer: other servers may never answer a route that they do not know."""
OFF: Final = "if it uses Weirpool, start it with weirpool serve --reflection, or with Settings(reflection=True)"


async def describe(peer: Peer, *, metadata: RequestMetadata = None, timeout: float = SECONDS) -> Description:
    """Return what a peer offers: its routes, with their kinds, types and documentation.

    It works over every protocol, and on a peer that reconnects or balances; a balancer asks one of its servers.

    Args:
        peer: The peer.
        metadata: Metadata of the request, such as credentials.
        timeout: How long to wait for the answer, in seconds.

    Raises:
        NotDescribed: The peer does not describe itself: it does not know the route, has refused the request, has
            answered something else, or nothing. Its `why` tells these apart.
        WeirpoolError: The connection failed; see :class:`~weirpool.Peer`.

    """
    try:
        async with asyncio.timeout(timeout):
            answer = await peer.call(ROUTE, metadata=metadata)
    except TimeoutError:
        raise NotDescribed(
            Why.SILENT, f"the peer has not described itself within {timeout:g} s; it may not use Weirpool"
        ) from None
    except ApplicationError as error:
        raise _failed(error) from error
    return read(answer.data)


def _failed(error: ApplicationError) -> NotDescribed:
    """Return the error for a peer that failed the request."""
    # The text is that of Weirpool's servers; others word it differently.
    if f"handler is named {ROUTE!r}" in error.message:
        return NotDescribed(Why.UNKNOWN, f"the peer does not describe itself; {OFF}")
    return NotDescribed(Why.REFUSED, f"the peer has refused to describe itself ({error}); {OFF}")
