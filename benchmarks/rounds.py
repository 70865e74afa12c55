"""Scenarios in turns: each peer runs for about as long, again and again, and medians are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from .processes import Variant, Worker
from .report import Row

FIRST_COUNT = 8192
"""Operations of the first, short run; counts are multiples of it: a whole number of batches, and of calls in flight."""
LEAST_SECONDS = 0.1
"""A run shorter than this tells nothing."""


@dataclass
class Runner:
    """One peer in one scenario, and what it reached in each round."""

    variant: Variant
    client: Worker
    server: Worker | None
    method: str
    more: tuple[int, ...] = ()
    count: int = FIRST_COUNT
    step: int = FIRST_COUNT
    """Counts are multiples of it."""
    rates: list[float] = field(default_factory=list)
    client_us: list[float] = field(default_factory=list)
    server_us: list[float] = field(default_factory=list)

    def prepare(self, seconds: float) -> None:
        """Choose the count that takes about so long."""
        self.warm_up()
        while (took := self._run()["seconds"]) < LEAST_SECONDS:
            self.count *= 2
        self.count = max(round(self.count * seconds / took / self.step), 1) * self.step

    def warm_up(self) -> None:
        """Run once without measuring: the first run of all imports and allocates what later ones have."""
        self._run()

    def measure(self) -> None:
        """Run once."""
        client, server = self.client.ask()["cpu"], self._server_cpu()
        answer = self._run()
        self.rates.append(self.count / answer["seconds"])
        self.client_us.append((answer["cpu"] - client) * 1e6 / self.count)
        self.server_us.append((self._server_cpu() - server) * 1e6 / self.count)

    def row(self) -> Row:
        """Return the medians."""
        server_us = median(self.server_us) if self.server is not None else None
        return Row(self.variant.name, median(self.rates), median(self.client_us), server_us)

    def _run(self) -> dict[str, float]:
        return self.client.ask(self.method, self.count, *self.more)

    def _server_cpu(self) -> float:
        return self.server.ask()["cpu"] if self.server is not None else 0.0


def in_turns(runners: list[Runner], seconds: float, rounds: int) -> list[Row]:
    """Run all of them `rounds` times, some `seconds` each, and return their medians."""
    for runner in runners:
        runner.prepare(seconds)
    for turn in range(rounds):
        # Each second round goes backwards: what a peer leaves behind does not always meet the same one.
        for runner in runners[:: -1 if turn % 2 else 1]:
            runner.measure()
    return [runner.row() for runner in runners]
