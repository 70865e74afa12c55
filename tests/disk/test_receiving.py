"""Receiving on the simulated disk: power cuts and errors at every step."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from penstock.errors import JournalError
from penstock.journal import Journal
from penstock.receiving import log as module
from penstock.receiving.log import ReceivedLog
from tests.disk import labs
from tests.receiving.micro_batches import data_of, rows, staged

T = TypeVar("T")
SEEDS = 1
BATCHES = [("q", 0), ("p", 0), ("q", 1)]
PARTS = 2


@dataclass
class Promises:
    """The micro-batches that were committed, and the one that was tried."""

    committed: list[tuple[str, int]] = field(default_factory=list)
    tried: tuple[str, int] | None = None


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a micro-batch need several batches of the log."""
    monkeypatch.setattr(module, "BATCH_BYTES", 100)


def patiently(call: Callable[[], T]) -> T:
    """Call again after an error of the disk, as a client does."""
    for _ in range(5):
        try:
            return call()
        except JournalError:
            pass
    return call()


def opened(journal: Path, *, fsync: bool = True) -> ReceivedLog:
    return ReceivedLog(journal, "a", "a", segment_bytes=1_500, fsync=fsync)


def work(journal: Path, promises: Promises) -> None:
    log = patiently(lambda: opened(journal))
    for query, batch in BATCHES:
        promises.tried = (query, batch)
        # A failed stage is not there, so the whole micro-batch is staged again.
        patiently(lambda q=query, b=batch: log.commit(q, b, staged(log, q, b, PARTS)))  # type: ignore[misc]
        promises.committed.append((query, batch))
    patiently(lambda: log.append(rows([b"pushed"])))
    # The next process syncs what an error left unsynced.
    with suppress(JournalError):
        log.close()


def broken(journal: Path, promises: Promises) -> list[str]:
    """Return what is wrong after the cut, when the client has repeated what it does not know."""
    tried = [] if promises.tried is None else [promises.tried]
    log = opened(journal, fsync=False)
    found = []
    for query, batch in promises.committed:
        if log.committed(query, batch) is None:
            found.append(f"micro-batch {batch} of {query} is forgotten")
    for query, batch in tried:
        log.commit(query, batch, staged(log, query, batch, PARTS))
    log.close()
    expected = dict.fromkeys([*promises.committed, *tried])
    wanted = [value for query, batch in expected for part in range(PARTS) for value in data_of(query, batch, part)]
    reader = Journal(journal).reader("a")
    held = [value for batch in reader.read(0, reader.end) for value in batch["data"].to_pylist()]
    if [value for value in held if value != b"pushed"] != wanted:
        found.append(f"the log has {held}, not {wanted}")
    if problems := Journal(journal).verify()["a"].problems:
        found.append(f"verify says: {problems}")
    return found


def steps_of_the_work(folder: Path) -> int:
    return labs.steps_of(partial(work, promises=Promises()), folder)


def cut_at(step: int, seed: int, folder: Path) -> list[str]:
    """Cut the power at a step; return what is wrong afterwards."""
    promises, rng = Promises(), random.Random(f"{step} {seed}")
    journal = labs.cut(partial(work, promises=promises), folder / f"{step}-{seed}", rng, cut_at=step)
    return broken(journal, promises)


def test_power_cut_at_every_step_repeats_and_loses_nothing(tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    assert steps > 100
    found = {(step, seed): cut_at(step, seed, tmp_path) for step in range(1, steps + 1) for seed in range(SEEDS)}
    assert {where: wrong for where, wrong in found.items() if wrong} == {}


def test_error_at_every_step_repeats_and_loses_nothing(tmp_path: Path) -> None:
    steps = steps_of_the_work(tmp_path / "whole")
    found = {}
    for step in range(1, steps + 1):
        promises = Promises()
        number = (errno.EIO, errno.ENOSPC, errno.EMFILE)[step % 3]
        journal = labs.fail(partial(work, promises=promises), tmp_path / f"{step}", step, number)
        found[step] = broken(journal, promises)
    assert {step: wrong for step, wrong in found.items() if wrong} == {}
