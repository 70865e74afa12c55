"""``python -m benchmarks [SCENARIO ...]``: measures, prints tables, and writes results to `benchmarks/results/`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from . import codec, collect, fairness, network, packed, river
from .against import BUILDS, CASES, against, choose
from .ratios import Verdict
from .report import Result, about, save

SPARK = ("spark", "steps", "kafka")


def tables(scenarios: list[str], seconds: float, rounds: int) -> Iterator[Result]:
    """Yield a table for each scenario as it completes."""
    for module in (codec, network, packed, river, fairness, collect):
        chosen = [name for name in module.SCENARIOS if name in scenarios]
        if chosen:
            yield from module.measure(chosen, seconds, rounds)
    if "spark" in scenarios:
        from . import journal_to_spark

        yield from journal_to_spark.measure(rounds)
    if "steps" in scenarios:
        from . import steps

        yield from steps.measure(rounds)
    if "kafka" in scenarios:
        from .kafka import comparison

        yield from comparison.measure(rounds)


def parsed(line: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse a command line, by default that of this process."""
    everything = (
        *codec.SCENARIOS,
        *network.SCENARIOS,
        *packed.SCENARIOS,
        *river.SCENARIOS,
        *fairness.SCENARIOS,
        *collect.SCENARIOS,
        *SPARK,
    )
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare with other implementations.")
    parser.add_argument("scenario", nargs="*", help=f"the scenarios to run (default: all of {', '.join(everything)})")
    parser.add_argument("--seconds", type=float, default=0.5, help="duration of a peer's turn (default: 0.5)")
    parser.add_argument("--rounds", type=int, help="number of rounds (default: 7; with --against 11)")
    parser.add_argument(
        "--against",
        metavar="REVISION",
        help="compare the working tree with this revision instead, and exit with 1 if it is more than 3 %% slower; "
        f"the scenarios are {', '.join(CASES)}",
    )
    parser.add_argument("--build", choices=(*BUILDS, "both"), default="both", help="with --against (default: both)")
    arguments = parser.parse_args(line)
    known = everything if arguments.against is None else tuple(CASES)
    unknown = set(arguments.scenario) - set(known)
    if unknown:
        parser.error(f"unknown scenario: {', '.join(sorted(unknown))}; use one of: {', '.join(known)}")
    if not arguments.scenario:
        arguments.scenario = list(known)
    if arguments.rounds is None:
        arguments.rounds = 7 if arguments.against is None else 11
    return arguments


def compare(arguments: argparse.Namespace) -> int:
    """Compare the working tree with a revision, and return 1 if it is slower."""
    wanted = choose(arguments.scenario, arguments.build)
    found, trees = against(arguments.against, wanted, arguments.seconds, arguments.rounds)
    print(f"\nresults written to {save(found, against=trees)}")
    for verdict in (Verdict.UNSURE, Verdict.SLOWER):
        named = [f"{one.name} ({one.build})" for one in found if one.verdict is verdict]
        if named:
            print(f"{verdict}: {', '.join(named)}")
    return int(any(one.verdict is Verdict.SLOWER for one in found))


def main() -> int:
    """Run the command, and return the exit code."""
    arguments = parsed()
    print(", ".join(f"{name} {value}" for name, value in about().items()))
    if arguments.against is not None:
        return compare(arguments)
    done: list[Result] = []
    for table in tables(arguments.scenario, arguments.seconds, arguments.rounds):
        print(f"\n{table}", flush=True)
        done.append(table)
    print(f"\nresults written to {save(done)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
