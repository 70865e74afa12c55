"""When a log reached which position, for its rate."""

from __future__ import annotations

from collections import deque
from typing import Final

__all__ = ["History"]

RATE_SECONDS: Final = 10.0
"""The time that a rate is measured over, so that it is steady enough to read."""


class History:
    """Samples of the position of one log. Not thread-safe."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()
        self._seen = 0.0

    def add(self, time: float, position: int) -> None:
        """Note the position of the log at a time in seconds. Positions that do not grow only renew the last time."""
        if not self._samples or position > self._samples[-1][1]:
            # The clock may be set back.
            self._samples.append((max(time, self._samples[-1][0]) if self._samples else time, position))
        self.renew(time)

    def renew(self, time: float) -> None:
        """Note that the log has no more rows than before at a time in seconds."""
        self._seen = max(time, self._seen)
        # The last sample at or before the beginning stays: from there on, nothing was added until the next one.
        while len(self._samples) > 1 and self._samples[1][0] <= self._seen - RATE_SECONDS:
            self._samples.popleft()

    def rate(self) -> float:
        """Return the rows per second of the last `RATE_SECONDS`."""
        if len(self._samples) < 2:
            return 0.0
        (time, position), (_, last) = self._samples[0], self._samples[-1]
        seconds = min(RATE_SECONDS, self._seen - time)
        return (last - position) / seconds if seconds > 0 else 0.0
