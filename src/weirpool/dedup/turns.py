"""Items that are being handled, so that the same item is not handled twice at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

__all__ = ["Turns"]


class Turns:
    """Lets those who want the same thing take turns. Nothing is kept for what nobody wants."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, tuple[asyncio.Lock, int]] = {}

    @asynccontextmanager
    async def of(self, thing: Hashable) -> AsyncIterator[None]:
        """Wait until nobody else is in such a block for an equal thing."""
        lock, users = self._locks.get(thing) or (asyncio.Lock(), 0)
        self._locks[thing] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            _, users = self._locks[thing]
            if users == 1:
                del self._locks[thing]
            else:
                self._locks[thing] = (lock, users - 1)

    def __len__(self) -> int:
        return len(self._locks)
