"""Metadata that the peer of one connection has pushed, and its handler."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from contextvars import Context
from functools import partial
from inspect import isawaitable
from typing import Any, Final

from .exchanges import Exchanges, contained, failure_of
from .service import Service

__all__ = ["Pushes"]

logger = logging.getLogger("weirpool.aio")

PUSH_BYTES: Final = 256
"""Memory that metadata takes in addition to its bytes while it waits."""
PUSHES_PER_TURN: Final = 32
"""Pushes that are handled in one turn of the loop, after which others may run."""


class Pushes:
    """Passes pushed metadata to the handler of the service, one after the other and in order.

    A plain function is called at once. While a coroutine function runs, further metadata waits. It counts as received
    and not consumed, so that too much of it stops reading. Exchanges has this object among its fires then: a closing
    connection waits for the handler, and one that holds too much may drop what waits.

    Attributes:
        task: A future that is done when nothing waits any more; None if nothing does.
        held: The memory of what waits.

    """

    __slots__ = ("_context", "_current", "_exchanges", "_waiting", "held", "task")
    stream_id = 0

    def __init__(self, exchanges: Exchanges, context: Context) -> None:
        self._exchanges = exchanges
        self._context = context
        self._waiting: deque[tuple[Service, bytes]] = deque()
        # The task of the handler.
        self._current: asyncio.Future[Any] | None = None
        self.task: asyncio.Future[None] | None = None
        self.held = 0

    def take(self, service: Service, metadata: bytes) -> None:
        """Pass `metadata` to the handler of `service`, after everything that arrived before."""
        if self.task is None:
            self._call(service, metadata)
            return
        self._waiting.append((service, metadata))
        self._hold(PUSH_BYTES + len(metadata))

    def canceled(self, metadata: bytes | None = None) -> None:
        """Drop what waits, and cancel the handler, because the connection holds too much."""
        if self._current is not None:
            self._current.cancel()

    def _call(self, service: Service, metadata: bytes) -> None:
        """Call the handler in a context of its own, and run it in a task if it is a coroutine function."""
        context = self._context.copy()
        try:
            result: Any = context.run(service.pushed, metadata)
        except BaseException:
            logger.exception("the push handler failed")
            return
        if isawaitable(result):
            finished = partial(self._finished, result)
            task = self._exchanges.start(contained(result), finished, context, "the push handler")
            if not task.done():
                self._current = task
                if self.task is None:
                    self.task = self._exchanges.flow.loop.create_future()
                    self._exchanges.fires.add(self)

    def _finished(self, work: Any, task: asyncio.Future[Any]) -> None:
        if task.cancelled() and hasattr(work, "close"):
            # The coroutine is still open if the task was canceled before its first step.
            work.close()
        self._exchanges.tasks.discard(task)
        error = failure_of(task)
        if error is not None and not task.cancelled():
            logger.error("the push handler failed", exc_info=error)
        if task is self._current:
            self._current = None
            if task.cancelled() and self._waiting:
                what = "%s: %d pushes were received and not handled"
                logger.warning(what, self._exchanges.flow.name, len(self._waiting))
                self._waiting.clear()
                self._hold(-self.held)
            self._go_on()

    def _go_on(self) -> None:
        """Call the handler for what waits, until it runs in a task."""
        for _ in range(PUSHES_PER_TURN):
            if not self._waiting or self._current is not None:
                break
            service, metadata = self._waiting.popleft()
            self._hold(-PUSH_BYTES - len(metadata))
            self._call(service, metadata)
        if self._current is None and self._waiting:
            self._exchanges.flow.loop.call_soon(self._go_on)
        elif self._current is None and self.task is not None:
            self.task.set_result(None)
            self.task = None
            self._exchanges.fires.discard(self)

    def _hold(self, size: int) -> None:
        flow = self._exchanges.flow
        self.held += size
        if size > 0:
            flow.account.book(size)
        elif size:
            flow.account.release(-size)
            if not flow.batching:
                # A batch settles the account.
                flow.schedule_write()
