"""Draws a sequence of faults from a seed."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from .sources import SOURCES

__all__ = ["KINDS", "NAMES", "SPARK_KILLS", "Fault", "faults", "spark_kills"]

NAMES: Final = tuple(source.name for source in SOURCES)

KINDS: Final[dict[str, float]] = {
    "kill collector": 30,
    "kill collector twice": 8,
    "stop collector": 6,
    "stop and kill collector": 4,
    "kill publisher": 5,
    "stop publisher": 2,
    "stop and kill publisher": 1,
    "kill proxy": 1,
    "kill host": 0.5,
    "kill executor": 0.3,
    "kill python worker": 0.5,
    "kill driver's python": 0.15,
    "kill driver's JVM": 0.15,
    "stop driver's python": 0.15,
    "pause collector": 6,
    "pause publisher": 4,
    "pause proxy": 1,
    "pause host": 0.5,
    "pause executor": 0.3,
    "long pause collector": 1,
    "long pause publisher": 1,
    "long pause proxy": 0.2,
    "cut": 28,
    "stall": 8,
    "trickle": 4,
    "black hole": 4,
    "outage": 3,
    "long outage": 0.15,
    "starve": 3,
    "fill disk": 3,
}
"""The weight of each fault. Faults of Spark are rare, because it recovers slowly. An outage is longer than River's
retry budget of five attempts, a long one longer than any session lives without a link. A long pause, and most black
holes, are longer than the keepalive timeouts."""

SPARK_KILLS: Final = ("kill driver's JVM", "kill driver's python", "kill executor", "kill python worker")
"""Kills of Spark's processes that come in each run, beside those that are drawn."""
LONG_OUTAGE: Final = 60.0
BURST: Final = 0.04
"""The probability that a fault starts a burst."""
BURST_SIZES: Final = range(2, 7)
AT_ONCE: Final = 0.02
"""The maximum pause between the faults of a burst, in seconds."""
STOPS: Final = (signal.SIGTERM, signal.SIGINT)
WAYS: Final = ("there", "back", "both")


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        pause: Seconds after the previous fault.
        kind: One of `KINDS`.
        target: The name of the source; empty for all sources, or Spark.
        seconds: The duration; 0 for an immediate fault.
        after: For a cut, the number of bytes that still pass.
        how: The signal that stops a process, or the direction of a black hole.

    """

    pause: float
    kind: str
    target: str = ""
    seconds: float = 0.0
    after: int = 0
    how: str = ""

    def record(self, at: float) -> dict[str, Any]:
        """Return the fault as a record for the log."""
        return {"at": round(at, 3)} | {name: value for name, value in asdict(self).items() if value}


def faults(seed: int, mean_pause: float) -> Iterator[Fault]:
    """Yield faults without end.

    Args:
        seed: The same seed yields the same faults.
        mean_pause: Mean seconds between two faults.

    """
    rng = random.Random(seed)
    kinds, weights = list(KINDS), list(KINDS.values())
    together = 0
    while True:
        [kind] = rng.choices(kinds, weights)
        target = "" if kind.endswith(("starve", "proxy", "host")) or _is_spark(kind) else rng.choice(NAMES)
        after = rng.randrange(3_000) if kind == "cut" and rng.random() < 0.7 else 0
        if not together and rng.random() < BURST:
            together = rng.choice(BURST_SIZES)
        pause = rng.uniform(0, AT_ONCE) if together else rng.expovariate(1 / mean_pause)
        together = max(0, together - 1)
        yield Fault(pause, kind, target, round(_seconds(rng, kind), 4), after, _how(rng, kind))


def spark_kills(seed: int, mean_pause: float) -> Iterator[Fault]:
    """Yield kills of Spark's processes without end, in rounds that have each kind once.

    Args:
        seed: The same seed yields the same kills.
        mean_pause: Mean seconds between two kills.

    """
    rng = random.Random(f"spark {seed}")
    while True:
        for kind in rng.sample(SPARK_KILLS, len(SPARK_KILLS)):
            yield Fault(round(rng.uniform(0.5, 1.5) * mean_pause, 4), kind)


def _is_spark(kind: str) -> bool:
    return any(word in kind for word in ("executor", "driver", "python"))


def _how(rng: random.Random, kind: str) -> str:
    if kind.startswith("stop"):
        return rng.choice(STOPS).name
    return rng.choice(WAYS) if kind == "black hole" else ""


def _seconds(rng: random.Random, kind: str) -> float:
    """Return the duration of a fault, or the time between its two signals."""
    if kind == "kill collector twice":
        # Anywhere between the first import and the first items.
        return rng.uniform(0.001, 1.5)
    if kind.startswith("stop and kill"):
        return rng.choice((0.001, 0.01, 0.1)) * rng.uniform(0.1, 1.0)
    if kind.startswith(("kill", "stop")) or kind == "cut":
        return 0.0
    if kind == "long outage":
        return LONG_OUTAGE
    if kind.startswith("long pause"):
        return rng.uniform(10.0, 20.0)
    if kind == "black hole":
        return rng.uniform(1.0, 12.0)
    if kind == "outage":
        return rng.uniform(4.0, 9.0)
    return rng.uniform(0.1, 3.0)
