"""Group commit: small batches of many feeds become durable together, in one synced write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from ..errors import JournalError
from .durability import Durability, Replica
from .encoder import Rows, rows_in
from .feedlog import FeedLog, StagedItems, State
from .progress import Lasting
from .redo import Redo
from .ticks import Ticks

__all__ = ["Committer", "Items", "append", "commit"]

LARGE_BYTES: Final = 65_536
"""A batch of this size is synced by itself: writing it twice would cost more."""
ROW_BYTES: Final = 32
"""What a row takes on the disk in addition to its item."""
GATHERING: Final = 0.003
"""Seconds that a batch waits for those of other feeds, which read at the same time."""


@dataclass(frozen=True, slots=True)
class Items:
    """Items for a log, with the state that covers them."""

    log: FeedLog
    batch: Rows
    stream: str
    state: State
    size: int = 0
    """The bytes of the items."""


class Committer:
    """Appends the items of all feeds of one process that collect into one journal.

    Close it after the last feed has ended.

    Args:
        journal: The journal's folder.
        durability: What makes small batches durable; redo files in the journal by default.
        replica: Keeps the logs of the journal elsewhere, and makes all batches durable.

    Attributes:
        replica: The same.
        ticks: The ticks of the feeds.

    """

    def __init__(self, journal: Path, durability: Durability | None = None, *, replica: Replica | None = None) -> None:
        self.replica = replica
        self._durability = replica or durability or Redo(journal)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="weirpool-commit")
        self._waiting: list[tuple[Items, Lasting]] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self._feeds = 0
        self.ticks = Ticks()

    @contextmanager
    def feed(self) -> Iterator[None]:
        """Count a feed. Only with several of them, a batch waits for others."""
        self._feeds += 1
        try:
            yield
        finally:
            self._feeds -= 1

    @property
    def feeds(self) -> int:
        """The number of feeds."""
        return self._feeds

    def append(self, items: Items) -> asyncio.Future[None]:
        """Append items to their log. They are durable when the result is done.

        The result fails with

        * `DiskFull` if there is no space. Nothing was appended; call again when there is,
        * `JournalError` if the disk failed. Nothing was appended.
        """
        loop = asyncio.get_running_loop()
        large = self.replica is None and items.size + ROW_BYTES * rows_in(items.batch) >= LARGE_BYTES
        if self._feeds < 2 or large:
            return loop.run_in_executor(None, append, items)
        done = Lasting(loop=loop)
        self._waiting.append((items, done))
        if self._idle.is_set():
            self._idle.clear()
            loop.call_later(GATHERING, self._begin)
        return done

    async def close(self) -> None:
        """Wait for the last appends, and remove the redo files."""
        await self._idle.wait()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._durability.close)
        self._thread.shutdown()

    def _begin(self) -> None:
        """Append what waits as one group."""
        # Not a task: when all tasks are canceled, those that wait for an append must still learn how it ended.
        group, self._waiting = self._waiting, []
        together = [items for items, _ in group]
        work = asyncio.get_running_loop().run_in_executor(self._thread, commit, self._durability, together)
        work.add_done_callback(partial(self._finish, [done for _, done in group]))

    def _finish(self, group: list[asyncio.Future[None]], work: asyncio.Future[list[Exception | None]]) -> None:
        """Report how each append of a group has ended, and begin the next group if others wait."""
        failure = work.exception()
        errors = [failure] * len(group) if failure is not None else work.result()
        for done, error in zip(group, errors, strict=True):
            if not done.done():
                _resolve(done, error)
        if self._waiting:
            self._begin()
        else:
            self._idle.set()


def _resolve(done: asyncio.Future[None], error: BaseException | None) -> None:
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def append(items: Items) -> None:
    """Append items by themselves."""
    items.log.append(items.batch, items.stream, items.state)


def commit(durability: Durability, group: Sequence[Items]) -> list[Exception | None]:
    """Append items of different logs, durably; return the error of each, or None."""
    if len(group) == 1:
        return [_alone(group[0])]
    errors: list[Exception | None] = [None] * len(group)
    staged: list[tuple[int, StagedItems]] = []
    for at, items in enumerate(group):
        try:
            one = items.log.stage(items.batch, items.stream, items.state)
        except Exception as error:
            errors[at] = error
        else:
            if one is not None:
                staged.append((at, one))
    try:
        if staged:
            durability.write([one.staged for _, one in staged])
    except BaseException as failure:
        for _, one in staged:
            one.cancel()
        if not isinstance(failure, JournalError):
            raise
        # Without redo files, each log syncs its own segment; with a replica, each one is told why not.
        for at, _ in staged:
            errors[at] = _alone(group[at])
    else:
        for at, one in staged:
            errors[at] = _published(one)
    return errors


def _alone(items: Items) -> Exception | None:
    """Append items by themselves, and return the error."""
    try:
        append(items)
    except Exception as error:
        return error
    return None


def _published(staged: StagedItems) -> Exception | None:
    try:
        staged.publish()
    except Exception as error:
        return error
    return None
