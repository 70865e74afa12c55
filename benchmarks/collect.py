"""What collecting costs: CPU seconds of the collector's process for a million rows of 128 bytes, from socket to disk.

Three cases: one feed at full speed, a hundred feeds of 400 items/s in one process, and one such feed. The publisher is
another process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from .processes import Variant, Worker

FULL_ROWS = 1_310_720
"""As many as fit into the budget of a journal without readers."""
SLOW_RATE = 400
SLOW = {"collect-1": 1, "collect-100": 100}
SCENARIOS = ("collect-full", *SLOW)
LEAST_SECONDS = 10.0
MAX_ROUNDS = 3
MILLION = 1e6


@dataclass
class Cost:
    """The results of a scenario.

    Attributes:
        name: Its name.
        title: What is collected.
        rates: Rows per second in each round.
        seconds: CPU seconds for a million rows in each round.

    """

    name: str
    title: str
    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        found = f"{median(self.seconds):8.2f} CPU-s a million rows, at {median(self.rates):,.0f} rows/s"
        return f"{self.title} ({self.name})\n  {found}"

    def as_object(self) -> dict[str, object]:
        """Return the results as a JSON object."""
        return {"scenario": self.name, "unit": "CPU seconds a million rows", "rates": self.rates, "cpu": self.seconds}


def measure(scenarios: list[str], seconds: float, rounds: int) -> Iterator[Cost]:
    """Run `scenarios`, and yield the results of each as it completes."""
    for name in scenarios:
        title = f"{SLOW[name]} feeds of {SLOW_RATE} items/s" if name in SLOW else "one feed at full speed"
        cost = Cost(name, title)
        for _ in range(min(rounds, MAX_ROUNDS)):
            if name in SLOW:
                slow(cost, SLOW[name], max(seconds, LEAST_SECONDS))
            else:
                full(cost)
        yield cost


def slow(cost: Cost, feeds: int, seconds: float) -> None:
    """Collect slow feeds for some time, in new processes."""
    variant = Variant("Weirpool", "ours_feeds")
    with Worker(variant) as server, Worker(variant, server.ready) as client:
        found = client.ask("feeds", feeds, SLOW_RATE, seconds)
    cost.rates.append(found["rows"] / seconds)
    cost.seconds.append(found["cpu_used"] / found["rows"] * MILLION)


def full(cost: Cost) -> None:
    """Collect a stream to its end, in new processes, the second time with the measurement."""
    variant = Variant("Weirpool", "ours_collector")
    with Worker(variant) as server, Worker(variant, server.ready) as client:
        before = client.ask("collect", FULL_ROWS)
        found = client.ask("collect", FULL_ROWS)
    cost.rates.append(FULL_ROWS / found["seconds"])
    cost.seconds.append((found["cpu"] - before["cpu"]) / FULL_ROWS * MILLION)
