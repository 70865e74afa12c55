"""A session's timers: a handful of deadlines, each with a name."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["Timer", "TimerTable"]


class Timer(IntEnum):
    """The timers that a session may have."""

    FIRST_FRAME = 0
    """The peer must have said who it is."""
    KEEPALIVE = 1
    """The next KEEPALIVE of ours is due."""
    SILENCE = 2
    """The peer is taken for dead unless it is heard before."""
    REASSEMBLY = 3
    """The oldest unfinished item must be whole."""
    EXPIRY = 4
    """A session without a link is forgotten."""
    LEASE = 5
    """The peer's leave for requests of ours expires."""
    GRANT = 6
    """It is time to look whether the peer gets leave for more requests."""
    GOODBYE = 7
    """The peer must have answered our goodbye."""


class TimerTable(dict[Timer, float]):
    """Deadlines by name."""

    __slots__ = ()

    def set(self, timer: Timer, when: float) -> None:
        """Let `timer` go off at `when`, and not at the time set before."""
        self[timer] = when

    def stop(self, timer: Timer) -> None:
        """Forget `timer`."""
        self.pop(timer, None)

    def next(self) -> float | None:
        """Return the earliest deadline."""
        return min(self.values(), default=None)

    def expired(self, now: float) -> list[Timer]:
        """Return the timers that are due, earliest first, and forget them."""
        due = sorted((when, timer) for timer, when in self.items() if when <= now)
        for _, timer in due:
            del self[timer]
        return [timer for _, timer in due]
