"""KEEPALIVE: who sends it, when, and when silence means death."""

from __future__ import annotations

from typing import Final

from ..core.timers import Timer, TimerTable
from ..wire.rsocket.frames import RESPOND, KeepaliveFrame

__all__ = ["Keepalive"]

LOOKS: Final = 2
"""How often the watchdog looks within a lifetime: output that has left the link since the last look counts."""


class Keepalive:
    """The liveness of one link.

    RSocket 1.0, KEEPALIVE Frame: the client sends, the server answers. Any byte of the peer's counts as a
    sign of life: a peer that is busy sending items is not dead. So does output that had waited and has left the
    link: the answer to our KEEPALIVE cannot come before the KEEPALIVE has left, and it waits behind all that.

    Attributes:
        heard: When the peer was last heard, or took output that had waited.

    """

    __slots__ = ("_interval", "_lifetime", "_sends", "_timers", "heard")

    def __init__(self, timers: TimerTable) -> None:
        self._timers = timers
        self._sends = False
        self._interval = 0.0
        self._lifetime = 0.0
        self.heard = 0.0

    def start(self, interval: float, lifetime: float, now: float, *, sends: bool) -> None:
        """Begin with a link. Times in seconds; `sends`: we are the client."""
        self._sends = sends
        self._interval = interval
        self._lifetime = lifetime
        self.heard = now
        self._timers.set(Timer.SILENCE, now + lifetime / LOOKS)
        if sends:
            self._timers.set(Timer.KEEPALIVE, now + interval)

    def stop(self) -> None:
        """End with the link."""
        self._timers.stop(Timer.KEEPALIVE)
        self._timers.stop(Timer.SILENCE)

    def due(self, now: float, position: int) -> KeepaliveFrame:
        """Return the frame to send, now that KEEPALIVE went off, and set the next."""
        self._timers.set(Timer.KEEPALIVE, now + self._interval)
        return KeepaliveFrame(RESPOND, position)

    def silent(self, now: float) -> bool:
        """Whether the peer is dead, now that SILENCE went off; else the timer is set anew.

        The timer is not moved for every piece of input: it finds out by itself how long ago that was. It goes off
        more often than it has to, because a driver sees before each timer whether output has left the link.
        """
        deadline = self.heard + self._lifetime
        if now >= deadline:
            return True
        self._timers.set(Timer.SILENCE, min(deadline, now + self._lifetime / LOOKS))
        return False

    def answer(self, frame: KeepaliveFrame, position: int) -> KeepaliveFrame | None:
        """Return the answer to `frame`, if it wants one: the same data, and our own position."""
        if not frame.flags & RESPOND:
            return None
        return KeepaliveFrame(0, position, frame.data)
