"""When a collector reads: often enough for a fast feed, and seldom enough for many slow ones.

A slow feed is read once per tick. Between ticks its link is not read, so that the items of a tick cost one read, one
batch and one report to the publisher, however they arrive. The ticks of all feeds of a process coincide, so that their
batches can become durable together.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from ..errors import LocalError
from .committer import Committer
from .ticks import Ticks

__all__ = ["LARGEST_LINGER", "LINGER", "Rhythm", "Source", "linger_of"]

LINGER: Final = 0.05
"""Seconds between the ticks of a few feeds: twenty batches per second are cheap to write and to read."""
LARGEST_LINGER: Final = 0.25
"""The same of many feeds."""
MAX_LINGER: Final = 5.0
"""Well below the time after which peers take a silent link for lost."""
BATCHES: Final = 400
"""The batches that all slow feeds of a process may write per second."""
EARLY: Final = 0.004
"""Seconds by which a timer may ring early, and a little more: the next tick must not be the same again."""
SMALL_BYTES: Final = 32_768
"""A smaller batch is all that a read has found. After a larger one, more may wait in the link."""
SMALL_ROWS: Final = 4_096
"""A batch of this many rows does not wait for more."""


class Source(Protocol):
    """A stream whose link need not be read all the time."""

    def pause(self) -> None:
        """Read no more until `resume`."""

    def resume(self) -> None:
        """Read again."""


def linger_of(feeds: int) -> float:
    """Return the seconds between ticks of this many feeds in a process."""
    return min(max(LINGER, feeds / BATCHES), LARGEST_LINGER)


class Rhythm:
    """The ticks of one feed.

    Args:
        linger: Seconds between two ticks; 0: items are read when they arrive. None: depending on the number of feeds.
        committer: Counts the feeds.

    """

    def __init__(self, linger: float | None, committer: Committer | None) -> None:
        if linger is not None and not 0 <= linger <= MAX_LINGER:
            raise LocalError(f"linger is {linger}; it must be between 0 and {MAX_LINGER:g} seconds")
        self._linger = linger
        self._committer = committer
        self._ticks = committer.ticks if committer else Ticks()
        # The next one.
        self._tick: float | None = None
        self._stream: Source | None = None
        # The batch of the last tick is not durable yet.
        self._busy = False
        self._missed = False

    @property
    def seconds(self) -> float:
        """The time between two ticks."""
        return linger_of(self._committer.feeds if self._committer else 1) if self._linger is None else self._linger

    async def gather(self, stream: Source, rows: int, size: int) -> None:
        """Wait for more items after a batch of this size, or read no more until the next tick if it is small."""
        seconds = self.seconds
        if rows >= SMALL_ROWS or not seconds:
            return
        if size >= SMALL_BYTES:
            await asyncio.sleep(seconds)
            return
        self.stop()
        stream.pause()
        self._stream, self._busy, self._missed = stream, True, False
        now = asyncio.get_running_loop().time()
        self._set(((now + EARLY) // seconds + 1) * seconds)

    def appended(self) -> None:
        """Begin to wait for items, as the last ones are durable. A tick that was missed meanwhile is made up for."""
        self._busy = False
        if self._missed:
            self.stop()
            self._read()

    def _set(self, tick: float) -> None:
        self._tick = tick
        self._ticks.add(tick, self, self._ring)

    def _ring(self) -> None:
        tick, self._tick = self._tick, None
        if self._busy and not self._missed and tick is not None:
            # Each read now would cost as much as one of a whole tick. But a peer must not take the link for lost.
            self._missed = True
            self._set(tick + LARGEST_LINGER)
        else:
            self._read()

    def _read(self) -> None:
        self._missed = False
        if self._stream is not None:
            self._stream.resume()

    def stop(self) -> None:
        """Forget the next tick."""
        if self._tick is not None:
            self._ticks.remove(self._tick, self)
            self._tick = None
