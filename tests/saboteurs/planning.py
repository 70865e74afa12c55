"""The laboratory of queries: two that read one journal as Spark drives them, without Spark, and are killed at any step.

Spark's part is small: a log of planned batches, a table to which each batch is written once, and a log of those that
are committed. What is in the tables in the end must be every row of the log once, in order, without those that a gap
names.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

from tests.spark.journals import advance, damage, fill, item, over_the_wire, run_task, segments, stream_reader
from weirpool.errors import JournalError, LocalError
from weirpool.journal import JournalReader, gaps
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import cursors
from weirpool.spark import reading

__all__ = ["queries"]

SOURCE = "a"
SEEDS = 12
ROUNDS = 40


class Killed(Exception):
    """The driver of a query is gone."""


class Query:
    """A query: what Spark keeps of it, and the driver that lives now.

    Args:
        journal: What it reads.
        name: Its reader's name.
        rng: Decides when it is killed.

    Attributes:
        planned: The end of each batch, as Spark's log of offsets has it.
        committed: How many of these are committed.
        table: The rows of each batch.

    """

    def __init__(self, journal: Path, name: str, rng: random.Random) -> None:
        self._journal = journal
        self._name = name
        self._rng = rng
        self._driver: Any = None
        self.planned: list[dict[str, Any]] = []
        self.committed = 0
        self.table: dict[int, list[tuple[int, bytes]]] = {}

    @property
    def rows(self) -> list[tuple[int, bytes]]:
        """What is in the table, with its positions."""
        return [row for _, batch in sorted(self.table.items()) for row in batch]

    @property
    def id(self) -> str:
        """The query's id, which it has from its first batch on."""
        return str(self.planned[0]["query"]) if self.planned else ""

    @property
    def begun(self) -> int:
        """Where its first batch begins: at the earliest row that was left then."""
        return int(self.planned[0]["from"][SOURCE])

    def step(self, *, hidden: bool = False) -> None:
        """Do one micro-batch, perhaps one that was planned before; or die in the middle.

        Args:
            hidden: Whether the machine of the tasks does not see the journal, until they are tried again.

        """
        try:
            self._batch(hidden)
        except Killed:
            self.kill()

    def kill(self) -> None:
        """End the driver. Its locks go with it, and its workers forget what they knew."""
        if self._driver is not None:
            self._driver.stop()
        self._driver = None
        reading._reader.cache_clear()

    def _batch(self, hidden: bool) -> None:
        if self._driver is None:
            self._driver = stream_reader(
                self._journal,
                reader=self._name,
                retainBytes="0",
                failOnDataLoss="false",
                maxRowsPerTrigger="7",
                rowsPerPartition="3",
                journalTimeout="0",
            )
        start = self.planned[self.committed - 1] if self.committed else self._driver.initialOffset()
        if self.committed == len(self.planned):
            end = advance(self._driver, start)
            self._die()
            if end == over_the_wire(start):
                return
            self.planned.append(end)
            self._die()
        parts = self._driver.partitions(over_the_wire(start), over_the_wire(self.planned[-1]))
        self._die()
        self.table[self.committed] = self._ran(parts, hidden)
        self._die()
        self.committed += 1
        self._die()
        self._driver.commit(over_the_wire(self.planned[self.committed - 1]))

    def _ran(self, parts: list[Any], hidden: bool) -> list[tuple[int, bytes]]:
        """Run the tasks; the first try is on a machine that sees nothing, if that is wanted."""
        if hidden:
            away = self._journal.rename(self._journal.with_name("away"))
            reading._reader.cache_clear()
            try:
                return self._tasks(parts)
            except JournalError:
                pass
            finally:
                away.rename(self._journal)
        return self._tasks(parts)

    def _tasks(self, parts: list[Any]) -> list[tuple[int, bytes]]:
        batches = [batch for part in parts for batch in run_task(self._driver, part)]
        return [
            row
            for batch in batches
            for row in zip(batch["position"].to_pylist(), batch["data"].to_pylist(), strict=True)
        ]

    def _die(self) -> None:
        if self._rng.random() < 0.08:
            raise Killed


def queries(folder: Path) -> Iterator[str]:
    """Read under kills, damage, disks that are not there, and journals that are others (THREATS 99)."""
    with mock.patch.object(os, "fsync", lambda descriptor: None):
        for seed in range(SEEDS):
            journal = folder / f"{seed}" / "journal"
            journal.parent.mkdir()
            yield from (f"seed {seed}: {wrong}" for wrong in _played(journal, random.Random(seed)))


def _played(journal: Path, rng: random.Random) -> Iterator[str]:
    end = _append(journal, 0, rng)
    quick, slow = Query(journal, "quick", rng), Query(journal, "slow", rng)
    try:
        for turn in range(ROUNDS):
            end = _append(journal, end, rng)
            quick.step(hidden=rng.random() < 0.1)
            if turn % 3 == 0:
                slow.step()
            if turn == ROUNDS // 2:
                harmed = _damage(journal, rng)
                slow.kill()
                yield from _intruded(journal, rng)
        for query in (quick, slow):
            while (
                len(query.planned) > query.committed or not query.planned or query.planned[-1]["sources"][SOURCE] < end
            ):
                query.step()
    except (JournalError, LocalError) as error:
        yield f"a query fails: {error}"
        return
    for query in (quick, slow):
        yield from _missing(journal, query, end, harmed)
    yield from _recreated(journal, quick, end)


def _append(journal: Path, end: int, rng: random.Random) -> int:
    ends = [end := end + rng.randrange(1, 5) for _ in range(rng.randrange(1, 3))]
    fill(journal, SOURCE, *ends, segment_bytes=3_000)
    return ends[-1]


def _damage(journal: Path, rng: random.Random) -> range:
    """Flip a bit of some row; return the positions of its batch, which may be lost by that."""
    path = rng.choice(segments(journal, SOURCE))
    content = path.read_bytes()
    first = int(path.stem)
    position = rng.choice([number for number in range(first, first + 50) if item(number) in content])
    batch = range(*JournalReader(journal, SOURCE).locate(position))
    damage(path, item(position))
    return batch


def _intruded(journal: Path, rng: random.Random) -> Iterator[str]:
    """Let another query use a name that is taken; it must not stand for the one that has it."""
    before = cursors(log_folder(journal, SOURCE)).get("slow")
    intruder = Query(journal, "slow", rng)
    try:
        for _ in range(20):
            intruder._batch(hidden=False)
    except (JournalError, LocalError, Killed):
        pass
    finally:
        intruder.kill()
    after = cursors(log_folder(journal, SOURCE)).get("slow")
    if before is not None and before.query is not None and after != before:
        yield f"another query has moved the reader from {before} to {after}"


def _missing(journal: Path, query: Query, end: int, harmed: range) -> Iterator[str]:
    held = [position for position, _ in query.rows]
    if held != sorted(set(held)):
        yield f"{query._name}: rows come twice, or out of order: {held}"
    if any(data != item(position) for position, data in query.rows):
        yield f"{query._name}: rows stand in the place of others"
    known = {
        position
        for gap in gaps.load(log_folder(journal, SOURCE))
        if gap.lost is not None and gap.query in (None, query.id)
        for position in range(*gap.lost)
    }
    if unknown := set(range(query.begun, end)) - set(held) - known:
        yield f"{query._name}: rows {sorted(unknown)} are missing, and no gap names them"
    if undamaged := known - set(harmed):
        yield f"{query._name}: rows {sorted(undamaged)} are recorded as lost, and nothing had happened to them"


def _recreated(journal: Path, query: Query, end: int) -> Iterator[str]:
    """Put another log in the place of the one that the checkpoint counts in; it goes further."""
    before = len(query.rows)
    query.kill()
    shutil.rmtree(journal)
    fill(journal, SOURCE, end + 20)
    with suppress(JournalError, LocalError):
        for _ in range(4):
            query.step()
    if len(query.rows) > before:
        yield f"a query goes from position {end} of one log to {query.rows[before]} of another"
