"""Runs scenarios in turns: each peer runs for about the same time in each round, and medians are kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from .processes import Variant, Worker
from .report import Row

FIRST_COUNT = 8192
"""Operations of the first, short run. A multiple of it is a whole number of batches and of calls in flight."""
LEAST_SECONDS = 0.1
"""The minimum duration of a run for a useful estimate."""


@dataclass
class Runner:
    """One peer in one scenario, and its results in each round."""

    variant: Variant
    client: Worker
    server: Worker | None
    method: str
    more: tuple[int, ...] = ()
    count: int = FIRST_COUNT
    step: int = FIRST_COUNT
    """Counts are multiples of this number."""
    rates: list[float] = field(default_factory=list)
    client_us: list[float] = field(default_factory=list)
    server_us: list[float] = field(default_factory=list)

    def prepare(self, seconds: float) -> None:
        """Choose the count for runs of about this duration."""
        self.warm_up()
        while (took := self._run()["seconds"]) < LEAST_SECONDS:
            self.count *= 2
        self.count = max(round(self.count * seconds / took / self.step), 1) * self.step

    def warm_up(self) -> None:
        """Run once without measuring: the first run has to import modules and allocate memory."""
        self._run()

    def measure(self) -> None:
        """Run once, and store the results."""
        client, server = self.client.ask()["cpu"], self._server_cpu()
        answer = self._run()
        self.rates.append(self.count / answer["seconds"])
        self.client_us.append((answer["cpu"] - client) * 1e6 / self.count)
        self.server_us.append((self._server_cpu() - server) * 1e6 / self.count)

    def row(self) -> Row:
        """Return the medians of all rounds."""
        server_us = median(self.server_us) if self.server is not None else None
        return Row(self.variant.name, median(self.rates), median(self.client_us), server_us)

    def _run(self) -> dict[str, float]:
        return self.client.ask(self.method, self.count, *self.more)

    def _server_cpu(self) -> float:
        return self.server.ask()["cpu"] if self.server is not None else 0.0


def in_turns(runners: list[Runner], seconds: float, rounds: int) -> list[Row]:
    """Run all runners in `rounds` rounds of some `seconds` each, and return their medians."""
    for runner in runners:
        runner.prepare(seconds)
    for turn in range(rounds):
        # Every second round is reversed, so that aftereffects of a peer do not always affect the same one.
        for runner in runners[:: -1 if turn % 2 else 1]:
            runner.measure()
    return [runner.row() for runner in runners]
