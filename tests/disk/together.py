"""Logs of several feeds whose batches become durable together, on the simulated disk."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from weirpool.errors import JournalError
from weirpool.journal import ITEMS, Journal, JournalWriter, Request
from weirpool.journal.committer import Items, append, commit
from weirpool.journal.feedlog import FeedLog, Place, State
from weirpool.journal.layout import UNSYNCED, log_folder
from weirpool.journal.redo import Redo

__all__ = ["Promises", "again", "broken_promises", "process", "work"]

T = TypeVar("T")
SOURCES = ("a", "b", "c", "d", "e", "f")
"""More than a write syncs in advance, so that a redo file is used again before its logs are synced."""
GROUPS = ((6, 6, 2, 6, 6, 6), (5, 6, 6))
"""How many logs share each write of the first process, and of the one after it."""
BATCH_ROWS = 3
SEGMENT_BYTES = 7_000
"""Some eight batches each."""
FILE_BYTES = 7_000
"""A large group, perhaps with a small one."""
RETRIES = 5


@dataclass
class Promises:
    """For each log: rows before `end` are durable, and rows before `attempted` may be there."""

    end: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0))
    attempted: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SOURCES, 0))


@dataclass
class Feeds:
    """The open logs of a process."""

    journal: Path
    promises: Promises
    logs: dict[str, FeedLog] = field(default_factory=dict)

    def open(self, source: str) -> FeedLog:
        """Open a log, or one that a failure of the disk has closed."""
        if (before := self.logs.pop(source, None)) is not None:
            with suppress(JournalError):
                before.close()
        place = Place(
            journal=self.journal, source=source, request=Request(source), options={"segment_bytes": SEGMENT_BYTES}
        )
        log = self.logs[source] = patiently(lambda: FeedLog(place))
        self.promises.end[source] = max(self.promises.end[source], log.position)
        return log

    def items(self, source: str) -> Items:
        """Return the items that belong at a log's end."""
        position = self.logs[source].position
        end = position + BATCH_ROWS
        self.promises.attempted[source] = max(self.promises.attempted[source], end)
        return Items(self.logs[source], rows_from(position), source, State(None, True, outstanding=end))

    def together(self, redo: Redo, sources: list[str]) -> None:
        """Append to some logs in one group; repeat what fails, first in the same log and then in one opened anew."""
        left = sources
        for _ in range(RETRIES):
            errors = commit(redo, [self.items(source) for source in left])
            failed = [source for source, error in zip(left, errors, strict=True) if error is not None]
            for source in set(left) - set(failed):
                self.promises.end[source] = self.logs[source].position
            left = [source for source in failed if not self.alone(source)]
            if not left:
                return

    def alone(self, source: str) -> bool:
        """Append to one log, and return True; or open it anew."""
        with suppress(JournalError):
            append(self.items(source))
            self.promises.end[source] = self.logs[source].position
            return True
        self.open(source)
        return False


def rows_from(position: int) -> pa.RecordBatch:
    """Return the rows that belong at this position and after it."""
    data = [b"row %d" % number for number in range(position, position + BATCH_ROWS)]
    return pa.record_batch([pa.array(data, pa.binary()), pa.nulls(BATCH_ROWS, pa.binary())], schema=ITEMS)


def work(journal: Path, promises: Promises) -> None:
    """Let two processes, one after the other, open logs, append to them together and alone, and close everything."""
    for turn, groups in enumerate(GROUPS):
        process(journal, promises, groups, redo_first=turn > 0)


def process(
    journal: Path,
    promises: Promises,
    groups: Sequence[int] = (len(SOURCES),),
    *,
    sources: Sequence[str] = SOURCES,
    redo_first: bool = False,
) -> None:
    """Open logs, append to groups of them, and close everything."""
    rng = random.Random("together")
    redo, feeds = Redo(journal, FILE_BYTES), Feeds(journal, promises)
    for source in sources:
        feeds.open(source)
    for number, size in enumerate(groups):
        feeds.together(redo, rng.sample(sources, size))
        if number == 2:
            feeds.alone(rng.choice(sources))
    closing: list[Callable[[], None]] = [*(log.close for log in feeds.logs.values()), redo.close]
    for close in closing[:: -1 if redo_first else 1]:
        with suppress(JournalError):
            close()


def again(journal: Path, promises: Promises) -> None:
    """Open and close all logs but one, and append to some of them."""
    process(journal, promises, (2,), sources=SOURCES[:-1])


def patiently(call: Callable[[], T]) -> T:
    """Call again after an error of the disk."""
    for _ in range(RETRIES):
        with suppress(JournalError):
            return call()
    return call()


def broken_promises(journal: Path, promises: Promises) -> list[str]:
    """Return the guarantees that the logs break afterwards, one sentence each."""
    return [f"{source}: {text}" for source in SOURCES for text in _broken(journal, source, promises)]


def _broken(journal: Path, source: str, promises: Promises) -> list[str]:
    end, attempted = promises.end[source], promises.attempted[source]
    if not (log_folder(journal, source) / "_log.json").exists():
        return ["the log is gone"] if end else []
    broken = []
    try:
        with JournalWriter.open(journal, source, segment_bytes=SEGMENT_BYTES) as writer:
            position = writer.position
            if not end <= position <= attempted:
                broken.append(f"the log ends at {position}, not between {end} and {attempted}")
            writer.append(rows_from(position), source)
        reader = Journal(journal).reader(source)
        held = [value for batch in reader.read(0, reader.end) for value in batch["data"].to_pylist()]
    except JournalError as error:
        return [f"{type(error).__name__}: {error}"]
    if held != [b"row %d" % number for number in range(reader.end)]:
        broken.append("the rows are not what was appended")
    if problems := Journal(journal).verify([source])[source].problems:
        broken.append(f"verify says: {problems}")
    if (log_folder(journal, source) / UNSYNCED).exists():
        broken.append("it still relies on redo files")
    return broken
