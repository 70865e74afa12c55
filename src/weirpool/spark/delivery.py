"""Sends the rows of one task to a peer, as its credit allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from ..errors import WeirpoolError
from ..receiving.messages import Stage
from .feed import Chunk, Feed
from .items import Origin, Packer
from .link import Link
from .rejection import Letters, Rejection
from .sending import SENDERS
from .sink_options import SinkOptions
from .staging import stage

if TYPE_CHECKING:
    from ..aio.peer import Peer

__all__ = ["Delivered", "publish"]

WHOLE: Final = ("channel", "upload")
"""Kinds whose rows are accepted together. The others are repeated by rows."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What has become of the rows of a task."""

    rows: int
    """The number of rows that were sent."""
    rejections: tuple[Rejection, ...] = ()
    """Those that the receiver has rejected."""
    stages: tuple[Stage, ...] = ()
    """Their names at the receiver, if they are staged."""


def publish(options: SinkOptions, packer: Packer, origin: Origin, batches: Iterator[pa.RecordBatch]) -> Delivered:
    """Send rows, and return when the peer has accepted or rejected each of them.

    A channel or an upload is accepted when the peer has completed its side, a call when it is answered. With
    fire-and-forget, the rows have been written to the network, and nothing more is known.

    Raises:
        ConnectError: The peer cannot be reached.
        ApplicationError: The peer rejected the rows, or failed.
        SessionError: The connection broke, and repeating the request did not help.
        Undelivered: The peer has stalled, or has rejected a row that there is no place for.

    """
    from ..aio.loop import run

    return run(_publish(options, Feed(packer, origin, batches, options.rows_per_second)))


async def _publish(options: SinkOptions, feed: Feed) -> Delivered:
    letters = None if options.dead_letters is None else Letters(options.max_dead_letters)
    whole = options.transactional or options.kind in WHOLE
    limit = options.request_bytes if whole else 1
    rows = 0
    stages: list[Stage] = []
    async with Link(options) as link:
        while await feed.ready():
            chunk = Chunk(feed, limit)
            stages += await _deliver(link, options, chunk, letters)
            rows += chunk.rows
    return Delivered(rows, () if letters is None else tuple(letters.rejections), tuple(stages))


async def _deliver(link: Link, options: SinkOptions, chunk: Chunk, letters: Letters | None) -> list[Stage]:
    """Send a chunk, and return its stage if it is staged."""
    feed = chunk.feed

    async def send(peer: Peer) -> list[Stage]:
        try:
            if options.transactional:
                return [await stage(peer, options, chunk)]
            await SENDERS[options.kind](peer, options, chunk, letters)
        except WeirpoolError:
            if feed.error is not None:
                # The request failed because the rows did.
                raise feed.error from None
            raise
        return []

    kind = "stage" if options.transactional else options.kind
    return await link.request(
        send, f"the {kind} for partition {feed.origin.partition} to route {options.route!r}", feed.held
    )
