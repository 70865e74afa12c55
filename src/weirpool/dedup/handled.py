"""What has been handled: shared by all requests of a process, and recorded together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final, TypeVar

from ..aio.setup import current_connection
from ..aio.shares import Shares, client_of
from ..aio.threads import in_thread
from ..errors import Rejected
from .progress import Origin, Progress
from .store import Store
from .turns import Turns

__all__ = ["Handled"]

DATABASE: Final = "database"
READS: Final = 4
"""Questions to the database at once: clients have shares, and wait for turns."""

Q = TypeVar("Q")
A = TypeVar("A")


class Handled:
    """The progress of the tasks whose items are being handled, and a store of all others.

    Args:
        store: The store.

    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turns = Turns()
        self._reads = Shares("turns at the database", READS)
        self._live: dict[Origin, tuple[Progress, int]] = {}
        self._claimed: set[str] = set()
        self._unsaved: dict[Origin, Progress] = {}
        self._unsaved_keys: set[str] = set()

    @asynccontextmanager
    async def progress(self, origin: Origin) -> AsyncIterator[Progress]:
        """Share the progress of a task while the block runs. Changes are recorded by :meth:`record`."""
        async with self._turns.of(("load", origin)):
            progress, users = self._live.get(origin) or (await self._asked(self._store.load, origin), 0)
            self._live[origin] = (progress, users + 1)
        try:
            yield progress
        finally:
            progress, users = self._live[origin]
            if users == 1:
                del self._live[origin]
            else:
                self._live[origin] = (progress, users - 1)

    async def has_key(self, key: str) -> bool:
        """Return True if an application's key was recorded."""
        return await self._asked(self._store.has, key)

    async def _asked(self, question: Callable[[Q], A], about: Q) -> A:
        """Return what the store answers, when it is the client's turn."""
        async with self._reads.turn(client_of(current_connection())):
            return await asyncio.to_thread(question, about)

    @contextmanager
    def claimed(self, key: str) -> Iterator[None]:
        """Keep an application's key for the block.

        Raises:
            Rejected: Another request has it. To wait for it could take for ever: that one may wait for another of ours.

        """
        if key in self._claimed:
            raise Rejected(message="an item with the same key is being handled; send it again later")
        self._claimed.add(key)
        try:
            yield
        finally:
            self._claimed.discard(key)

    @asynccontextmanager
    async def alone(self, thing: object) -> AsyncIterator[None]:
        """Let nobody else handle the same thing while the block runs."""
        async with self._turns.of(("handle", thing)):
            yield

    async def record(self, progress: dict[Origin, Progress], keys: set[str]) -> None:
        """Record progress and keys. They are on disk when this returns; those of other requests share the write."""
        self._unsaved |= progress
        self._unsaved_keys |= keys
        async with self._turns.of(DATABASE):
            taken, taken_keys = self._unsaved, self._unsaved_keys
            self._unsaved, self._unsaved_keys = {}, set()
            if not taken and not taken_keys:
                # Another request has recorded them.
                return
            try:
                await in_thread(self._store.save, taken, taken_keys)
            except BaseException:
                # The others must not believe that theirs were recorded.
                self._unsaved = taken | self._unsaved
                self._unsaved_keys |= taken_keys
                raise

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Store]:
        """Begin a transaction, which is undone unless the block commits it. Nobody else writes meanwhile."""
        async with self._turns.of(DATABASE):
            try:
                # A client may go away meanwhile: a transaction that nobody ends would stop all others.
                await in_thread(self._store.begin)
                yield self._store
            finally:
                # Nothing is left to undo after a commit.
                await in_thread(self._store.rollback)
