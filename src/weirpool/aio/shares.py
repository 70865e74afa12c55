"""What clients take up: their shares of what a process has once for all of them, and the bytes that are held for them.

Threads, places and bytes that wait for the disk have shares. Bytes are also in the ledger, like all that is received.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Hashable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeAlias

from ..account import UNLIMITED, Account
from ..connection import Connection
from ..errors import Rejected

__all__ = ["Client", "Shares", "client_of", "held"]

Client: TypeAlias = Hashable
"""Who takes something: what `client_of` returns."""


def client_of(connection: Connection) -> Client:
    """Return the client of a connection, as limits and the ledger count it: its principal, or else its address.

    Where there is neither, each connection is a client.
    """
    return connection.counted_as or connection


@contextmanager
def held(connection: Connection, size: int) -> Iterator[None]:
    """Count bytes that a handler holds for the client of a connection while a block lasts, in the ledger."""
    account = Account(UNLIMITED, connection.account)
    account.book(size)
    try:
        yield
    finally:
        account.close()


class Shares:
    """A pool that clients share. None of them may take more of it than it leaves to all others.

    One client alone can have half of the pool, the next one half of the rest, and so on: something is always left for
    a client that comes. A client that has nothing may have the last piece. Requests of one client wait for each other;
    clients that wait are served in turn, and before those that come later.

    Not thread-safe.

    Args:
        name: What is shared, for errors: "open holds of this server".
        limit: How much there is.

    Attributes:
        limit: The same.
        used: How much is taken.
        peak: The maximum of `used`.

    """

    __slots__ = ("_name", "_own", "_waiting", "limit", "peak", "used")

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self.limit = limit
        self.used = self.peak = 0
        self._own: Counter[Client] = Counter()
        self._waiting: OrderedDict[Client, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()

    @property
    def wanted(self) -> bool:
        """True if somebody waits."""
        return bool(self._waiting)

    def own(self, client: Client) -> int:
        """Return how much a client has."""
        return self._own[client]

    def take(self, client: Client, size: int = 1) -> bool:
        """Take something at once, and return True; return False if it is above the client's share. See `give_back`."""
        if self._waiting or not self._allows(client, size):
            return False
        self.add(client, size)
        return True

    def add(self, client: Client, size: int = 1) -> None:
        """Count something that a client has, whatever its share is."""
        self.used += size
        self._own[client] += size
        self.peak = max(self.peak, self.used)

    def give_back(self, client: Client, size: int = 1) -> None:
        """Give back what was taken."""
        self.used -= size
        self._own[client] -= size
        if not self._own[client]:
            del self._own[client]
        if self._waiting:
            self._serve()

    @contextmanager
    def taken(self, client: Client, size: int = 1) -> Iterator[None]:
        """Take something while a block lasts; `Rejected` if it is above the client's share."""
        if not self.take(client, size):
            raise Rejected(
                message=f"this client has {self._own[client]} of {self.limit} {self._name}, and all others have "
                f"{self.used - self._own[client]}: it may not have more than it leaves; try again later"
            )
        try:
            yield
        finally:
            self.give_back(client, size)

    @asynccontextmanager
    async def turn(self, client: Client, size: int = 1) -> AsyncIterator[None]:
        """Wait for something, and take it while a block lasts."""
        size = self.fitting(size)
        await self.wait(client, size)
        try:
            yield
        finally:
            self.give_back(client, size)

    def fitting(self, size: int) -> int:
        """Return how much counts of something that may be larger than a share: it must not wait for ever."""
        return min(size, max(self.limit // 2, 1))

    async def wait(self, client: Client, size: int = 1) -> None:
        """Wait for something, and take it. See `give_back`, and `fitting` for sizes."""
        if self.take(client, size):
            return
        request = size, asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(request)
        self._serve()
        try:
            await request[1]
        except asyncio.CancelledError:
            if not request[1].cancelled():
                self.give_back(client, size)
            elif request in self._waiting.get(client, ()):
                self._leave(client, request)
                self._serve()
            raise

    def _allows(self, client: Client, size: int) -> bool:
        """Return True if a client may take something: if it then has no more than is free, or nothing now."""
        free, own = self.limit - self.used - size, self._own[client]
        return free >= 0 and (not own or own + size <= free)

    def _serve(self) -> None:
        """Give those that wait what they may have, a piece to each client in turn."""
        served = True
        while served:
            served = False
            for client in list(self._waiting):
                size, waiter = request = self._waiting[client][0]
                if waiter.done() or self._allows(client, size):
                    self._leave(client, request)
                    served = True
                    if not waiter.done():
                        self.add(client, size)
                        waiter.set_result(None)
                elif not self._own[client]:
                    # It has nothing, and needs more than is free: nobody else gets what is given back.
                    return

    def _leave(self, client: Client, request: tuple[int, asyncio.Future[None]]) -> None:
        """Remove a request that no longer waits; the client's next one waits behind those of other clients."""
        queue = self._waiting[client]
        queue.remove(request)
        if queue:
            self._waiting.move_to_end(client)
        else:
            del self._waiting[client]
