"""The limits of the metrics, in `limits.toml`. They are lowered when the metrics improve."""

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


@dataclass(frozen=True)
class Limits:
    """The limit and the goal of each row, by its name."""

    limits: Mapping[str, int]
    goals: Mapping[str, int]


def load(path: Path = LIMITS) -> Limits:
    """Return the limits of a file."""
    tables = tomllib.loads(path.read_text())
    return Limits(tables["limits"], tables["goals"])


def excesses(rows: Iterable[Row], limits: Limits) -> list[str]:
    """Return a message for each row that exceeds its limit or has none, and for each limit without a row."""
    rows = list(rows)
    told = []
    for row in rows:
        limit = limits.limits.get(row.name)
        if limit is None:
            told.append(f"{row.name}: {row.number}, without a limit; run python -m walk --update")
        elif row.number > limit:
            told.append(f"{row.name}: {row.number}, more than the limit of {limit}")
    gone = set(limits.limits) - {row.name for row in rows}
    return told + [f"{name}: no longer measured; run python -m walk --update" for name in sorted(gone)]


def slack(rows: Iterable[Row], limits: Limits) -> list[str]:
    """Return the names of the rows whose limits can be lowered."""
    return [row.name for row in rows if row.name in limits.limits and row.number < limits.limits[row.name]]


def lowered(rows: Iterable[Row], limits: Limits) -> Limits:
    """Return limits that are no higher than before, for exactly these rows."""
    fresh = {row.name: min(limits.limits.get(row.name, row.number), row.number) for row in rows}
    return Limits(fresh, {name: goal for name, goal in limits.goals.items() if name in fresh})


def text_of(limits: Limits) -> str:
    """Return the content of the file for these limits."""
    tables = {"limits": limits.limits, "goals": limits.goals}
    parts = [
        "\n".join([f"[{name}]", *(f'"{row}" = {n}' for row, n in table.items())]) for name, table in tables.items()
    ]
    return HEAD + "\n" + "\n\n".join(parts) + "\n"
