"""The CPU time that each process uses, per step from a source to Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median

from ..report import Row, Table
from ..usage import Usage

__all__ = ["STEPS", "Costs", "Measured", "Step", "timed"]

STEPS = {
    "publish": "from a source to a log",
    "batch": "from a log to Spark's noop sink, batch",
    "stream": "from a log to Spark's noop sink, streaming",
    "live": "from a source to Spark's noop sink, live",
}
PARTS = {
    "publisher or producer": ("publish", "source"),
    "collector or broker": ("publish", "log"),
    "Spark, batch": ("batch", "spark"),
    "broker while Spark reads, batch": ("batch", "log"),
    "Spark, streaming": ("stream", "spark"),
    "broker while Spark reads, streaming": ("stream", "log"),
    "live, publisher or producer": ("live", "source"),
    "live, collector or broker": ("live", "log"),
    "live, Spark": ("live", "spark"),
}
"""The rows of the table of costs: a step and the process that it is about."""
SUMS = {
    "source to Spark, batch": ("publish", "batch"),
    "source to Spark, streaming": ("publish", "stream"),
    "source to Spark, live": ("live",),
}


@dataclass(frozen=True)
class Step:
    """What a step took in one round.

    Attributes:
        seconds: The time that passed.
        cpu: CPU seconds of the processes "source", "log" and "spark".

    """

    seconds: float
    cpu: Mapping[str, float]


@dataclass
class Measured:
    """All rounds of one chain.

    Attributes:
        name: Its name.
        rows: The rows of each step.
        steps: The rounds of each step.

    """

    name: str
    rows: int
    steps: dict[str, list[Step]] = field(default_factory=lambda: {name: [] for name in STEPS})

    def rate(self, step: str) -> float:
        """Return the median of the rows per second."""
        return self.rows / median(each.seconds for each in self.steps[step])

    def cost(self, step: str, process: str) -> float:
        """Return the median of the CPU seconds of a process per million rows."""
        return median(each.cpu[process] for each in self.steps[step]) * 1e6 / self.rows

    def total(self, steps: Sequence[str]) -> float:
        """Return the CPU seconds of all processes in these steps, per million rows."""
        return sum(self.cost(step, process) for step, process in PARTS.values() if step in steps)

    def row(self, step: str) -> Row:
        """Return the row of a step's table. The client is whoever is not the log."""
        client = "source" if step == "publish" else "spark"
        return Row(self.name, self.rate(step), self.cost(step, client), self.cost(step, "log"))


@dataclass
class Costs:
    """The CPU seconds of each process per million rows, from a source to Spark. All chains but the last are ours."""

    chains: list[Measured]
    about: Mapping[str, object]

    def tables(self) -> list[Table]:
        """Return the rows per second of each step."""
        return [
            Table(f"kafka-{step}", title, "rows", [chain.row(step) for chain in self.chains])
            for step, title in STEPS.items()
        ]

    def lines(self) -> dict[str, list[float]]:
        """Return the costs of each chain for each part and each sum."""
        parts = {title: [chain.cost(*part) for chain in self.chains] for title, part in PARTS.items()}
        return parts | {title: [chain.total(steps) for chain in self.chains] for title, steps in SUMS.items()}

    def __str__(self) -> str:
        width = max(14, *(len(chain.name) + 2 for chain in self.chains))
        names = "".join(f"{chain.name:>{width}}" for chain in self.chains)
        lines = [
            "CPU seconds per million rows from a source to Spark (kafka)",
            f"  {', '.join(f'{name} {value}' for name, value in self.about.items())}",
            f"  {'':38}{names}{'ratio':>10}",
        ]
        for title, (*ours, theirs) in self.lines().items():
            costs = "".join(f"{cost:{width}.2f}" for cost in (*ours, theirs))
            ratios = "".join(f"{f'{theirs / cost:.2f} x' if cost else '':>10}" for cost in ours)
            lines.append(f"  {title:38}{costs}{ratios}")
        return "\n".join(lines)

    def as_object(self) -> dict[str, object]:
        """Return all rounds as a JSON object."""
        rounds = [asdict(chain) for chain in self.chains]
        return {
            "scenario": "kafka",
            "unit": "CPU s a million rows",
            **self.about,
            "costs": self.lines(),
            "rows": rounds,
        }


def timed(pids: Mapping[str, int], work: Callable[[], object]) -> Step:
    """Do some work, and return the time and the CPU time that it took."""
    with Usage(pids) as usage:
        begun = time.perf_counter()
        work()
        seconds = time.perf_counter() - begun
    return Step(seconds, usage.seconds())
