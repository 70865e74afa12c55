"""Runs the feeds of a group: while it belongs to this process, and not at all while it belongs to another one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..archive.sealer import Sealer, SealingThread
from ..errors import LocalError
from .config import Storage
from .process import leave
from .request import OnBatch
from .sealing import seal_options
from .standby import hold
from .status import FeedState, FeedStatus
from .supervisor import Supervisor
from .values import resolve

if TYPE_CHECKING:
    from ..replica.group import Group, Membership
    from .file import FeedsFile

__all__ = ["Grouped", "membership"]

logger = logging.getLogger("weirpool.feeds")


def membership(file: FeedsFile) -> Membership:
    """Return the group of a file's feeds.

    Raises:
        LocalError: The key cannot be read or is not valid, or there is no feed that tells the journal and the store.
        StoreError: The store cannot fence collectors.

    """
    from ..replica.group import Membership

    assert file.group is not None
    storage, journal = _place(file)
    try:
        key = resolve(file.group.key, file.path.parent)
    except LocalError as error:
        raise LocalError(f"{file.path}: group: key: {error}") from None
    member = Membership(
        name=file.group.name,
        store=str(storage.store),
        key=key,
        journal=Path(journal),
        patience=float(file.group.patience),
    )
    member.vault()
    member.sequence()
    return member


def _place(file: FeedsFile) -> tuple[Storage, str]:
    """Return how and where the feeds of a group are stored, which is the same for all of them."""
    for config in file.feeds.values():
        if config.storage is not None:
            return config.storage, config.journal
    raise LocalError(f"{file.path}: group: there is no valid feed, which would tell the journal and the store")


class Grouped:
    """Runs the feeds of a file whose collectors stand in for each other; a `weirpool.feeds.running.Runner`.

    Args:
        report: Called by `publish` with all statuses.
        on_batch: Returns the collector's hook for a feed, or None.

    """

    def __init__(
        self,
        report: Callable[[list[FeedStatus]], None],
        on_batch: Callable[[str], OnBatch | None] = lambda name: None,
    ) -> None:
        self._report = report
        self._on_batch = on_batch
        self._file: FeedsFile | None = None
        self._supervisor: Supervisor | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting = "it looks for the owner of its group"
        self._late: list[str] = []

    async def apply(self, file: FeedsFile) -> None:
        """Make the feeds of a file run: now, or when the group belongs to this process."""
        if self._file is not None and file.group != self._file.group:
            logger.error("%s: the table [group] has changed, which needs a restart; all feeds go on", file.path)
            return
        self._file = file
        if self._task is None:
            seconds = seal_options(_place(file)[0]).max_age
            self._task = asyncio.create_task(hold(membership(file), seconds, self._work, self._wait))
        elif self._supervisor is not None:
            await self._supervisor.apply(file)

    @property
    def standing_by(self) -> str:
        """Why another collector of the group continues the logs, or none does yet; empty if this one does."""
        return self._waiting

    def publish(self) -> None:
        """Report the statuses. Raises what has ended the work for the group: nothing would be collected any more."""
        if self._task is not None and self._task.done():
            self._task.result()
        if self._supervisor is not None:
            self._report(self._supervisor.statuses())
        elif self._file is not None:
            refused = (FeedStatus.refused(name, problem) for name, problem in self._file.problems.items())
            self._report([*map(self._standby, self._file.feeds), *refused])

    async def stop(self) -> list[str]:
        """Stop all feeds, and give the group up; return the names of those that could not be stopped in time."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        return self._late

    def _wait(self, reason: str) -> None:
        if reason and reason != self._waiting:
            logger.info("standing by: %s", reason)
        self._waiting = reason

    def _standby(self, name: str) -> FeedStatus:
        assert self._file is not None
        config = self._file.feeds[name]
        return FeedStatus(
            name=name,
            url=config.url,
            route=config.route,
            journal=config.journal,
            source=config.source_of(name),
            state=FeedState.STANDBY,
            reason=self._waiting,
            budget=int(config.budget),
        )

    async def _work(self, group: Group) -> None:
        """Run the feeds until this is canceled."""
        assert self._file is not None
        self._supervisor = Supervisor(self._report, on_batch=self._on_batch, replica=group.logs)
        sealing = SealingThread(self._sealer(group))
        try:
            await self._supervisor.apply(self._file)
            await asyncio.Event().wait()
        finally:
            sealing.stop()
            self._late = await self._supervisor.stop()
            self._supervisor = None
            if group.is_lost:
                # The logs are still open, so this process cannot stand by for them.
                leave(self._late)
            await asyncio.to_thread(sealing.join)

    def _sealer(self, group: Group) -> Sealer:
        """Return what seals the logs of the group that are no feed's, or no feed's any more."""
        assert self._file is not None
        storage, journal = _place(self._file)

        def others() -> set[str]:
            assert self._file is not None
            feeds = {config.source_of(name) for name, config in self._file.feeds.items()}
            return {part.source for part in group.logs.parts() if part.uuid} - feeds

        return Sealer(journal, seal_options(storage), sources=others)
