"""What breaks, and when: a sequence of faults that follows from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from .sources import SOURCES

__all__ = ["KINDS", "Fault", "faults"]

NAMES: Final = tuple(source.name for source in SOURCES)

KINDS: Final[dict[str, float]] = {
    "kill collector": 50,
    "kill publisher": 6,
    "kill proxy": 1,
    "kill executor": 0.3,
    "kill python worker": 0.5,
    "kill driver's python": 0.15,
    "kill driver's JVM": 0.15,
    "pause collector": 6,
    "pause publisher": 4,
    "pause proxy": 1,
    "pause executor": 0.3,
    "cut": 30,
    "stall": 8,
    "trickle": 4,
    "outage": 3,
    "long outage": 0.15,
    "starve": 3,
    "fill disk": 3,
}
"""How often each fault comes, in proportion. Spark is hit seldom, because it takes many seconds to come back. An
outage is longer than River's retry budget of five tries, a long one longer than any session lives without a link."""

LONG_OUTAGE: Final = 60.0
LATE: Final = ("no", "no", "waits:0.3", "waits:0.05", "blocks:0.3", "blocks:0.05")


@dataclass(frozen=True)
class Fault:
    """One thing that breaks.

    Attributes:
        pause: Seconds after the one before it.
        kind: One of `KINDS`.
        target: The source that it hits; empty: all of them, or Spark.
        seconds: How long it lasts; 0: it is over at once.
        after: For a cut, how many bytes still pass.

    """

    pause: float
    kind: str
    target: str = ""
    seconds: float = 0.0
    after: int = 0

    def record(self, at: float) -> dict[str, Any]:
        """Return what the log keeps of it."""
        return {"at": round(at, 3)} | {name: value for name, value in asdict(self).items() if value}


def faults(seed: int, mean_pause: float) -> Iterator[Fault]:
    """Yield faults without end.

    Args:
        seed: The same seed yields the same faults.
        mean_pause: Seconds between two of them, on average.

    """
    rng = random.Random(seed)
    kinds, weights = list(KINDS), list(KINDS.values())
    while True:
        [kind] = rng.choices(kinds, weights)
        target = "" if kind in ("starve", "kill proxy", "pause proxy") or _is_spark(kind) else rng.choice(NAMES)
        seconds = _seconds(rng, kind)
        after = rng.randrange(3_000) if kind == "cut" and rng.random() < 0.7 else 0
        yield Fault(rng.expovariate(1 / mean_pause), kind, target, round(seconds, 3), after)


def _is_spark(kind: str) -> bool:
    return any(word in kind for word in ("executor", "driver", "python"))


def _seconds(rng: random.Random, kind: str) -> float:
    if kind.startswith("kill") or kind == "cut":
        return 0.0
    if kind == "long outage":
        return LONG_OUTAGE
    if kind == "outage":
        return rng.uniform(4.0, 9.0)
    return rng.uniform(0.1, 3.0)
