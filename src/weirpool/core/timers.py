"""The timers of a session: a few named deadlines."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Timer", "TimerTable"]


class Timer(IntEnum):
    """The timers that a session may have."""

    FIRST_FRAME = 0
    """The peer must have sent its first frame."""
    KEEPALIVE = 1
    """Our next KEEPALIVE is due."""
    SILENCE = 2
    """The peer is considered dead unless something is received before."""
    REASSEMBLY = 3
    """The oldest unfinished item must be complete."""
    EXPIRY = 4
    """A session without a link expires."""
    LEASE = 5
    """The lease that the peer granted expires."""
    GRANT = 6
    """The lease policy is asked whether to grant the peer another lease."""
    GOODBYE = 7
    """The peer must have answered our GOODBYE."""
    FRAME = 8
    """An unfinished frame must have grown."""


class TimerTable:
    """Deadlines by name.

    Attributes:
        earliest: The next deadline, or None. It is stored because it is read after each batch, and rarely changes.

    """

    __slots__ = ("_deadlines", "earliest")

    def __init__(self) -> None:
        self._deadlines: dict[Timer, float] = {}
        self.earliest: float | None = None

    def __contains__(self, timer: Timer) -> bool:
        return timer in self._deadlines

    def set(self, timer: Timer, when: float) -> None:
        """Set the deadline of `timer`, and replace an earlier one."""
        self._deadlines[timer] = when
        self.earliest = min(self._deadlines.values())

    def stop(self, timer: Timer) -> None:
        """Remove `timer`."""
        if self._deadlines.pop(timer, None) is not None:
            self.earliest = min(self._deadlines.values(), default=None)

    def clear(self) -> None:
        """Remove all timers."""
        self._deadlines.clear()
        self.earliest = None

    def next(self) -> float | None:
        """Return the earliest deadline."""
        return self.earliest

    def expired(self, now: float) -> list[Timer]:
        """Remove and return the timers that are due, earliest first."""
        due = sorted((when, timer) for timer, when in self._deadlines.items() if when <= now)
        for _, timer in due:
            self.stop(timer)
        return [timer for _, timer in due]
