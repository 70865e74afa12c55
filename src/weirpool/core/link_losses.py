"""Detects output that no link delivers."""

from __future__ import annotations

from math import inf
from typing import Final

__all__ = ["LinkLosses"]

MAX_LOSSES: Final = 128
"""Maximum number of successive links that are lost shortly after they were established, without progress of the peer.
Longer links do not count: a collector that waits for its readers confirms nothing for a long time."""
LARGE_WEIGHT: Final = 16
"""A link that is lost while a large frame is being sent counts as this many losses, so eight such links are enough."""
LARGE_BYTES: Final = 4_096
"""Minimum size of a large frame. Smaller ones arrive over any link that moves; if they are not confirmed, the peer did
not run long enough, such as a collector that is killed eight times in a row."""


class LinkLosses:
    """Counts successive links that were lost before the peer received anything over them.

    Args:
        short_seconds: Links that are lost within this time count.
        progress_seconds: Waiting output has moved if some of it left the link this long before the loss.

    Attributes:
        delivered: The position up to which the peer has received; -1 if it is unknown.

    """

    __slots__ = ("_count", "_linked_at", "_progress_seconds", "_progressed_at", "_short_seconds", "delivered")

    def __init__(self, short_seconds: float, progress_seconds: float) -> None:
        self._short_seconds = short_seconds
        self._progress_seconds = progress_seconds
        self._linked_at = self._progressed_at = -inf
        self._count = 0
        self.delivered = -1

    @property
    def too_many(self) -> bool:
        """True if the session must end, because further links would be lost like the others."""
        return self._count >= MAX_LOSSES

    def linked(self, now: float) -> None:
        """Record a new link."""
        self._linked_at = now

    def progressed(self, now: float) -> None:
        """Record that waiting output has left the link."""
        self._progressed_at = now

    def deliver(self, position: int) -> None:
        """Record how far the peer has received. The count starts again when that advances."""
        if position != self.delivered:
            self.delivered = position
            self._count = 0

    def lost(self, now: float, size: int) -> None:
        """Count a link that was lost with unconfirmed output; `size` is that of the frame that holds up the others."""
        if size >= LARGE_BYTES and now - self._progressed_at <= self._progress_seconds:
            self._count += LARGE_WEIGHT
        elif now - self._linked_at < self._short_seconds:
            self._count += 1
