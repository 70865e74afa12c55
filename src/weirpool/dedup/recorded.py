"""The items of one request: which of them are new, and their record."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, ExitStack
from typing import Any

from ..aio.items import Items
from ..aio.threads import in_thread
from ..errors import Invalid
from ..payload import Payload
from .handled import Handled
from .keys import checked, row_of
from .progress import Origin, Progress, Row
from .store import Store

__all__ = ["Key", "Recorded"]

Key = Callable[[Payload], str]
"""Returns an item's key."""


class Recorded:
    """The items of one request. They are recorded by :meth:`finish`; without it, they are new again next time.

    Args:
        handled: What was handled before.
        key: Returns the key of an item; None: items are rows of Spark's sink.
        stack: What has to be left when the request is over.
        transaction: The store whose transaction the record belongs to, if there is one.

    """

    def __init__(self, handled: Handled, key: Key | None, stack: AsyncExitStack, transaction: Store | None) -> None:
        self._handled = handled
        self._key = key
        self._stack = stack
        self._transaction = transaction
        self._origin: Origin | None = None
        self._shared = Progress()
        self._own = Progress()
        self._keys: set[str] = set()

    @property
    def connection(self) -> tuple[Any, ...]:
        """The connection of the transaction, if there is one, as further arguments of the handler."""
        return () if self._transaction is None else (self._transaction.connection,)

    async def new(self, items: Items) -> AsyncIterator[Payload]:
        """Yield the items that were not handled before."""
        async for item in items:
            if await self.is_new(item, is_request=False):
                yield item

    async def is_new(self, item: Payload, *, is_request: bool) -> bool:
        """Return True if an item was not handled before. From now on, nobody else handles it."""
        if self._key is not None:
            return await self._is_new_key(checked(self._key(item)))
        row = row_of(item, is_request=is_request)
        if self._origin is None:
            await self._enter(row, row if is_request else row.origin)
        elif row.origin != self._origin:
            raise Invalid(message="a request has the rows of one task; these are of several")
        if self._own.has(row.batch, row.index):
            return False
        self._own.add(row.batch, row.index)
        return True

    async def finish(self) -> None:
        """Record the items, after they were handled. This is on disk when it returns."""
        progress: dict[Origin, Progress] = {}
        if self._origin is not None:
            self._shared.include(self._own)
            progress[self._origin] = self._shared
        if self._transaction is None:
            await self._handled.record(progress, self._keys)
        else:
            await in_thread(self._transaction.commit, progress, self._keys)

    async def _enter(self, row: Row, thing: Row | Origin) -> None:
        """Take part in the progress of a task, and keep others from handling the same thing."""
        if self._transaction is None:
            await self._stack.enter_async_context(self._handled.alone(thing))
        self._shared = await self._stack.enter_async_context(self._handled.progress(row.origin))
        self._own = self._shared.copy()
        self._origin = row.origin

    async def _is_new_key(self, key: str) -> bool:
        if key in self._keys:
            return False
        with ExitStack() as claim:
            # First: while the database is asked, a request that has the key may record it, and give it up.
            claim.enter_context(self._handled.claimed(key))
            if await self._handled.has_key(key):
                return False
            self._stack.push(claim.pop_all())
        self._keys.add(key)
        return True
