"""When a log reached which position: for rates, and for the lag of readers in seconds."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

__all__ = ["History"]

MAX_SAMPLES: Final = 1_024
"""8 KiB for each of two columns. When it is full, every other sample of the older half goes."""
RATE_SECONDS: Final = 10.0
"""The time that a rate is measured over, so that it is steady enough to read."""


class History:
    """Samples of the position of one log. Old ones are sparser. Not thread-safe.

    Args:
        known: Pairs of time and position from before, in order, such as those of segments.

    """

    def __init__(self, known: Iterable[tuple[float, int]] = ()) -> None:
        self._times = array("d")
        self._positions = array("q")
        self._seen = 0.0
        for time, position in known:
            self.add(time, position)

    def add(self, time: float, position: int) -> None:
        """Note the position of the log at a time in seconds. Positions that do not grow only renew the last time."""
        self.renew(time)
        if self._positions and position <= self._positions[-1]:
            return
        if len(self._times) == MAX_SAMPLES:
            half = MAX_SAMPLES // 2
            self._times = self._times[:half:2] + self._times[half:]
            self._positions = self._positions[:half:2] + self._positions[half:]
        # The clock may be set back.
        self._times.append(max(time, self._times[-1]) if self._times else time)
        self._positions.append(position)

    def renew(self, time: float) -> None:
        """Note that the log has no more rows than before at a time in seconds."""
        self._seen = max(time, self._seen)

    def samples(self) -> list[tuple[float, int]]:
        """Return the pairs of time and position, in order."""
        return list(zip(self._times, self._positions, strict=True))

    def stored_at(self, position: int) -> float | None:
        """Return the time by which the row at `position` was stored; None if it is not stored yet.

        For rows from before the first sample it is the time of that sample.
        """
        index = bisect_right(self._positions, position)
        return self._times[index] if index < len(self._times) else None

    def rate(self) -> float:
        """Return the rows per second of the last `RATE_SECONDS`."""
        if len(self._times) < 2:
            return 0.0
        # The last sample at or before the beginning: from there on, nothing was added until the next one.
        index = max(0, bisect_right(self._times, self._seen - RATE_SECONDS) - 1)
        seconds = min(RATE_SECONDS, self._seen - self._times[index])
        rows = self._positions[-1] - self._positions[index]
        return rows / seconds if seconds > 0 else 0.0
