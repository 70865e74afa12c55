"""The liveness of links: KEEPALIVE, silence, and links that are lost again and again."""

from __future__ import annotations

from math import inf
from typing import Final

from ..core.replay import Replay
from ..core.timers import Timer, TimerTable
from ..wire.rsocket.frames import RESPOND, KeepaliveFrame

__all__ = ["Keepalive", "Wear"]

WORN_OUT: Final = 128
"""Links in a row, each lost within `BRIEF` seconds, after which a session ends if the peer has received no more. Those
that lived longer do not count: a collector that waits for its readers confirms nothing for a long time."""
WEIGHT: Final = 16
"""A link that is lost while a large frame moves counts as this many: eight such links are enough."""
LARGE: Final = 4_096
"""Bytes from which a frame is large. Smaller ones arrive over any link that moves: what is missing then is a peer that
lives long enough to confirm them, such as a collector that is killed eight times in a row."""
BRIEF: Final = 1.0
LOOKS: Final = 2
"""How often the watchdog looks within a lifetime: output that has left the link since the last look counts."""


class Keepalive:
    """The liveness of one link.

    RSocket 1.0, KEEPALIVE Frame: the client sends, the server answers. Any byte from the peer counts as a
    sign of life: a peer that is busy sending items is not dead. So does output that had waited and has left the
    link: the answer to our KEEPALIVE cannot come before the KEEPALIVE has left, and it waits behind all that.

    Attributes:
        last_received_at: When the peer was last heard, or took output that had waited.

    """

    __slots__ = ("_interval", "_lifetime", "_sends", "_timers", "last_received_at")

    def __init__(self, timers: TimerTable) -> None:
        self._timers = timers
        self._sends = False
        self._interval = 0.0
        self._lifetime = 0.0
        self.last_received_at = 0.0

    def start(self, interval: float, lifetime: float, now: float, *, sends: bool) -> None:
        """Begin with a link. Times in seconds; `sends`: we are the client."""
        self._sends = sends
        self._interval = interval
        self._lifetime = lifetime
        self.last_received_at = now
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
        """Whether the peer is dead, now that SILENCE went off; else the timer is set again.

        The timer is not moved for every piece of input: it finds out by itself how long ago that was. It goes off
        more often than it has to, because a driver sees before each timer whether output has left the link.
        """
        deadline = self.last_received_at + self._lifetime
        if now >= deadline:
            return True
        self._timers.set(Timer.SILENCE, min(deadline, now + self._lifetime / LOOKS))
        return False

    def answer(self, frame: KeepaliveFrame, position: int) -> KeepaliveFrame | None:
        """Return the answer to `frame`, if it wants one: the same data, and our own position."""
        if not frame.flags & RESPOND:
            return None
        return KeepaliveFrame(0, position, frame.data)


class Wear:
    """Counts the links in a row that were lost before the peer had received anything over them."""

    __slots__ = ("_count", "_interval", "_linked_at", "_moved_at", "_position")

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._linked_at = 0.0
        # When much output left the link last.
        self._moved_at = -inf
        # What the peer had received when the link came up.
        self._position = -1
        self._count = 0

    def linked(self, now: float, position: int) -> None:
        """Note that a link is up, whose peer has received everything before `position`."""
        if position != self._position:
            self._position = position
            self._count = 0
        self._linked_at = now

    def progressed(self, now: float) -> None:
        """Note that output which had waited has left the link."""
        self._moved_at = now

    def lost(self, now: float, replay: Replay) -> None:
        """Count a link that is lost, if the peer lacked something of what `replay` keeps when it came up."""
        if 0 <= self._position < replay.end:
            moved = now - self._moved_at <= self._interval
            if moved and replay.frame_bytes(self._position) >= LARGE:
                self._count += WEIGHT
            elif now - self._linked_at < BRIEF:
                self._count += 1

    def excess(self, sent: int) -> str:
        """Return why no further link is of use; empty while one may be."""
        if self._count < WORN_OUT:
            return ""
        size = sent - self._position
        text = f"{size} bytes were sent again and again, and each connection was lost before any of it had come"
        return f"{text}; send smaller items or fragments, or mend the link"
