"""How much of a search a run does: a sample, chosen by a seed that is printed, or the whole.

`WEIRPOOL_LABS_SEED` repeats a sample, and `WEIRPOOL_LABS=whole` makes it the whole, as `make labs` does. A test with
more cases than `CASES` is a table: it has the mark `table`, and those of its cases that are not in the sample have the
mark `lab`, so that `make test` leaves them to `make labs`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Final

import pytest

__all__ = ["CASES", "SEED", "WHOLE", "mark_tables", "report"]

WHOLE: Final = os.environ.get("WEIRPOOL_LABS") == "whole"
# Processes that this one starts use the same seed.
SEED: Final = int(os.environ.setdefault("WEIRPOOL_LABS_SEED", f"{random.randrange(1_000_000)}"))
CASES: Final = 24
"""The cases of a table in a sample."""


def mark_tables(items: Iterable[pytest.Item], *, whole: bool = WHOLE, seed: int = SEED) -> None:
    """Mark the cases of tables, and those of them that are not in the sample."""
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tables.items():
        if len(cases) <= CASES:
            continue
        sample = cases if whole else random.Random(f"{seed} {name}").sample(cases, CASES)
        kept = set(map(id, sample))
        for case in cases:
            case.add_marker("table")
            if id(case) not in kept:
                case.add_marker("lab")


def report() -> str:
    """Return a line for the header of a run."""
    return "whole tables" if WHOLE else f"samples of tables: WEIRPOOL_LABS_SEED={SEED}, or WEIRPOOL_LABS=whole"
