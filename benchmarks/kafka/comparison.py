"""Runs the chains in turns: ours twice, item by item and with record batches."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
from interop.peers import PeerMissing

from ..report import Result
from ..usage import is_supported
from .chains import Chain, kafka, weirpool
from .cold import cold
from .costs import Costs, Measured, Step, timed
from .delays import Delay, Delays, event_delays, floor_delays
from .programs import Programs, built

__all__ = ["measure"]

ROWS = 4_000_000
ROWS_PER_BATCH = 1_000_000
WARM_ROUNDS = 2
"""Rounds that are not measured: the Java processes compile their code meanwhile."""


def measure(rounds: int) -> Iterator[Result]:
    """Yield the tables of all chains; yield nothing, and say why, if they cannot run here."""
    try:
        if not is_supported():
            raise PeerMissing("the CPU time of processes is read from /proc, which only Linux has")
        programs = built()
    except PeerMissing as error:
        print(f"skipped kafka: {error}", file=sys.stderr)
        return
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weirpool-bench-")))
        ours = stack.enter_context(weirpool(scratch))
        theirs = stack.enter_context(kafka(programs, scratch))
        costs = costs_of([ours, ours.with_columns(), theirs], rounds, about(programs), scratch)
        yield from costs.tables()
        yield costs
        yield delays_of([ours, theirs], scratch)
        yield cold(ours, theirs, programs, rounds, scratch)


def about(programs: Programs) -> dict[str, object]:
    """Return the versions that are compared."""
    return {
        "Kafka": programs.version("kafka-clients"),
        "its Spark": programs.version("spark-core_2.13"),
        "our Spark": pyspark.__version__,
    }


def costs_of(chains: list[Chain], rounds: int, versions: dict[str, object], scratch: Path) -> Costs:
    """Run all steps of all chains in turns, first without measuring, then in each round."""
    measured = [Measured(chain.name, ROWS) for chain in chains]
    pairs = list(zip(chains, measured, strict=True))
    for turn in range(WARM_ROUNDS):
        for chain in chains:
            run(chain, Measured(chain.name, ROWS), f"warm-{turn}", scratch)
    for turn in range(rounds):
        # Every second round is reversed, so that aftereffects of a chain do not always affect the same one.
        for chain, results in pairs[:: -1 if turn % 2 else 1]:
            run(chain, results, f"round-{turn}", scratch)
    return Costs(measured, versions)


def run(chain: Chain, results: Measured, log: str, scratch: Path) -> None:
    """Run all steps of a chain through new logs, and store the results."""
    pids = chain.pids()
    chain.create(log)
    steps = {
        "publish": lambda: chain.publish(log, ROWS),
        "batch": lambda: chain.spark.ask("batch", log),
        "stream": lambda: chain.spark.ask("stream", log, str(ROWS_PER_BATCH)),
    }
    for name, step in steps.items():
        results.steps[name].append(timed(pids, step))
    chain.delete(log)
    results.steps["live"].append(live(chain, f"{log}-live", scratch / f"{chain.name}-{log}-live"))


def live(chain: Chain, log: str, checkpoint: Path) -> Step:
    """Measure rows on their way to a query that is running."""

    def pass_rows() -> None:
        chain.publish(log, ROWS)
        chain.spark.ask("settle")

    chain.create(log)
    chain.spark.ask("start", log, str(ROWS_PER_BATCH), str(checkpoint))
    # The query has started when it has read what there is.
    chain.spark.ask("settle")
    step = timed(chain.pids(), pass_rows)
    chain.spark.ask("stop")
    chain.delete(log)
    return step


def delays_of(chains: list[Chain], scratch: Path) -> Delays:
    """Return the delays of events on all chains, and the floor of each one's Spark."""
    rows = [Delay(chain.name, event_delays(chain, "events", scratch / f"events-{chain.name}")) for chain in chains]
    floors = [
        Delay(f"Spark's own rows, as {chain.name} runs it", floor_delays(chain, scratch / f"floor-{chain.name}"))
        for chain in chains
    ]
    return Delays(rows + floors)
