"""A collector's progress, its window of items in flight, and its waiting for a full disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from enum import StrEnum
from time import monotonic
from typing import Any, Final

import msgspec

from ..errors import JournalUnavailable, LocalError

__all__ = [
    "RETRY",
    "USED_UP",
    "WINDOW_BYTES",
    "Lasting",
    "Phase",
    "Progress",
    "Window",
    "closing",
    "settled",
    "until_room",
    "write",
]

logger = logging.getLogger("weirpool.journal.collect")

WINDOW_BYTES: Final = 16 * 1024 * 1024
"""Bytes on their way to the disk: enough for 1 GB/s at 16 ms per flush, and small enough to keep twice in memory."""
FIRST_WINDOW: Final = 1_024
"""Items to request before their size is known."""
SMALLEST_WINDOW: Final = 2
LARGEST_WINDOW: Final = 262_144
RETRY: Final = 0.5
"""Seconds between checks of a full disk, or of a budget that is used up."""
USED_UP: Final = (
    "the journal's budget is used up: no reader commits (in Spark, name the query with the option reader), or readers "
    "are too slow; `weirpool journal forget` removes one that will not return"
)

BROKEN: Final = "the connection broke; the collector tries to resume the session"


class Phase(StrEnum):
    """What a collector is doing."""

    CONNECTING = "connecting"
    LIVE = "live"
    WAITING_FOR_BUDGET = "waiting for budget"
    WAITING_FOR_DISK = "waiting for disk"
    COMPLETE = "complete"
    STOPPED = "stopped"


class Progress(msgspec.Struct):
    """The progress of a collector.

    Attributes:
        rows: Items that this process has collected.
        size: Their bytes.
        position: The journal's next position.
        gaps: Gaps that this process has recorded.
        already: The stream was complete before this process started.
        waiting: The reason why no items are requested at the moment; otherwise empty.
        phase: What the collector is doing.
        granted: Items that were requested and have not arrived.
        reconnects: How often a connection was lost, refused or not made.
        syncs: Appends to the journal.
        sync_seconds: The time until they were durable, in total.
        linked: Returns whether the newest session has a connection; None before the first one.

    """

    rows: int = 0
    size: int = 0
    position: int = 0
    gaps: int = 0
    already: bool = False
    waiting: str = ""
    phase: Phase = Phase.CONNECTING
    granted: int = 0
    reconnects: int = 0
    syncs: int = 0
    sync_seconds: float = 0.0
    linked: Callable[[], bool] | None = None

    def look(self) -> None:
        """Notice that the session has lost its connection, or has another one. Call this before the phase matters."""
        if self.linked is None:
            return
        if self.phase is Phase.LIVE and not self.linked():
            self.reconnects += 1
            self.turn(Phase.CONNECTING, BROKEN)
        elif self.waiting == BROKEN and self.linked():
            self.turn(Phase.LIVE)

    def turn(self, phase: Phase, waiting: str = "") -> None:
        """Record what the collector is doing from now on, and why it waits."""
        self.phase, self.waiting = phase, waiting

    def slowed(self, room: bool) -> bool:
        """Record whether there is room in the budget; return True if that is used up since now."""
        if room == (self.phase is not Phase.WAITING_FOR_BUDGET):
            return False
        self.turn(*((Phase.LIVE,) if room else (Phase.WAITING_FOR_BUDGET, USED_UP)))
        return not room

    def stopped(self) -> None:
        """Record that the collector has ended, if the stream is not complete."""
        if self.phase is not Phase.COMPLETE:
            self.turn(Phase.STOPPED)


class Window:
    """The items of a stream that may be in flight, as many as fit into some bytes.

    Args:
        credit: The maximum number of items; None: 262,144.
        size: These bytes; None: 16 MiB.

    Attributes:
        first: Items to request before their size is known.
        outstanding: Items that were requested and have not arrived.

    """

    def __init__(self, credit: int | None, size: int | None = None) -> None:
        if credit is not None and credit < 1:
            raise LocalError(f"credit is {credit}; a collector needs at least 1")
        self._largest = LARGEST_WINDOW if credit is None else credit
        self._smallest = min(SMALLEST_WINDOW, self._largest)
        self._bytes = WINDOW_BYTES if size is None else size
        # The size of items is not known yet, so a small window begins with few.
        self.first = max(self._smallest, min(FIRST_WINDOW, self._largest, FIRST_WINDOW * self._bytes // WINDOW_BYTES))
        self.open(0)

    def open(self, outstanding: int) -> None:
        """Start a stream from which this many items were already requested."""
        self.outstanding = outstanding
        self._size = max(outstanding, self.first)

    def resize(self, rows: int, size: int) -> None:
        """Adapt the window to the size of the items that have arrived."""
        fitting = self._bytes // max(1, size // rows)
        # At most twice as large at once, because the next items may be larger.
        self._size = max(self._smallest, min(fitting, self._largest, 2 * self._size))

    def wanted(self, rows: int) -> int:
        """Return how many more items to request after `rows` are appended."""
        wanted = self._size - (self.outstanding - rows)
        # A few items are not worth a write to disk, unless no others are in flight.
        return wanted if wanted >= self._size // 2 or self.outstanding == rows else 0


async def write(progress: Progress, action: Callable[..., object], *arguments: object) -> None:
    """Call `action` in a thread, because it waits for the disk; wait while the disk is full, or has no descriptor."""
    loop = asyncio.get_running_loop()
    await settled(progress, lambda: loop.run_in_executor(None, action, *arguments))


class Lasting(asyncio.Future[None]):
    """The end of something that cannot be stopped. A task that waits for it and is canceled ends after it."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Return False: it must end first."""
        return False


async def settled(progress: Progress, begin: Callable[[], asyncio.Future[Any]]) -> None:
    """Wait for the end of what `begin` starts, even if the task is canceled; start it again while it is unavailable."""
    before = progress.phase, progress.waiting
    begun = monotonic()
    while True:
        writing = begin()
        try:
            # A shield would cost each batch two more futures and another turn of the loop.
            await (writing if isinstance(writing, Lasting) else asyncio.shield(writing))
        except asyncio.CancelledError:
            # The log is closed after a cancellation, and a write cannot be stopped: it must end first.
            await _canceled_until(writing)
            if (failure := writing.exception()) is not None:
                logger.warning("the collector was canceled, and its last write failed: %s", failure)
            raise
        except JournalUnavailable as error:
            # Received items stay in memory, and no more are requested.
            await until_room(progress, error)
        else:
            break
    progress.turn(*before)
    progress.syncs += 1
    progress.sync_seconds += monotonic() - begun


@asynccontextmanager
async def closing(close: Callable[[], None]) -> AsyncIterator[None]:
    """Close a log after the block, in a thread, because it waits for the disk; also if the task is canceled.

    A canceled task stays canceled if the log cannot be closed: the next writer completes the log.
    """
    stopped = False
    try:
        yield
    except asyncio.CancelledError:
        stopped = True
        raise
    finally:
        work = asyncio.get_running_loop().run_in_executor(None, close)
        stopped = await _canceled_until(work) or stopped
        failure = work.exception()
        if stopped:
            if failure is not None:
                logger.warning("the collector was canceled, and its log could not be closed: %s", failure)
            raise asyncio.CancelledError
        if failure is not None:
            raise failure


async def _canceled_until(work: asyncio.Future[Any]) -> bool:
    """Wait for the end of work that cannot be stopped; return whether the task was canceled."""
    canceled = False
    while not work.done():
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError:
            canceled = True
    return canceled


async def until_room(progress: Progress, error: JournalUnavailable) -> None:
    """Wait for space on the disk, or for a descriptor, and report this."""
    if progress.waiting != str(error):
        logger.warning("%s", error)
    progress.turn(Phase.WAITING_FOR_DISK, str(error))
    await asyncio.sleep(RETRY)
