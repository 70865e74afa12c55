"""What the feeds of one process share: memory for items in flight, and one committer for each journal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from ..journal.committer import Committer
from ..journal.durability import Replica
from ..journal.progress import WINDOW_BYTES
from .pace import Pace
from .request import OnBatch

__all__ = ["Shared"]

WINDOWS_BYTES: Final = 128 * 1024 * 1024
"""Bytes of items in flight of all feeds: half of `Settings.max_identity_bytes`, since they may share a publisher."""
SMALLEST_WINDOW_BYTES: Final = 64 * 1024


class Shared:
    """Belongs to one event loop. Close it after the last feed has ended.

    Args:
        on_batch: Returns the collector's hook for a feed, or None.
        replica: Keeps the logs elsewhere; None: they are durable on this machine.

    Attributes:
        feeds: The number of feeds that run.
        pace: When each of them may connect.

    """

    def __init__(
        self, on_batch: Callable[[str], OnBatch | None] = lambda name: None, replica: Replica | None = None
    ) -> None:
        self.on_batch = on_batch
        self._replica = replica
        self.feeds = 0
        self.pace = Pace()
        self._committers: dict[str, Committer] = {}

    def window_bytes(self) -> int:
        """Return the bytes of items of one feed that may be in flight, when it connects with as many others as now."""
        return min(WINDOW_BYTES, max(SMALLEST_WINDOW_BYTES, WINDOWS_BYTES // max(1, self.feeds)))

    def committer(self, journal: str) -> Committer:
        """Return the committer of a journal."""
        found = self._committers.get(journal)
        if found is None:
            found = self._committers[journal] = Committer(Path(journal), replica=self._replica)
        return found

    async def close(self) -> None:
        """Wait for the last appends."""
        for committer in self._committers.values():
            await committer.close()
        self._committers.clear()
