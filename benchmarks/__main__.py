"""``python -m benchmarks [SCENARIO ...]``: measure, print tables, and keep the numbers in `benchmarks/results/`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from . import codec, network, packed, river
from .report import Table, about, save

SPARK = ("spark",)


def tables(scenarios: list[str], seconds: float, rounds: int) -> Iterator[Table]:
    """Give a table for each scenario, as it is done."""
    for module in (codec, network, packed, river):
        chosen = [name for name in module.SCENARIOS if name in scenarios]
        if chosen:
            yield from module.measure(chosen, seconds, rounds)
    if "spark" in scenarios:
        from . import journal_to_spark

        yield from journal_to_spark.measure(rounds)


def main() -> int:
    everything = (*codec.SCENARIOS, *network.SCENARIOS, *packed.SCENARIOS, *river.SCENARIOS, *SPARK)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, next to others, in turns.")
    parser.add_argument("scenario", nargs="*", help=f"which ones; without any, all of {', '.join(everything)}")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each peer in each round (default: 0.5)")
    parser.add_argument("--rounds", type=int, default=7, help="of which medians are kept (default: 7)")
    arguments = parser.parse_args()
    unknown = set(arguments.scenario) - set(everything)
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(everything)}")
    print(", ".join(f"{name} {value}" for name, value in about().items()))
    done: list[Table] = []
    for table in tables(arguments.scenario or list(everything), arguments.seconds, arguments.rounds):
        print(f"\n{table}", flush=True)
        done.append(table)
    print(f"\nthe numbers are in {save(done)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
