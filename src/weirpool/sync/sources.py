"""Plain iterables as sources of items: a thread takes their items, because they may block."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Generator, Iterable
from contextlib import suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Final

from ..aio.outgoing import DEMAND
from ..aio.sources import Source, check_source
from ..payload import Payload

__all__ = ["ThreadSource", "source_of"]

MAX_AHEAD: Final = 256
"""Items that the thread takes at most before the loop has sent them: enough to make the change of threads cheap."""
MAX_AHEAD_BYTES: Final = 1 << 18
"""Bytes after which it takes no more of them."""

_END: Final = object()


class _Waiter:
    """What the loop waits for. The thread wakes it once."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[None] = loop.create_future()
        self.woken = False


class _Failure:
    """What an iterable raised."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def source_of(outgoing: Source) -> Source:
    """Return a source that does not block the event loop.

    Raises:
        LocalError: `outgoing` is not iterable.

    """
    check_source(outgoing)
    # These do not block, and can be sent again if the peer has refused them.
    if isinstance(outgoing, AsyncIterable | Awaitable | list | tuple):
        return outgoing
    return ThreadSource(outgoing)


class ThreadSource:
    """An async iterator over the items of an iterable, which runs in a thread of its own.

    The thread takes as many items as the peer has requested, and no more than `MAX_AHEAD`.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = items
        self._context = copy_context()
        self._loop: asyncio.AbstractEventLoop
        # How many items the thread may take next; 0: it ends.
        self._orders: SimpleQueue[int] = SimpleQueue()
        self._taken: deque[Any] = deque()
        # True while the thread waits for an order; set after its last item.
        self._idle = True
        self._started = False
        self._stopped = False
        self._waiter: _Waiter | None = None

    def __aiter__(self) -> ThreadSource:
        return self

    async def __anext__(self) -> Any:
        while not self._taken:
            await self._more()
        item = self._taken.popleft()
        if item is _END:
            self._taken.append(_END)
            raise StopAsyncIteration
        if type(item) is _Failure:
            self._taken.append(_END)
            raise item.error
        return item

    async def aclose(self) -> None:
        """Take no more items, and let the thread close the iterable."""
        self._stopped = True
        self._taken.append(_END)
        self._orders.put(0)

    async def _more(self) -> None:
        """Wait until the thread has taken an item, or its order is done."""
        self._loop = asyncio.get_running_loop()
        # The thread writes and then reads it; this side reads after it has written. So none of them waits in vain.
        self._waiter = _Waiter(self._loop)
        if self._idle:
            self._order()
        if not self._taken:
            await self._waiter.future

    def _order(self) -> None:
        demand = DEMAND.get()
        count = 1 if demand is None else max(1, min(demand(), MAX_AHEAD))
        self._idle = False
        self._orders.put(count)
        if not self._started:
            self._started = True
            threading.Thread(target=self._context.run, args=(self._run,), name="weirpool-source", daemon=True).start()

    # In the thread.

    def _run(self) -> None:
        items: Any = None
        last: object = _END
        try:
            items = iter(self._items)
            while (count := self._orders.get()) and self._take(items, count):
                self._idle = True
                self._wake()
        except BaseException as error:
            last = _Failure(error)
        if self._stopped:
            last = _closed(items) or last
        self._put(last)

    def _take(self, items: Any, count: int) -> bool:
        """Take `count` items, or fewer large ones; return False at the end."""
        size = 0
        while count > 0 and size < MAX_AHEAD_BYTES and not self._stopped:
            item = next(items, _END)
            if item is _END:
                return False
            self._put(item)
            count -= 1
            size += _size_of(item)
        return True

    def _put(self, item: object) -> None:
        self._taken.append(item)
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.woken:
            waiter.woken = True
            # The loop may have ended with the process.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_done, waiter.future)


def _done(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _closed(items: Generator[Any, None, None] | Any) -> _Failure | None:
    """Close an iterator that has `close`; return what it raised."""
    close = getattr(items, "close", None)
    try:
        if close is not None:
            close()
    except BaseException as error:
        return _Failure(error)
    return None


def _size_of(item: object) -> int:
    if isinstance(item, bytes | str):
        return len(item)
    if isinstance(item, Payload):
        return len(item.data) + len(item.metadata or b"")
    # Many at once, such as a record batch.
    return int(getattr(item, "nbytes", 0))
