"""The limits that the numbers must keep, in `limits.toml`; they are lowered as the numbers shrink."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .rows import Row

__all__ = ["LIMITS", "Limits", "excesses", "load", "lowered", "slack", "text_of"]

LIMITS: Final = Path(__file__).parent / "limits.toml"
HEAD: Final = """\
# What `make walk` measures must not exceed these limits. `python -m walk --update` lowers them to what is measured.
# Raise one by hand, and say in the commit why. Goals are those of the redesign; no goal: only less.
"""
ROUNDED: Final = {"lines in src": 500}
"""Limits that are a multiple of this, so that not every commit meets them."""


@dataclass(frozen=True)
class Limits:
    """What each row may reach, and where it should get, both by the row's name."""

    limits: Mapping[str, int]
    goals: Mapping[str, int]


def load(path: Path = LIMITS) -> Limits:
    """Return the limits of a file."""
    tables = tomllib.loads(path.read_text())
    return Limits(tables["limits"], tables["goals"])


def excesses(rows: Iterable[Row], limits: Limits) -> list[str]:
    """Return a sentence for each row that exceeds its limit or has none, and for each limit that has no row."""
    rows = list(rows)
    told = []
    for row in rows:
        limit = limits.limits.get(row.name)
        if limit is None:
            told.append(f"{row.name}: {row.number}, and no limit; run python -m walk --update")
        elif row.number > limit:
            told.append(f"{row.name}: {row.number}, more than the limit of {limit}")
    gone = set(limits.limits) - {row.name for row in rows}
    return told + [f"{name}: is not measured any more; run python -m walk --update" for name in sorted(gone)]


def slack(rows: Iterable[Row], limits: Limits) -> list[str]:
    """Return the names of the rows whose limits can be lowered."""
    return [row.name for row in rows if row.name in limits.limits and _limit_of(row) < limits.limits[row.name]]


def lowered(rows: Iterable[Row], limits: Limits) -> Limits:
    """Return limits that are no higher than before, for exactly these rows."""
    fresh = {row.name: min(limits.limits.get(row.name, _limit_of(row)), _limit_of(row)) for row in rows}
    return Limits(fresh, {name: goal for name, goal in limits.goals.items() if name in fresh})


def text_of(limits: Limits) -> str:
    """Return what the file says of these limits."""
    tables = {"limits": limits.limits, "goals": limits.goals}
    parts = [
        "\n".join([f"[{name}]", *(f'"{row}" = {n}' for row, n in table.items())]) for name, table in tables.items()
    ]
    return HEAD + "\n" + "\n\n".join(parts) + "\n"


def _limit_of(row: Row) -> int:
    """Return the limit that a row's number makes."""
    step = ROUNDED.get(row.name, 1)
    return -(-row.number // step) * step
