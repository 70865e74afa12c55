"""The liveness of links: KEEPALIVE, timeouts, and repeated link losses."""

from __future__ import annotations

from math import inf
from typing import Final

from ..core.replay import Replay
from ..core.timers import Timer, TimerTable
from ..wire.rsocket.frames import RESPOND, KeepaliveFrame

__all__ = ["Keepalive", "LinkLosses"]

MAX_LOSSES: Final = 128
"""Maximum number of successive links that are lost within `SHORT_LINK_SECONDS` without progress of the peer. Longer
links do not count: a collector that waits for its readers confirms nothing for a long time."""
LARGE_FRAME_WEIGHT: Final = 16
"""A link that is lost while a large frame is being sent counts as this many losses, so eight such links are enough."""
LARGE_FRAME_BYTES: Final = 4_096
"""Minimum size of a large frame. Smaller ones arrive over any link that moves; if they are not confirmed, the peer did
not run long enough, such as a collector that is killed eight times in a row."""
SHORT_LINK_SECONDS: Final = 1.0
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

    __slots__ = ("_interval", "_lifetime", "_sends", "_timers", "last_received_at")

    def __init__(self, timers: TimerTable) -> None:
        self._timers = timers
        self._sends = False
        self._interval = 0.0
        self._lifetime = 0.0
        self.last_received_at = 0.0

    def start(self, interval: float, lifetime: float, now: float, *, sends: bool) -> None:
        """Start to monitor a new link. Times are in seconds; `sends` is True on a client."""
        self._sends = sends
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


class LinkLosses:
    """Counts successive links that were lost before the peer received anything over them."""

    __slots__ = ("_count", "_interval", "_linked_at", "_moved_at", "_position")

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._linked_at = 0.0
        # When waiting output last left the link.
        self._moved_at = -inf
        # The position up to which the peer had received when the link was established.
        self._position = -1
        self._count = 0

    def linked(self, now: float, position: int) -> None:
        """Record a new link, whose peer has received everything before `position`."""
        if position != self._position:
            self._position = position
            self._count = 0
        self._linked_at = now

    def progressed(self, now: float) -> None:
        """Record that waiting output has left the link."""
        self._moved_at = now

    def lost(self, now: float, replay: Replay) -> None:
        """Count a lost link if there was output in `replay` that the peer lacked."""
        if 0 <= self._position < replay.end:
            moved = now - self._moved_at <= self._interval
            if moved and replay.frame_bytes(self._position) >= LARGE_FRAME_BYTES:
                self._count += LARGE_FRAME_WEIGHT
            elif now - self._linked_at < SHORT_LINK_SECONDS:
                self._count += 1

    def excess(self, sent: int) -> str:
        """Return why the session must end; an empty string if the limit is not exceeded."""
        if self._count < MAX_LOSSES:
            return ""
        size = sent - self._position
        text = f"{size} bytes were sent repeatedly, and each connection was lost before any of them arrived"
        return f"{text}; send smaller items or fragments, or repair the network"
