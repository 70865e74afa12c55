"""Calls and streams over loopback between two processes, with payloads of 128 bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from .processes import Variant, Worker
from .report import Table
from .rounds import Runner, in_turns

OURS = Variant("Weirpool", "ours")
ASYNCIO = Variant("Weirpool, asyncio's loop", "ours", loop="asyncio")
PLAIN = Variant("Weirpool, plain build", "ours", plain=True)
RSOCKET_PY = Variant("rsocket-py", "rsocket_py", loop="asyncio")
RSOCKET_PY_TUNED = Variant("rsocket-py, uvloop, 64 KiB", "rsocket_py")
FLIGHT = Variant("Arrow Flight", "flight", loop="asyncio")

OURSELVES = (OURS, ASYNCIO, PLAIN)
RSOCKET_PYS = (RSOCKET_PY, RSOCKET_PY_TUNED)

CALLS = {f"calls-{in_flight}": in_flight for in_flight in (1, 64, 1024)}
SCENARIOS = (*CALLS, "items", "rows")


class Pairs:
    """A server and a client of each peer, running while the block lasts."""

    def __enter__(self) -> Pairs:
        with ExitStack() as stack:
            self.pairs: dict[Variant, tuple[Worker, Worker]] = {}
            for variant in (*OURSELVES, *RSOCKET_PYS, FLIGHT):
                server = stack.enter_context(Worker(variant))
                self.pairs[variant] = stack.enter_context(Worker(variant, server.ready)), server
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def runners(self, variants: tuple[Variant, ...], method: str, *more: int) -> list[Runner]:
        """Return runners of these peers for one scenario."""
        return [Runner(variant, *self.pairs[variant], method, more) for variant in variants]

    def scenario(self, name: str) -> tuple[str, str, list[Runner]]:
        """Return a scenario's title, its unit and its runners, Weirpool's first."""
        if name == "items":
            return "a stream, item by item", "items", self.runners((*OURSELVES, *RSOCKET_PYS), "items")
        if name == "rows":
            # rsocket-py has no batches, so its items are compared instead.
            others = self.runners((FLIGHT,), "rows") + self.runners(RSOCKET_PYS, "items")
            return "a stream, in record batches", "rows", self.runners(OURSELVES, "rows") + others
        in_flight = CALLS[name]
        runners = self.runners((*OURSELVES, *RSOCKET_PYS), "calls", in_flight)
        return f"calls, {in_flight} in flight", "calls", runners


def measure(scenarios: list[str], seconds: float, rounds: int) -> Iterator[Table]:
    """Run `scenarios` with all peers, and yield a table for each as it completes."""
    with Pairs() as pairs:
        for name in scenarios:
            title, unit, runners = pairs.scenario(name)
            yield Table(name, title, unit, in_turns(runners, seconds, rounds))
