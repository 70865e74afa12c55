"""The laboratory of starts at a time: the collector's clock goes back and jumps ahead, and rows are sealed and trimmed.

Each start, at the time of any row or just beside it, must be the first row that a linear search finds.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from unittest import mock

from tests.journal.clocks import Step, write_at, wrong_starts
from tests.journal.logs import SOURCE
from weirpool.archive import SealOptions, seal
from weirpool.journal import Journal

__all__ = ["starts"]

SEEDS = 12
SMALL = SealOptions(target_bytes=1)


def starts(folder: Path) -> Iterator[str]:
    """Start at times after clocks have moved, in a segment, between segments and across sealing (THREATS 114)."""
    with mock.patch.object(os, "fsync", lambda descriptor: None):
        for seed in range(SEEDS):
            yield from (f"seed {seed}: {wrong}" for wrong in _played(folder / f"{seed}", random.Random(seed)))


def _played(path: Path, rng: random.Random) -> Iterator[str]:
    size = rng.choice([1, 4_000, 8_000])
    clock = write_at(path, _steps(rng), segment_bytes=size)
    before = Journal(path).reader(SOURCE)
    for _ in range(rng.randrange(4)):
        seal(path, SOURCE, SMALL, force=True)
    write_at(path, _steps(rng), clock + timedelta(minutes=rng.choice([-30, 0, 30])), size)
    if rng.random() < 0.3:
        Journal(path).delete(SOURCE, before.end // 2)
    before.refresh()
    for reader in (before, Journal(path).reader(SOURCE)):
        yield from wrong_starts(reader)


def _steps(rng: random.Random) -> list[Step]:
    return [(rng.choice([0, 1, 10, 10, 10, 1800, -1800]), rng.randrange(4)) for _ in range(rng.randrange(5, 25))]
