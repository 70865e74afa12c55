"""Runs a target with mutated inputs, and keeps inputs that reach something new."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from random import Random

from .mutating import mutated
from .sensors import Sensor
from .targets import Target

__all__ = ["Engine"]


class Engine:
    """Fuzzes one target.

    Args:
        target: The target.
        sensors: What to observe.
        rng: The source of randomness.
        before: Called with each input before it runs, because the process may not survive it.

    Attributes:
        corpus: The inputs that reached something new.
        runs: How many inputs were run.

    """

    def __init__(
        self, target: Target, sensors: Sequence[Sensor], rng: Random, before: Callable[[bytes], None] = len
    ) -> None:
        self._target = target
        self._sensors = sensors
        self._rng = rng
        self._before = before
        self.corpus: list[bytes] = []
        self.runs = 0

    def add(self, inputs: Iterable[bytes]) -> None:
        """Run inputs without mutating them. Raises as `Target.check` does."""
        for data in sorted(inputs, key=len):
            self._run(data)

    def fuzz(self, seconds: float) -> None:
        """Run mutated inputs for so many seconds of the processor. Raises as `Target.check` does."""
        end = time.process_time() + seconds
        while time.process_time() < end:
            for _ in range(16):
                data = self._rng.choice(self.corpus) if self.corpus else b""
                self._run(mutated(data, self.corpus, self._target.words, self._rng))

    def _run(self, data: bytes) -> None:
        self._before(data)
        self.runs += 1
        for sensor in self._sensors:
            sensor.start()
        try:
            self._target.check(data)
        finally:
            reached = [sensor.stop() for sensor in self._sensors]
        if any(reached):
            self.corpus.append(data)
