"""Micro-batches and pushed rows that a log receives, on the simulated disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.receiving.micro_batches import data_of, rows, staged
from weirpool.errors import ApplicationError, JournalError
from weirpool.journal import Journal
from weirpool.receiving.log import ReceivedLog

__all__ = ["BATCH_BYTES", "Promises", "again", "broken", "work"]

T = TypeVar("T")
BATCH_BYTES = 100
"""Let a micro-batch need several batches of the log."""
BATCHES = [("q", 0), ("p", 0), ("q", 1)]
MEANWHILE = "m"
"""The query that commits while another one's micro-batch is unfinished."""
PARTS = 2


@dataclass
class Promises:
    """What was stored, and what was tried.

    Attributes:
        committed: The micro-batches that were committed.
        tried: Those that were tried.
        pushed: The rows that were pushed.
        pushing: How many were tried.

    """

    committed: list[tuple[str, int]] = field(default_factory=list)
    tried: list[tuple[str, int]] = field(default_factory=list)
    pushed: list[bytes] = field(default_factory=list)
    pushing: int = 0

    @property
    def uncertain(self) -> list[tuple[str, int]]:
        """The micro-batches that clients commit again: those without an answer, or the last one."""
        return [each for each in self.tried if each not in self.committed] or self.tried[-1:]


def patiently(call: Callable[[], T], meanwhile: Callable[[], object] = lambda: None) -> T:
    """Call again after an error of the disk, as a client does; others do not wait for it."""
    for _ in range(5):
        with suppress(JournalError):
            return call()
        with suppress(JournalError):
            meanwhile()
    return call()


def opened(journal: Path) -> ReceivedLog:
    """Open the log."""
    return ReceivedLog(journal, "a", "a", segment_bytes=1_500)


def push(log: ReceivedLog, promises: Promises) -> None:
    """Push another row."""
    row = b"pushed %d" % promises.pushing
    promises.pushing += 1
    log.append(rows([row]))
    promises.pushed.append(row)


def commit(log: ReceivedLog, promises: Promises, query: str, batch: int) -> None:
    """Stage and commit a micro-batch. A failed stage is not there, so the whole of it is staged again."""
    if (query, batch) not in promises.tried:
        promises.tried.append((query, batch))
    log.commit(query, batch, staged(log, query, batch, PARTS))
    if (query, batch) not in promises.committed:
        promises.committed.append((query, batch))


def interrupt(log: ReceivedLog, promises: Promises, turn: int) -> None:
    """Push a row, or commit a micro-batch of another query, while a commit is unfinished."""
    if turn % 2:
        commit(log, promises, MEANWHILE, turn)
    else:
        push(log, promises)


def work(journal: Path, promises: Promises) -> None:
    """Commit micro-batches, and let others interrupt them; retry after an error of the disk."""
    log = patiently(lambda: opened(journal))
    for turn, (query, batch) in enumerate(BATCHES):
        patiently(partial(commit, log, promises, query, batch), partial(interrupt, log, promises, turn))
    for query, batch in promises.uncertain:
        patiently(partial(commit, log, promises, query, batch))
    patiently(lambda: push(log, promises))
    # The next process syncs what an error left unsynced.
    with suppress(JournalError):
        log.close()


def again(journal: Path, promises: Promises) -> None:
    """Open the log, and repeat what was tried."""
    log = opened(journal)
    for query, batch in promises.uncertain:
        commit(log, promises, query, batch)
    push(log, promises)
    log.close()


def broken(journal: Path, promises: Promises) -> list[str]:
    """Return what is wrong after the cut, when the clients have repeated what they do not know."""
    try:
        return [*_unfinished(journal, promises), *_repeated(journal, promises)]
    except (JournalError, ApplicationError) as error:
        return [f"{type(error).__name__}: {error}"]


def _unfinished(journal: Path, promises: Promises) -> list[str]:
    """Open the log, and return which micro-batches it has in part."""
    opened(journal).close()
    held = set(held_rows(journal))
    wanted = {each: rows_of(*each) for each in promises.tried}
    return [
        f"the log was opened, and has micro-batch {batch} of {query} in part"
        for (query, batch), rows in wanted.items()
        if held & set(rows) and not held.issuperset(rows)
    ]


def _repeated(journal: Path, promises: Promises) -> list[str]:
    """Commit again what clients do not know, and return what is wrong with the log."""
    log = opened(journal)
    found = [
        f"micro-batch {batch} of {query} is forgotten"
        for query, batch in promises.committed
        if log.committed(query, batch) is None
    ]
    for query, batch in promises.uncertain:
        log.commit(query, batch, staged(log, query, batch, PARTS))
    log.close()
    return [*found, *wrong_rows(journal, promises)]


def held_rows(journal: Path) -> list[bytes]:
    """Return the rows of the log."""
    reader = Journal(journal).reader("a")
    return [value for batch in reader.read(0, reader.end) for value in batch["data"].to_pylist()]


def rows_of(query: str, batch: int) -> list[bytes]:
    """Return the rows of a micro-batch."""
    return [value for part in range(PARTS) for value in data_of(query, batch, part)]


def wrong_rows(journal: Path, promises: Promises) -> list[str]:
    """Return what is wrong with the rows of a log that has all micro-batches, and what was pushed."""
    held, found = held_rows(journal), []
    pushed = [value for value in held if value.startswith(b"pushed")]
    for query in {query for query, _ in promises.tried}:
        # Each is there as a whole, with no rows of others in it, and in order.
        mine = [rows_of(*each) for each in sorted(promises.tried) if each[0] == query]
        starts = [held.index(rows[0]) if rows[0] in held else -1 for rows in mine]
        whole = [held[start : start + len(rows)] == rows for start, rows in zip(starts, mine, strict=True)]
        if not all(whole) or starts != sorted(starts):
            found.append(f"the log has {held}, not the micro-batches {promises.tried}")
    if len(held) != len({*held}):
        found.append(f"rows are there twice: {held}")
    if missing := set(promises.pushed) - set(pushed):
        found.append(f"pushed rows are lost: {sorted(missing)}")
    if pushed != sorted(pushed, key=lambda value: int(value.split()[1])):
        found.append(f"rows were pushed out of order: {pushed}")
    if problems := Journal(journal).verify()["a"].problems:
        found.append(f"verify says: {problems}")
    return found
