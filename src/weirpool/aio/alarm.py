"""The timer of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import Final

__all__ = ["Alarm"]

LATE_SECONDS: Final = 0.1
"""The delay, in seconds, after which a timer was late because the event loop was."""
READ_SECONDS: Final = 0.002
"""How long a late timer waits for input: at least one poll of the sockets."""


class Alarm:
    """Calls a function at the time for which it is set.

    If the event loop was late, input is read before: uvloop handles timers first, so a peer whose data waits in the
    socket would seem to have been silent.

    Args:
        loop: The event loop.
        ring: Called at the time. It may be early or late; the session checks what is due.

    Attributes:
        due: The time for which it is set; infinite if it is not. It may only be set to an earlier time.

    """

    __slots__ = ("_loop", "_ring", "_timer", "due")

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop = loop
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None
        self.due = inf

    def set(self, due: float) -> None:
        """Set it to an earlier time."""
        if self._timer is not None:
            self._timer.cancel()
        self.due = due
        self._timer = self._loop.call_at(due, self._expired)

    def stop(self) -> None:
        """Stop it for ever."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.due = -inf

    def _expired(self) -> None:
        if self._loop.time() - self.due > LATE_SECONDS:
            # Until then it must not be set to another time, which would be late, too.
            self.due = -inf
            self._timer = self._loop.call_later(READ_SECONDS, self._rings)
        else:
            self._rings()

    def _rings(self) -> None:
        self._timer = None
        self.due = inf
        self._ring()
