"""The latency of calls while streams saturate the same server.

Three processes: the server, a client that reads streams which never end, over one connection or over one each, and
another client that makes one call after another over a connection of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median

from .processes import Variant, Worker

VARIANTS = (
    Variant("Weirpool", "ours_fair"),
    Variant("Weirpool, async generators", "ours_fair_async"),
    Variant("Weirpool, asyncio's loop", "ours_fair", loop="asyncio"),
    Variant("Weirpool, plain build", "ours_fair", plain=True),
    Variant("asyncio streams", "asyncio_fair", loop="asyncio"),
    Variant("asyncio streams, uvloop", "asyncio_fair"),
    Variant("grpc.aio", "grpc_fair", loop="asyncio"),
)
STREAMS = (0, 1, 20, 100, 1_000)
SCENARIOS = {f"fair-{streams}-{way}": (streams, way == "many") for way in ("one", "many") for streams in STREAMS}
WARM_SECONDS = 1.0
MAX_ROUNDS = 3
LEAST_SECONDS = 2.0
"""The minimum duration of a run: some hundred calls, for a useful 99th percentile."""


@dataclass
class Latencies:
    """One implementation in one scenario.

    Attributes:
        name: Its name.
        p50: The median latency of each round, in seconds.
        p99: The 99th percentile of each round.
        longest: The longest latency of each round.
        rates: Items received per second in each round.
        failed: Streams that failed.

    """

    name: str
    p50: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    failed: int = 0

    def add(self, latencies: Sequence[float], rate: float) -> None:
        """Store the results of a round."""
        found = sorted(latencies)
        self.p50.append(percentile(found, 0.5))
        self.p99.append(percentile(found, 0.99))
        self.longest.append(found[-1])
        self.rates.append(rate)

    def __str__(self) -> str:
        times = (median(self.p50), median(self.p99), max(self.longest))
        columns = "".join(f"{1e3 * seconds:12.2f}" for seconds in times)
        failed = f"  {self.failed} streams failed" if self.failed else ""
        return f"  {self.name:28}{columns}{median(self.rates):15,.0f}{failed}"


def percentile(found: Sequence[float], share: float) -> float:
    """Return the smallest of these sorted numbers that is not less than `share` of them."""
    return found[max(math.ceil(share * len(found)) - 1, 0)]


@dataclass
class Fairness:
    """The results of a scenario."""

    name: str
    title: str
    rows: list[Latencies]

    def __str__(self) -> str:
        head = f"  {'':28}{'p50 ms':>12}{'p99 ms':>12}{'longest ms':>12}{'items/s':>15}"
        return "\n".join([f"{self.title} ({self.name})", head, *map(str, self.rows)])

    def as_object(self) -> dict[str, object]:
        """Return the results as a JSON object."""
        return {"scenario": self.name, "title": self.title, "unit": "calls", "rows": [vars(row) for row in self.rows]}


def measure(scenarios: list[str], seconds: float, rounds: int) -> Iterator[Fairness]:
    """Run `scenarios` with all peers in turns, and yield the results of each as it completes."""
    for name in scenarios:
        streams, own = SCENARIOS[name]
        rows = [Latencies(variant.name) for variant in VARIANTS]
        for _ in range(min(rounds, MAX_ROUNDS)):
            for variant, row in zip(VARIANTS, rows, strict=True):
                run(variant, row, streams, own, max(seconds, LEAST_SECONDS))
        way = f"{streams:,} connections" if own else "one connection"
        yield Fairness(name, f"calls while {streams:,} streams saturate the server over {way}", rows)


def run(variant: Variant, row: Latencies, streams: int, own: bool, seconds: float) -> None:
    """Run one round of one peer, in new processes."""
    with ExitStack() as stack:
        server = stack.enter_context(Worker(variant))
        loader = stack.enter_context(Worker(variant, server.ready))
        caller = stack.enter_context(Worker(variant, server.ready))
        caller.ask("latencies", 0.1)
        loader.ask("saturate", streams, own)
        caller.ask("latencies", WARM_SECONDS)
        before = loader.ask("count")
        found = caller.ask("latencies", seconds)
        after = loader.ask("count")
        row.add(found["latencies"], (after["received"] - before["received"]) / found["seconds"])
        row.failed += int(after["failed"])
        loader.ask("stop")
