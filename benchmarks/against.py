"""The working tree next to a revision: the same cases by both, in turns, each in processes of its own.

A round starts fresh processes of both trees, since a process keeps its luck with memory and hashes for life, and runs
each case twice by each, in the order BAAB or ABBA. It gives one ratio. The code of the benchmarks is the working tree's
for both: a case may use what is public in both, and nothing else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from statistics import mean

from . import trees
from .processes import ROOT, Variant, Worker
from .ratios import Ratio, Verdict, compared, order, worst
from .rounds import FIRST_COUNT, Runner

__all__ = ["BUILDS", "CASES", "Case", "Comparison", "against", "choose", "measure", "merged", "run_round", "table"]

CACHE = ROOT / "build" / "against"
"""Revisions, compiled: each is compared with many times."""
BUILDS = ("compiled", "plain")
MEASURES = ("time", "client", "server")
"""Seconds that pass, and seconds of CPU that each process uses."""
CALLS_STEP = 1024


@dataclass(frozen=True)
class Case:
    """What is measured.

    Attributes:
        title: For people.
        unit: What is counted.
        peer: The module below `peers`; the cases of one share its processes in a round.
        method: That of its client.
        more: What it takes beside the count.
        step: Counts are multiples of it.

    """

    title: str
    unit: str
    peer: str
    method: str = "calls"
    more: tuple[int, ...] = ()
    step: int = CALLS_STEP


CASES = {
    "calls-1": Case("calls, 1 in flight", "calls", "ours", more=(1,)),
    "calls-64": Case("calls, 64 in flight", "calls", "ours", more=(64,)),
    "calls-1024": Case("calls, 1,024 in flight", "calls", "ours", more=(1024,)),
    "items": Case("a stream, item by item", "items", "ours", "items", step=FIRST_COUNT),
    "columns": Case("columns out (server) and in (client)", "rows", "ours", "rows", step=FIRST_COUNT),
    "river-json": Case("calls by River in JSON, 64 in flight", "calls", "ours_river_json", more=(64,)),
    "river-msgpack": Case("calls by River in MessagePack, 64 in flight", "calls", "ours_river", more=(64,)),
    "v00": Case("calls by ReactiveSocket 0.0, 64 in flight", "calls", "ours_v00", more=(64,)),
    "collect": Case("collecting a stream, to fsync", "rows", "ours_collector", "collect", step=FIRST_COUNT),
}


@dataclass
class Comparison:
    """A case on one build, and what it took in each round.

    Attributes:
        name: The case.
        build: "compiled" or "plain".
        count: Operations of a run; 0: nobody has chosen it yet.
        before: By measure, the seconds of an operation in each round.
        after: The same, of the working tree.
        first: What was found at first, where all of this was measured again.

    """

    name: str
    build: str
    count: int = 0
    before: dict[str, list[float]] = field(default_factory=lambda: {measure: [] for measure in MEASURES})
    after: dict[str, list[float]] = field(default_factory=lambda: {measure: [] for measure in MEASURES})
    first: Comparison | None = None

    @property
    def case(self) -> Case:
        """What was measured."""
        return CASES[self.name]

    def ratios(self) -> dict[str, Ratio]:
        """Return the ratio of each measure."""
        return {measure: compared(self.before[measure], self.after[measure]) for measure in MEASURES}

    @property
    def verdict(self) -> Verdict:
        """What they mean together. Who was slower at first and is not again was so by chance."""
        return worst([ratio.verdict for ratio in self.ratios().values()])

    def __str__(self) -> str:
        ratios = "".join(f"{ratio!s:>20}" for ratio in self.ratios().values())
        return f"  {self.name:15}{ratios}  {self.verdict}{', measured again' if self.first else ''}"

    def as_object(self) -> dict[str, object]:
        """Return it as JSON has it."""
        told: dict[str, object] = {"scenario": self.name, "title": self.case.title, "unit": self.case.unit}
        told |= {"build": self.build, "count": self.count, "verdict": str(self.verdict)}
        told["ratios"] = {measure: asdict(ratio) for measure, ratio in self.ratios().items()}
        told |= {"before": self.before, "after": self.after}
        return told | ({"first": self.first.as_object()} if self.first else {})


def choose(names: Sequence[str], builds: str) -> list[Comparison]:
    """Return what to compare: these cases, or all, on one build or on "both"."""
    chosen = [name for name in CASES if name in names] if names else list(CASES)
    return [Comparison(name, build) for build in BUILDS if builds in (build, "both") for name in chosen]


def against(
    name: str, wanted: list[Comparison], seconds: float, rounds: int
) -> tuple[list[Comparison], dict[str, str]]:
    """Compare the working tree with a revision and print the tables.

    What is slower is measured again from the start: chance does not strike the same case twice.

    Returns:
        What was found, and what was compared.

    """
    builds = {one.build for one in wanted}
    with tempfile.TemporaryDirectory(prefix="penstock-against-") as folder:
        CACHE.mkdir(parents=True, exist_ok=True)
        before = trees.revision(name, CACHE)
        if "compiled" in builds:
            trees.build(before.folder)
            trees.build(ROOT)
        after = trees.working(Path(folder))
        for tree in (before, after):
            for build in builds:
                trees.check(tree, build == "plain")
        print(f"before: {before.name}, after: {after.name}; ratios after/before, above 1 is slower", flush=True)
        measure(wanted, before, after, seconds, rounds)
        print(table(wanted), flush=True)
        again = [Comparison(one.name, one.build, one.count) for one in wanted if one.verdict is Verdict.SLOWER]
        if again:
            print("\nwhat is slower, measured again", flush=True)
            measure(again, before, after, seconds, rounds)
            wanted = merged(wanted, again)
            print(table(one for one in wanted if one.first), flush=True)
    return wanted, {"before": before.name, "after": after.name}


def merged(first: Iterable[Comparison], again: Iterable[Comparison]) -> list[Comparison]:
    """Put what was measured again in the place of what it was at first."""
    second = {(one.build, one.name): one for one in again}
    done = []
    for one in first:
        other = second.get((one.build, one.name))
        if other is not None:
            other.first = one
        done.append(other or one)
    return done


def table(comparisons: Iterable[Comparison]) -> str:
    """Return a table for people."""
    lines = []
    for build, group in groupby(comparisons, key=lambda one: one.build):
        lines.append(f"\n{build:17}{'time':>20}{'client CPU':>20}{'server CPU':>20}")
        lines += map(str, group)
    return "\n".join(lines)


def measure(
    comparisons: Sequence[Comparison], before: trees.Tree, after: trees.Tree, seconds: float, rounds: int
) -> None:
    """Run all of them, `rounds` times."""
    for turn in range(rounds):
        for (build, peer), group in groupby(comparisons, key=lambda one: (one.build, one.case.peer)):
            with ExitStack() as stack:
                pairs = []
                for tree in (before, after):
                    variant = Variant(tree.name, peer, plain=build == "plain", source=tree.source)
                    server = stack.enter_context(Worker(variant))
                    pairs.append((variant, stack.enter_context(Worker(variant, server.ready)), server))
                for one in group:
                    case = one.case
                    old, new = (Runner(*pair, case.method, case.more, case.step, case.step) for pair in pairs)
                    run_round(one, old, new, turn, seconds)


def run_round(one: Comparison, old: Runner, new: Runner, turn: int, seconds: float) -> None:
    """Run one round of a case by the revision and by the working tree, and keep what an operation took."""
    if not one.count:
        # Both are warm then: the first round counts like the others.
        for runner in (new, old):
            runner.prepare(seconds)
        one.count = old.count
    for runner in (old, new):
        runner.count = one.count
        runner.warm_up()
    for who in order(turn):
        (old if who == "B" else new).measure()
    for runner, kept in ((old, one.before), (new, one.after)):
        kept["time"].append(mean(1 / rate for rate in runner.rates))
        kept["client"].append(mean(runner.client_us) / 1e6)
        kept["server"].append(mean(runner.server_us) / 1e6)
