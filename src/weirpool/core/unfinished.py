"""The input of a link that is not decoded yet: it is counted, and an unfinished frame must grow."""

from __future__ import annotations

from ..account import Account
from .timers import Timer, TimerTable

__all__ = ["Unfinished"]


class Unfinished:
    """Counts the bytes of an unfinished frame, and limits how long it may stop growing (THREATS 86).

    The peer's keepalive lifetime does not matter, because the peer chooses it. A slow peer may take as long as it
    needs, because the bytes are counted.

    Args:
        account: The account of the connection.
        timers: The timers of the session.
        timeout: Seconds within which the frame must grow.

    Attributes:
        held: The bytes that are held.

    """

    __slots__ = ("_account", "_grown_at", "_ready", "_timeout", "_timers", "_watched", "held")

    def __init__(self, account: Account, timers: TimerTable, timeout: float) -> None:
        self._account = account
        self._timers = timers
        self._timeout = timeout
        self._watched = self._ready = False
        # The time of the last read.
        self._grown_at = 0.0
        self.held = 0

    def update(self, held: int, now: float, ready: bool = False) -> None:
        """Set the bytes that are held after a read. With `ready`, they have whole frames, which are decoded later."""
        self._grown_at = now
        if held != self.held or ready != self._ready:
            self._count(held, ready)
        if held and not self._watched:
            self._watched = True
            self._timers.set(Timer.FRAME, now + self._timeout)

    def overdue(self, now: float) -> bool:
        """Return whether an unfinished frame has stopped growing. Call it when the timer has expired."""
        self._watched = False
        if not self.held:
            return False
        if self._account.paused or self._ready:
            # This side does not read.
            self._grown_at = now
        due = self._grown_at + self._timeout
        if due <= now:
            return True
        self._watched = True
        self._timers.set(Timer.FRAME, due)
        return False

    def excuse(self, now: float) -> None:
        """Begin to wait for growth again: this side has not read until now, or the peer has shown that it is alive."""
        self._grown_at = now

    def drop(self) -> None:
        """Forget the frame, because its link is gone."""
        self._count(0, False)
        self._watched = False
        self._timers.stop(Timer.FRAME)

    def _count(self, held: int, ready: bool) -> None:
        """Count the bytes. Those of whole frames are not incomplete, because this side can release them by itself."""
        if self._ready:
            self._account.release(self.held)
        else:
            self._account.book_incomplete(-self.held)
        if ready:
            self._account.book(held)
        else:
            self._account.book_incomplete(held)
        self.held = held
        self._ready = ready
