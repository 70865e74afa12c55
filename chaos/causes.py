"""Why gaps may be there: the deaths that cost items, and the faults that may.

A run's number tells which process of the publisher began it. So no clock is needed to tell which gaps are due to the
death of a publisher: as many as processes of it lie between the items before and the items after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from penstock.journal import Gap

from .children import End
from .items import RUN_STEP
from .sources import Source

__all__ = ["Facts", "unexplained"]

EXPLAINS_FOR: Final = 180.0
"""Seconds for which a fault may be the cause of a gap: as long as all that follows may take on a starved machine."""
AWAY: Final = ("outage", "long outage", "stall", "black hole", "kill proxy", "starve")
"""Faults that keep a link away for a while, as all pauses do."""
WEARY: Final = 30.0
"""Seconds without a link that may be too many for a session, once what follows is added."""
BREATH: Final = 2.0
"""Seconds between two such faults that are too few for a link."""


@dataclass(frozen=True)
class Facts:
    """What is known of a source apart from its rows.

    Attributes:
        log: The faults, of all sources.
        ends: Of all processes.
        begun: Runs that began.
        ended: How many items each run made that came to its end.

    """

    log: Sequence[dict[str, Any]] = ()
    ends: Sequence[End] = ()
    begun: Sequence[int] = ()
    ended: dict[int, int] = field(default_factory=dict)


def unexplained(source: Source, runs: np.ndarray, gaps: list[Gap], facts: Facts) -> list[str]:
    """Return what is wrong with the gaps that have no cause, a sentence each.

    Args:
        source: Which it is.
        runs: Of its rows, in order.
        gaps: As they were recorded.
        facts: What else is known.

    """
    faults = [fault for fault in facts.log if fault.get("target", source.name) in ("", source.name)]
    deaths = sorted(
        end.at for end in facts.ends if end.name in (f"collector {source.name}", f"publisher {source.name}")
    )
    if not source.resumes:
        return _unmatched(gaps, faults, deaths)
    found = []
    counts: Counter[int] = Counter()
    for gap in gaps:
        counts[gap.position] += 1
        before = int(runs[gap.position - 1]) if gap.position else None
        after = int(runs[gap.position]) if gap.position < len(runs) else max(facts.ended, default=before)
        # A process that died before the first checkpoint of a stream leaves a gap before its first item.
        allowed = (
            after // RUN_STEP + sum(at <= gap.time.timestamp() for at in deaths)
            if before is None and after is not None
            else (after or 0) // RUN_STEP - (before or 0) // RUN_STEP
        )
        if before == after:
            found.append(f"the gap at {gap.position} is within run {before}: nothing is missing there")
        elif counts[gap.position] > allowed and not _worn_out(gap, faults):
            text = f"the gap at {gap.position}, between the runs {before} and {after} of a publisher that lived"
            found.append(f"{text}, has no cause: {gap.reason}")
    return found


def _unmatched(gaps: list[Gap], faults: list[dict[str, Any]], deaths: list[float]) -> list[str]:
    """Return the gaps that are more than the causes: each touch of a link or a process may cost items once."""
    causes = [(fault["at"] - 1.0, fault["at"] + fault.get("seconds", 0.0) + EXPLAINS_FOR) for fault in faults]
    causes += [(at - 1.0, at + EXPLAINS_FOR) for at in deaths]
    found = []
    # The cause that expires first is used up first: so as many gaps as can be have one.
    free = sorted(causes, key=lambda cause: cause[1])
    for gap in sorted(gaps, key=lambda gap: gap.time):
        at = gap.time.timestamp()
        cause = next((cause for cause in free if cause[0] <= at <= cause[1]), None)
        if cause is None:
            found.append(f"the gap at {gap.position} has no cause: {gap.reason}")
        else:
            free.remove(cause)
    return found


def _worn_out(gap: Gap, faults: list[dict[str, Any]]) -> bool:
    """Return whether there was no link for longer than a session may live, because of one fault or several in a row."""
    at = gap.time.timestamp()
    away = [
        (fault["at"], fault["at"] + fault.get("seconds", 0.0))
        for fault in faults
        if fault["kind"] in AWAY or "pause" in fault["kind"]
    ]
    begun = ended = -float("inf")
    for begins, ends in sorted(away):
        if begins > ended + BREATH:
            begun = begins
        ended = max(ended, ends)
        if ended - begun >= WEARY and begun <= at <= ended + EXPLAINS_FOR:
            return True
    return False
