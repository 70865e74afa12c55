"""The responses of calls, for the tasks that await them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any

from .flow import Flow

__all__ = ["Replies", "Reply"]


class Reply:
    """The result of a call, or of another request, that one task awaits. :meth:`Replies.new` makes it.

    Tasks use it as a future. It is made of fewer objects than :class:`asyncio.Future`, which matters with thousands of
    open calls, and all replies of a batch wake their tasks in one callback of the loop.

    Awaiting it returns None; then take the result with :meth:`result`.

    Attributes:
        value: The result, once it is done.

    """

    __slots__ = (
        "_asyncio_future_blocking", "_callback", "_context", "_done", "_error", "_loop", "_replies", "value"
    )  # fmt: skip

    def begin(self, replies: Replies) -> None:
        """Set the state of a new reply."""
        self._asyncio_future_blocking = False
        self._replies = replies
        # Tasks look for it under this name, which is faster than the method `get_loop` of futures.
        self._loop = replies.loop
        self._callback: Callable[[Reply], object] | None = None
        self._context: Context | None = None
        self._done = False
        self._error: BaseException | None = None
        self.value: Any = None

    # For exchanges.

    def done(self) -> bool:
        """Return True if it has a result or an error, or was canceled."""
        return self._done

    def set_result(self, value: Any) -> None:
        """Let the task continue with `value`."""
        self.value = value
        self._end()

    def set_exception(self, error: Exception) -> None:
        """Raise `error` in the task."""
        self._error = error
        self._end()

    def _end(self) -> None:
        self._done = True
        if self._callback is not None:
            self._replies.add(self)

    def wake(self) -> None:
        """Continue the task."""
        callback, context = self._callback, self._context
        self._callback = self._context = None
        if callback is not None and context is not None:
            context.run(callback, self)

    # For the task; see :class:`asyncio.Future`.

    def __await__(self) -> Generator[Any, None, None]:
        return self  # type: ignore[return-value]

    def __iter__(self) -> Reply:
        return self

    def __next__(self) -> Reply:
        if not self._done:
            self._asyncio_future_blocking = True
            return self
        if self._error is not None:
            raise self._taken()
        raise StopIteration

    def add_done_callback(self, callback: Callable[[Reply], object], *, context: Context) -> None:
        """Call `callback` in `context` when it is done. There is only one."""
        self._callback, self._context = callback, context
        if self._done:
            self._replies.add(self)

    def cancel(self, msg: object = None) -> bool:
        """Cancel it; return False if it is done."""
        if self._done:
            return False
        self._error = asyncio.CancelledError() if msg is None else asyncio.CancelledError(msg)
        self._end()
        return True

    def result(self) -> Any:
        """Return the result, or raise the error."""
        if self._error is not None:
            raise self._taken()
        return self.value

    def _taken(self) -> BaseException:
        """Return the error, and forget it: its traceback will refer to this reply."""
        error, self._error = self._error, None
        assert error is not None
        return error


class Replies:
    """Wakes the tasks whose requests of one connection were answered.

    All that were answered in one batch continue in one callback of the loop, and what they send is written at its end.

    Attributes:
        loop: The event loop.

    """

    __slots__ = ("_flow", "_ready", "loop")

    def __init__(self, flow: Flow) -> None:
        self.loop = flow.loop
        self._flow = flow
        self._ready: list[Reply] = []

    def new(self) -> Reply:
        """Return a reply that is not done."""
        reply = Reply.__new__(Reply)
        reply.begin(self)
        return reply

    def add(self, reply: Reply) -> None:
        """Wake the task of `reply` in the next turn of the loop."""
        if not self._ready:
            self.loop.call_soon(self._wake)
        self._ready.append(reply)

    def _wake(self) -> None:
        ready = self._ready
        self._ready = []
        # From the end of the list, the first ones first, so that each reply is freed before the next task continues.
        ready.reverse()
        flow = self._flow
        flow.batching = True
        try:
            while ready:
                reply = ready.pop()
                reply.wake()
        finally:
            # There are some only if an exception ends the process.
            while ready:
                self.add(ready.pop())
            flow.flush()
