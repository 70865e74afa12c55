"""One supervised feed: a collector that is started again, by the feed's own policy, when it ends with an error."""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from ..errors import (
    ConnectError,
    JournalCorrupt,
    JournalError,
    JournalLocked,
    JournalMismatch,
    LinkError,
    WeirpoolError,
)
from ..journal.progress import Phase, Progress
from ..texts import shown_line
from .request import collector
from .shared import Shared
from .status import FeedState, FeedStatus

if TYPE_CHECKING:
    from .config import FeedConfig

__all__ = ["CURRENT_FEED", "Feed"]

logger = logging.getLogger("weirpool.feeds")

CURRENT_FEED: Final[ContextVar[str]] = ContextVar("weirpool.feed", default="")
"""The name of the feed for which code runs that does not know feeds, such as a connection's; empty: of none."""
REASON_CHARACTERS: Final = 500
"""The maximum length of a reason, which may contain a peer's text."""


class Feed:
    """A feed, run as a task by its supervisor.

    Args:
        name: Its name.
        config: Its configuration.
        folder: The folder that relative paths of secrets start from.
        shared: What the feeds of the process share.

    Attributes:
        problem: What is wrong with a newer configuration, so that this one is still in use.

    """

    def __init__(
        self,
        name: str,
        config: FeedConfig,
        folder: Path,
        shared: Shared,
    ) -> None:
        self.name = name
        self.config = config
        self.problem = ""
        self._folder = folder
        self._source = config.source_of(name)
        self._shared = shared
        self._on_batch = shared.on_batch(name)
        # The counters of the running collector, and of those before it.
        self._progress = Progress()
        self._before = Progress()
        self._restarts = 0
        self._is_collecting = False
        self._told = False
        # Where the last collector has left the feed. It is shown until the next one is connected.
        self._left = FeedState.CONNECTING
        self._reason = ""

    def log_changes(self) -> None:
        """Log that the feed collects, once after each time that it did not; and that it has lost its connection."""
        progress = self._progress
        progress.look()
        position, live = progress.position, self._is_collecting and progress.phase is Phase.LIVE
        away = self._is_collecting and progress.phase is Phase.CONNECTING and bool(progress.waiting)
        extra = {"feed": self.name, "position": position}
        if live and not self._told:
            extra["state"] = str(FeedState.LIVE)
            logger.info("%s: live at position %d", self.name, position, extra=extra)
        elif away and self._told:
            extra["state"] = str(FeedState.CONNECTING)
            logger.warning("%s: connecting at position %d: %s", self.name, position, progress.waiting, extra=extra)
        # A budget or a disk that it waits for is not another beginning.
        self._told = live or (self._told and self._is_collecting and progress.phase is not Phase.CONNECTING)

    def status(self) -> FeedStatus:
        """Return the feed's status, without what only the disk knows."""
        progress, before = self._progress, self._before
        progress.look()
        state, reason = self._left, self._reason
        if self._is_collecting and (progress.phase is not Phase.CONNECTING or progress.waiting):
            state, reason = FeedState(progress.phase.value), _brief(progress.waiting)
        return FeedStatus(
            name=self.name,
            url=self.config.url,
            route=self.config.route,
            journal=self.config.journal,
            source=self._source,
            state=state,
            reason=reason,
            problem=self.problem,
            position=progress.position,
            rows=before.rows + progress.rows,
            bytes=before.size + progress.size,
            budget=int(self.config.budget),
            credit=0 if state is FeedState.CONNECTING or not self._is_collecting else progress.granted,
            gaps=before.gaps + progress.gaps,
            reconnects=before.reconnects + progress.reconnects,
            restarts=self._restarts,
            sync_seconds=round(before.sync_seconds + progress.sync_seconds, 6),
        )

    async def run(self) -> None:
        """Collect until the publisher completes the stream, or the policy gives up. Only cancellation raises."""
        CURRENT_FEED.set(self.name)
        policy = self.config.retry
        backoff = policy.backoff()
        since = begun = monotonic()
        while (error := await self._collected()) is not None:
            now = monotonic()
            if self._progress.rows:
                # It has worked, so this is a new failure.
                backoff.worked(now - begun)
                since = now
            seconds = now - since
            self._restarts += 1
            if policy.give_up_after is not None and seconds >= policy.give_up_after:
                self._rest(FeedState.STOPPED, f"no item for {seconds:.0f} s, and then: {_text(error)}")
                self._log(logging.ERROR)
                return
            self._failed(error)
            await asyncio.sleep(backoff.next())
            begun = monotonic()
        self._rest(FeedState.COMPLETE, "")
        self._log(logging.INFO)

    def _failed(self, error: Exception) -> None:
        """Show an error, and log it unless it repeats the one before."""
        known = self._reason
        self._rest(_state(error), _text(error))
        if self._reason != known:
            self._log(logging.WARNING, None if isinstance(error, WeirpoolError | OSError) else error)

    def _log(self, level: int, error: Exception | None = None) -> None:
        """Log where the feed is, with a traceback if the error is a defect."""
        # A collector that could not open its log does not know its position.
        position = self._progress.position or None
        where = "" if position is None else f" at position {position}"
        why = f": {self._reason}" if self._reason else ""
        extra = {"feed": self.name, "state": str(self._left), "position": position}
        logger.log(level, "%s: %s%s%s", self.name, self._left, where, why, exc_info=error, extra=extra)

    async def _collected(self) -> Exception | None:
        """Collect until the stream is complete; return the error that ended it instead."""
        try:
            await self._shared.pace.turn()
            # Secrets and certificates are files.
            window, committer = self._shared.window_bytes(), self._shared.committer(self.config.journal)
            made = await asyncio.to_thread(
                collector, self.name, self.config, self._folder, window, self._on_batch, committer
            )
            self._count(made.progress)
            self._is_collecting = True
            await made.run()
        except Exception as error:
            # Whatever it is, other feeds must go on.
            return error
        finally:
            self._is_collecting = False
        return None

    def _count(self, progress: Progress) -> None:
        """Go on counting with the progress of another collector."""
        before, last = self._before, self._progress
        before.rows += last.rows
        before.size += last.size
        before.gaps += last.gaps
        before.reconnects += last.reconnects
        before.sync_seconds += last.sync_seconds
        progress.position = last.position
        self._progress = progress

    def _rest(self, state: FeedState, reason: str) -> None:
        self._left, self._reason = state, _brief(reason)


def _state(error: Exception) -> FeedState:
    """Return the state of a feed that waits after an error."""
    if isinstance(error, ConnectError | LinkError):
        return FeedState.CONNECTING
    if isinstance(error, JournalError) and not isinstance(error, JournalCorrupt | JournalLocked | JournalMismatch):
        return FeedState.WAITING_FOR_DISK
    return FeedState.REFUSED


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, WeirpoolError | OSError) else f"unexpected {type(error).__name__}: {error}"


def _brief(text: str) -> str:
    return shown_line(text[:REASON_CHARACTERS])
