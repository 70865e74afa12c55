"""Decides which gaps are explained by the death of a process or by another fault.

The number of a run identifies the publisher process that started it. Gaps caused by the death of a publisher therefore
need no clock: their number is that of the publisher processes between the items before and after them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from weirpool.journal import Gap

from .children import End
from .items import RUN_STEP
from .sources import Source

__all__ = ["Facts", "unexplained"]

EXPLAINS_FOR: Final = 180.0
"""Seconds after a fault in which it may cause a gap, on a loaded machine."""
AWAY: Final = ("outage", "long outage", "stall", "black hole", "kill proxy", "starve")
"""Faults that interrupt a link for some time, as all pauses do."""
WEARY: Final = 30.0
"""Seconds without a link after which a session may be lost."""
BREATH: Final = 2.0
"""Seconds between two such faults that are too short to restore a link."""


@dataclass(frozen=True)
class Facts:
    """Facts about a source other than its rows.

    Attributes:
        log: The faults of all sources.
        ends: The ends of all processes.
        begun: The runs that started.
        ended: The number of items of each run that completed.

    """

    log: Sequence[dict[str, Any]] = ()
    ends: Sequence[End] = ()
    begun: Sequence[int] = ()
    ended: dict[int, int] = field(default_factory=dict)


def unexplained(source: Source, runs: np.ndarray, gaps: list[Gap], facts: Facts) -> list[str]:
    """Return a message for each gap without a cause.

    Args:
        source: The source.
        runs: The runs of its rows, in order.
        gaps: The recorded gaps.
        facts: The other facts.

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
            found.append(f"the gap at {gap.position} is within run {before}, where nothing is missing")
        elif counts[gap.position] > allowed and not _worn_out(gap, faults):
            text = f"the gap at {gap.position}, between runs {before} and {after} of a publisher that was not killed,"
            found.append(f"{text} has no cause: {gap.reason}")
    return found


def _unmatched(gaps: list[Gap], faults: list[dict[str, Any]], deaths: list[float]) -> list[str]:
    """Return a message for each gap in excess of the causes: each fault or death may lose items once."""
    causes = [(fault["at"] - 1.0, fault["at"] + fault.get("seconds", 0.0) + EXPLAINS_FOR) for fault in faults]
    causes += [(at - 1.0, at + EXPLAINS_FOR) for at in deaths]
    found = []
    # Matching the cause that expires first explains as many gaps as possible.
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
    """Return True if one or several successive faults kept the link away for longer than a session lives."""
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
