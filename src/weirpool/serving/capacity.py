"""What the journals of a server share, so that many of them need no more than one; and the shares of clients in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, TypeVar

from ..aio import descriptors
from ..aio.shares import Client, Shares
from ..aio.threads import ended
from ..errors import Rejected

__all__ = ["Capacity"]

THREADS: Final = 8
"""Requests that wait for the disk at once; clients have shares, and wait for turns."""
MAX_READS: Final = 32
"""Streams that read at once: clients have shares, and wait for turns. Each has up to two chunks of a megabyte, and what
is open of one file."""
MAX_HOLDS: Final = 256
"""Names that are held at once: clients have shares. Each needs a descriptor, and a file while it is held."""
MAX_FOLLOWS: Final = 1_024
"""Clients that are told of changes: they have shares. Each costs a look at all logs with every change."""

T = TypeVar("T")


class Capacity:
    """The threads and places of all journals that a server serves.

    Attributes:
        threads: The threads that wait for the disk; one more than clients may use, for looks at what changes.
        reads: The places of streams that read.
        follows: The places of clients that follow changes.

    """

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(THREADS + 1, "weirpool-journal")
        self.reads = Shares("places to read", MAX_READS)
        self.follows = Shares("places to follow changes", MAX_FOLLOWS)
        self._holds = Shares("names that are held here", MAX_HOLDS)
        self._turns = Shares("threads", THREADS)

    @contextmanager
    def hold(self, client: Client) -> Iterator[None]:
        """Count a name that a client holds while a block lasts; `Rejected` above its share."""
        if self._holds.own(client) >= max(descriptors.spare(), 0):
            raise Rejected(
                message=f"this client holds {self._holds.own(client)} names, and this process has no more descriptors "
                "for it; try again later"
            )
        with self._holds.taken(client):
            yield

    async def in_thread(self, client: Client, work: Callable[[], T]) -> T:
        """Return the result of work that waits for the disk, when it is the client's turn.

        If this is canceled, it ends after the work.
        """
        async with self._turns.turn(client):
            return await ended(asyncio.get_running_loop().run_in_executor(self.threads, work))
