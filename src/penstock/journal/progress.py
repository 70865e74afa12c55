"""A collector's progress, its window of items in flight, and its waiting for a full disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import msgspec

from ..errors import DiskFull, LocalError

__all__ = ["RETRY", "Progress", "Window", "until_room", "write"]

logger = logging.getLogger("penstock.journal.collect")

WINDOW_BYTES: Final = 16 * 1024 * 1024
"""Bytes on their way to the disk: enough for 1 GB/s at 16 ms per flush, and small enough to keep twice in memory."""
FIRST_WINDOW: Final = 1_024
"""Items to request before their size is known."""
SMALLEST_WINDOW: Final = 2
LARGEST_WINDOW: Final = 262_144
RETRY: Final = 0.5
"""Seconds between checks of a full disk, or of a budget that is used up."""


class Progress(msgspec.Struct):
    """The progress of a collector.

    Attributes:
        rows: Items that this process has collected.
        size: Their bytes.
        position: The journal's next position.
        gaps: Gaps that this process has recorded.
        already: The stream was complete before this process started.
        waiting: The reason why no items are requested at the moment; otherwise empty.

    """

    rows: int = 0
    size: int = 0
    position: int = 0
    gaps: int = 0
    already: bool = False
    waiting: str = ""


class Window:
    """The items of a stream that may be in flight, as many as fit into `WINDOW_BYTES`.

    Args:
        credit: The maximum number of items; None: 262,144.

    Attributes:
        first: Items to request before their size is known.
        outstanding: Items that were requested and have not arrived.

    """

    def __init__(self, credit: int | None) -> None:
        if credit is not None and credit < 1:
            raise LocalError(f"credit is {credit}; a collector needs at least 1")
        self._largest = LARGEST_WINDOW if credit is None else credit
        self._smallest = min(SMALLEST_WINDOW, self._largest)
        self.first = min(FIRST_WINDOW, self._largest)
        self.open(0)

    def open(self, outstanding: int) -> None:
        """Start a stream from which this many items were already requested."""
        self.outstanding = outstanding
        self._size = max(outstanding, self.first)

    def resize(self, rows: int, size: int) -> None:
        """Adapt the window to the size of the items that have arrived."""
        fitting = WINDOW_BYTES // max(1, size // rows)
        # At most twice as large at once, because the next items may be larger.
        self._size = max(self._smallest, min(fitting, self._largest, 2 * self._size))

    def wanted(self, rows: int) -> int:
        """Return how many more items to request after `rows` are appended."""
        wanted = self._size - (self.outstanding - rows)
        # A few items are not worth a write to disk, unless no others are in flight.
        return wanted if wanted >= self._size // 2 or self.outstanding == rows else 0


async def write(progress: Progress, action: Callable[..., object], *arguments: object) -> None:
    """Call `action` in a thread, because it waits for the disk; wait while the disk is full."""
    before = progress.waiting
    while True:
        writing = asyncio.ensure_future(asyncio.to_thread(action, *arguments))
        try:
            await asyncio.wait((writing,))
        except asyncio.CancelledError:
            # The log is closed after a cancellation, and the thread cannot be stopped: it must end first.
            while not writing.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait((writing,))
            if (failure := writing.exception()) is not None:
                logger.warning("the collector was canceled, and its last write failed: %s", failure)
            raise
        try:
            writing.result()
            break
        except DiskFull as error:
            # Received items stay in memory, and no more are requested.
            await until_room(progress, error)
    progress.waiting = before


async def until_room(progress: Progress, error: DiskFull) -> None:
    """Wait for space on the disk, and report this."""
    if progress.waiting != str(error):
        logger.warning("%s", error)
    progress.waiting = str(error)
    await asyncio.sleep(RETRY)
