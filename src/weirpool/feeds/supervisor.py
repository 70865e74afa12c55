"""The supervisor: runs the feeds of a file, each as a task of its own."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ..journal.durability import Replica
from ..texts import counted
from .feed import Feed
from .notify import notify
from .process import check_files
from .request import OnBatch
from .sealing import Sealing
from .shared import Shared
from .status import FeedStatus

if TYPE_CHECKING:
    from .file import FeedsFile

__all__ = ["Supervisor"]

logger = logging.getLogger("weirpool.feeds")

STOP_SECONDS: Final = 10.0
"""How long it may take until another feed has stopped: the time for a last write to a slow disk."""
LOOK_SECONDS: Final = 1.0
"""How often it is looked whether feeds have stopped."""
SHOWN_NAMES: Final = 10


class Supervisor:
    """Runs feeds. All methods belong to one event loop.

    Args:
        report: Called by `publish` with all statuses.
        share: Returns whether this supervisor runs the feed of a name; by default it runs all.
        on_batch: Returns the collector's hook for a feed, or None.
        replica: Keeps the logs elsewhere; None: they are durable on this machine.

    """

    def __init__(
        self,
        report: Callable[[list[FeedStatus]], None] = lambda statuses: None,
        share: Callable[[str], bool] = lambda name: True,
        on_batch: Callable[[str], OnBatch | None] = lambda name: None,
        replica: Replica | None = None,
    ) -> None:
        self._report = report
        self._share = share
        self._shared = Shared(on_batch, replica)
        self._sealing = Sealing()
        self._feeds: dict[str, Feed] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._refused: dict[str, str] = {}

    async def apply(self, file: FeedsFile) -> None:
        """Make the feeds of a file run: start new ones, restart changed ones, and stop those that are gone.

        A feed that the file describes wrongly goes on as it was before.
        """
        wanted = {name: config for name, config in file.feeds.items() if self._share(name)}
        problems = {name: problem for name, problem in file.problems.items() if self._share(name)}
        for problem in problems.values():
            logger.error("%s", problem)
        for name, feed in self._feeds.items():
            feed.problem = problems.get(name, "")
        gone = [name for name in self._feeds if name not in wanted and name not in problems]
        changed = [name for name in wanted if name in self._feeds and self._feeds[name].config != wanted[name]]
        await self._stop([*gone, *changed])
        fresh = [name for name in wanted if name not in self._feeds]
        for name in fresh:
            feed = self._feeds[name] = Feed(name, wanted[name], file.path.parent, self._shared)
            self._tasks[name] = asyncio.create_task(feed.run(), name=f"feed {name}")
        self._shared.feeds = len(self._feeds)
        self._sealing.apply((feed.config.source_of(name), feed.config) for name, feed in self._feeds.items())
        check_files(len(self._feeds))
        self._refused = {name: problem for name, problem in problems.items() if name not in self._feeds}
        logger.info(
            "%s: %d new, %d changed, %d removed, %d with errors",
            counted(len(self._feeds), "feed"), len(fresh) - len(changed), len(changed), len(gone), len(problems),
        )  # fmt: skip

    def statuses(self) -> list[FeedStatus]:
        """Return the status of each feed, and of those that have never been valid."""
        refused = [FeedStatus.refused(name, problem) for name, problem in self._refused.items()]
        return [*(feed.status() for feed in self._feeds.values()), *refused]

    @property
    def standing_by(self) -> str:
        """Nothing: no other process continues the logs."""
        return ""

    def publish(self) -> None:
        """Report the statuses, and log which feeds have become live."""
        for feed in self._feeds.values():
            feed.log_changes()
        self._report(self.statuses())

    async def stop(self) -> list[str]:
        """Stop all feeds; return the names of those that are left when none has stopped for `STOP_SECONDS`.

        Publishers keep their sessions, which the next process continues.
        """
        late = await self._stop(list(self._feeds))
        if not late:
            await self._shared.close()
            await asyncio.to_thread(self._sealing.stop)
        return late

    async def _stop(self, names: list[str]) -> list[str]:
        tasks = {name: self._tasks.pop(name) for name in names}
        for task in tasks.values():
            task.cancel()
        await self._ended(set(tasks.values()))
        for name in names:
            del self._feeds[name]
        late = [name for name, task in tasks.items() if not task.done()]
        if late:
            more = f" and {len(late) - SHOWN_NAMES} more" if len(late) > SHOWN_NAMES else ""
            logger.error(
                "%s not closed, and none in the last %g s; check the disk: %s%s",
                counted(len(late), "log"), STOP_SECONDS, ", ".join(late[:SHOWN_NAMES]), more,
            )  # fmt: skip
        return late

    async def _ended(self, left: set[asyncio.Task[None]]) -> None:
        """Wait until all tasks have ended, or none has for `STOP_SECONDS`: many logs take long to close."""
        clock = asyncio.get_running_loop().time
        progressed = clock()
        while left:
            ended, left = await asyncio.wait(left, timeout=LOOK_SECONDS)
            if not ended and clock() - progressed >= STOP_SECONDS:
                return
            if ended and left:
                progressed = clock()
                logger.info("still closing %s", counted(len(left), "log"))
                notify(f"EXTEND_TIMEOUT_USEC={int((STOP_SECONDS + 2 * LOOK_SECONDS) * 1e6)}")
                # A parent that waits for this process sees that it goes on.
                self._report(self.statuses())
