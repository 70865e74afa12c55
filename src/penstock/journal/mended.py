"""A view of a log as it will be after its files are repaired, for planning and doing a repair."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa

from ..errors import JournalCorrupt
from .gaps import Gap
from .layout import DURABLE, GAPS, TRIMMED
from .mark import Mark
from .storage import LogFolder

__all__ = ["Mended"]


class Mended(LogFolder):
    """The folder of a log with some of its files treated as removed or renamed.

    Args:
        log: The log.
        moved: The renamed segments with their new names, and those that are set aside, with None.
        gone: The small files that are set aside.

    """

    def __init__(self, log: LogFolder, moved: Mapping[int, int | None], gone: Collection[str]) -> None:
        super().__init__(log.filesystem, log.path)
        self._moved = moved
        self._gone = gone
        self._from = {home: name for name, home in moved.items() if home is not None}

    def segments(self) -> list[tuple[int, int]]:
        """Return first position and size in bytes of each segment, in order."""
        found = [(self._moved.get(first, first), size) for first, size in super().segments()]
        return sorted((first, size) for first, size in found if first is not None)

    def content(self, first: int) -> pa.Buffer | None:
        """Return the content of a segment, or None if there is none."""
        if first not in self._from and first in self._moved:
            return None
        return super().content(self._from.get(first, first))

    def mark(self) -> Mark | None:
        """Return the durable mark, or None if there is none."""
        if DURABLE in self._gone:
            raise JournalCorrupt(f"{self.path}/{DURABLE}: names a batch that no segment of this log has")
        return super().mark()

    def kept_gaps(self) -> list[Gap]:
        """Return the gaps in the log's file."""
        return [] if GAPS in self._gone else super().kept_gaps()

    def trimmed(self, uuid: str) -> int:
        """Return the position below which rows were trimmed."""
        return 0 if TRIMMED in self._gone else super().trimmed(uuid)
