"""`Deduplicated`: handlers that run once for each item, however often a client sends it."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, TypeVar, cast

from ..aio.items import Items
from ..aio.surrounding import surround
from ..errors import LocalError
from ..functions import check_plain
from ..payload import Payload
from .handled import Handled
from .recorded import Key, Recorded
from .store import KEEP_SECONDS, Store

__all__ = ["Deduplicated"]

H = TypeVar("H", bound=Callable[..., Any])


class Deduplicated:
    """Makes handlers run once for each item: a decorator below that of the service.

    ::

        once = Deduplicated("data/delays.db")

        @service.channel("delays")
        @once
        async def delays(request, items):
            async for item in items:
                await save(item)
            return []

    An item is known by its metadata as Spark's sink sends it, or by a key of the application. When the handler has
    finished, its items are recorded; items that were recorded are not passed to it again. If the process dies in
    between, they are: the handler's effects are then repeated, unless they are in the same transaction. For that,
    use :meth:`atomic`.

    Handlers of channels and uploads iterate over `items`, one at a time. Handlers may be typed. A repeated call is
    answered with empty data, or with null if its handler is typed.

    Args:
        store: The path of an SQLite database, which is created if necessary; the URL of another one, such as
            ``postgresql+psycopg://…``, for which SQLAlchemy must be installed; or a
            :class:`~weirpool.dedup.store.Store`. It may have other tables. One process at a time uses it, unless all
            handlers are atomic.
        key: Returns an item's key, which is the same each time the item is sent; by default, rows of Spark's sink are
            known by query, micro-batch, partition and index. Such rows need one entry for a task, keys one each.
        keep: Seconds that something is remembered after it was handled.

    Raises:
        DedupError: The database cannot be opened.

    """

    def __init__(
        self, store: str | os.PathLike[str] | Store, *, key: Key | None = None, keep: float = KEEP_SECONDS
    ) -> None:
        if key is not None:
            check_plain(key, "the key of a Deduplicated")
        self._store = store if isinstance(store, Store) else Store(store, keep=keep)
        self._handled = Handled(self._store)
        self._key = key

    def __call__(self, handler: H) -> H:
        """Return a handler of the same kind that gets new items only, and records them when it has finished.

        Raises:
            LocalError: It is a generator that is not async.

        """
        return cast("H", self._decorated(handler, atomic=False))

    def atomic(self, handler: H) -> H:
        """Return a handler whose effects are stored together with the record of its items, or not at all.

        It is called with the database's connection as another argument, in a transaction that is committed when it has
        finished, and undone if it fails. It must not commit. One such handler runs at a time.

        Raises:
            LocalError: It is a generator that is not async.

        """
        return cast("H", self._decorated(handler, atomic=True))

    def close(self) -> None:
        """Close the database, when the server has stopped."""
        self._store.close()

    def _decorated(self, handler: Any, *, atomic: bool) -> Any:
        if inspect.isgeneratorfunction(handler):
            raise LocalError(f"{handler.__name__} is a generator; make it async, so that it can wait for the database")
        takes_items = len(inspect.signature(handler).parameters) > (2 if atomic else 1)
        yields = inspect.isasyncgenfunction(handler)

        def around(begin: Callable[..., Any], nothing: Callable[[Payload], Any]) -> Callable[..., Any]:
            if not takes_items:
                return self._single(begin, nothing, atomic)
            return self._answering(begin, atomic) if yields else self._many(begin, atomic)

        return surround(handler, around)

    def _single(
        self, begin: Callable[..., Any], nothing: Callable[[Payload], Any], atomic: bool
    ) -> Callable[[Payload], Any]:
        async def single(request: Payload) -> Any:
            async with self._request(atomic) as recorded:
                if not await recorded.is_new(request, is_request=True):
                    return nothing(request)
                answer = begin(request, *recorded.connection)
                answer = await answer if inspect.isawaitable(answer) else answer
                await recorded.finish()
            return answer

        return single

    def _many(self, begin: Callable[..., Any], atomic: bool) -> Callable[[Payload, Items], Any]:
        async def many(request: Payload, items: Items) -> Any:
            async with self._request(atomic) as recorded:
                answer = await begin(request, recorded.new(items), *recorded.connection)
                await recorded.finish()
            return answer

        return many

    def _answering(self, begin: Callable[..., Any], atomic: bool) -> Callable[[Payload, Items], Any]:
        async def answering(request: Payload, items: Items) -> AsyncIterator[Any]:
            async with self._request(atomic) as recorded:
                # A handler that a client leaves ends before its transaction does, and before others may begin.
                async with aclosing(begin(request, recorded.new(items), *recorded.connection)) as answers:
                    async for answer in answers:
                        yield answer
                await recorded.finish()

        return answering

    @asynccontextmanager
    async def _request(self, atomic: bool) -> AsyncIterator[Recorded]:
        async with AsyncExitStack() as stack:
            transaction = await stack.enter_async_context(self._handled.transaction()) if atomic else None
            yield Recorded(self._handled, self._key, stack, transaction)
