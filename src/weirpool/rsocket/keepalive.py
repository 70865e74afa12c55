"""The liveness of links: KEEPALIVE and timeouts."""

from __future__ import annotations

from typing import Final

from ..core.timers import Timer, TimerTable
from ..wire.rsocket.frames import RESPOND, KeepaliveFrame

__all__ = ["Keepalive"]

CHECKS_PER_LIFETIME: Final = 2
"""How often silence is checked within a lifetime, so that output that has left the link since the last check counts."""


class Keepalive:
    """Monitors one link.

    RSocket 1.0, KEEPALIVE Frame: the client sends, the server answers. Any byte from the peer shows that it is
    alive, because a peer may be busy with sending items. So does progress of waiting output: our KEEPALIVE waits
    after that output, and cannot be answered before it is sent.

    Attributes:
        last_received_at: When the peer last sent something, or received output that had waited.

    """

    __slots__ = ("_interval", "_lifetime", "_timers", "last_received_at")

    def __init__(self, timers: TimerTable) -> None:
        self._timers = timers
        self._interval = 0.0
        self._lifetime = 0.0
        self.last_received_at = 0.0

    def start(self, interval: float, lifetime: float, now: float, *, sends: bool) -> None:
        """Start to monitor a new link. Times are in seconds; `sends` is True on a client."""
        self._interval = interval
        self._lifetime = lifetime
        self.last_received_at = now
        self._timers.set(Timer.SILENCE, now + lifetime / CHECKS_PER_LIFETIME)
        if sends:
            self._timers.set(Timer.KEEPALIVE, now + interval)

    def stop(self) -> None:
        """Stop when the link is lost."""
        self._timers.stop(Timer.KEEPALIVE)
        self._timers.stop(Timer.SILENCE)

    def due(self, now: float, position: int) -> KeepaliveFrame:
        """Return the frame to send when the timer KEEPALIVE has expired, and restart the timer."""
        self._timers.set(Timer.KEEPALIVE, now + self._interval)
        return KeepaliveFrame(RESPOND, position)

    def silent(self, now: float) -> bool:
        """Return whether the peer is dead when the timer SILENCE has expired; if not, restart the timer.

        The timer is not moved for each input; this method checks the time of the last one. It expires more often
        than necessary, because drivers only check before each timer whether output has left the link.
        """
        deadline = self.last_received_at + self._lifetime
        if now >= deadline:
            return True
        self._timers.set(Timer.SILENCE, min(deadline, now + self._lifetime / CHECKS_PER_LIFETIME))
        return False

    def answer(self, frame: KeepaliveFrame, position: int) -> KeepaliveFrame | None:
        """Return the answer to `frame`, with the same data and our position; None if it requests none."""
        if not frame.flags & RESPOND:
            return None
        return KeepaliveFrame(0, position, frame.data)
