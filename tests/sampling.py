"""How much of a search a run does: a sample, chosen by a seed that is printed, or the whole.

`WEIRPOOL_LABS_SEED` repeats a sample, and `WEIRPOOL_LABS=whole` makes it the whole, as `make labs` does. A test with
more cases than `CASES`, or `LAB_CASES` in a laboratory, is a table. It has the mark `table`, and its cases that are not
in the sample have the mark `rest`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from typing import Final

import pytest

__all__ = ["CASES", "LAB_CASES", "SEED", "WHOLE", "mark_tables", "report"]

WHOLE: Final = os.environ.get("WEIRPOOL_LABS") == "whole"
# Processes that this one starts use the same seed.
SEED: Final = int(os.environ.setdefault("WEIRPOOL_LABS_SEED", f"{random.randrange(1_000_000)}"))
CASES: Final = 24
"""The cases of a table in a sample."""
LAB_CASES: Final = 96
"""The same for a table of a laboratory."""


def mark_tables(items: Iterable[pytest.Item], *, whole: bool = WHOLE, seed: int = SEED) -> None:
    """Mark the cases of tables, and those of them that are not in the sample."""
    tables: dict[str, list[pytest.Item]] = {}
    for item in items:
        tables.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tables.items():
        size = LAB_CASES if cases[0].get_closest_marker("lab") else CASES
        if len(cases) <= size:
            continue
        sample = cases if whole else random.Random(f"{seed} {name}").sample(cases, size)
        kept = set(map(id, sample))
        for case in cases:
            case.add_marker("table")
            if id(case) not in kept:
                case.add_marker("rest")


def report() -> str:
    """Return a line for the header of a run."""
    return "whole tables" if WHOLE else f"samples of tables: WEIRPOOL_LABS_SEED={SEED}, or WEIRPOOL_LABS=whole"
