"""Compares the working tree with a revision: both run the same cases in turns, in separate processes.

Each round starts new processes of both trees, because memory layout and hashes affect the speed of a process. It runs
each case twice in each tree, in the order BAAB or ABBA, which gives one ratio. Both trees run the benchmarks of the
working tree, so a case may use only what is public in both.
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
"""Compiled revisions, kept for later comparisons."""
BUILDS = ("compiled", "plain")
MEASURES = ("time", "client", "server")
"""Elapsed seconds, and CPU seconds of each process."""
CALLS_STEP = 1024


@dataclass(frozen=True)
class Case:
    """A case to measure.

    Attributes:
        title: Its title in tables.
        unit: The unit of its count.
        peer: The module in `peers`. Cases with the same module share its processes in a round.
        method: The method of its client.
        more: The method's arguments after the count.
        step: Counts are multiples of this number.

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
    """The measurements of a case on one build.

    Attributes:
        name: The name of the case.
        build: "compiled" or "plain".
        count: Operations per run; 0 until it is chosen.
        before: For each measure, the seconds per operation of the revision in each round.
        after: The same for the working tree.
        first: The first result, if this is a second measurement.

    """

    name: str
    build: str
    count: int = 0
    before: dict[str, list[float]] = field(default_factory=lambda: {measure: [] for measure in MEASURES})
    after: dict[str, list[float]] = field(default_factory=lambda: {measure: [] for measure in MEASURES})
    first: Comparison | None = None

    @property
    def case(self) -> Case:
        """The case."""
        return CASES[self.name]

    def ratios(self) -> dict[str, Ratio]:
        """Return the ratio of each measure."""
        return {measure: compared(self.before[measure], self.after[measure]) for measure in MEASURES}

    @property
    def verdict(self) -> Verdict:
        """The verdict of all ratios. A second measurement replaces the first."""
        return worst([ratio.verdict for ratio in self.ratios().values()])

    def __str__(self) -> str:
        ratios = "".join(f"{ratio!s:>20}" for ratio in self.ratios().values())
        return f"  {self.name:15}{ratios}  {self.verdict}{', measured again' if self.first else ''}"

    def as_object(self) -> dict[str, object]:
        """Return the comparison as a JSON object."""
        fields: dict[str, object] = {"scenario": self.name, "title": self.case.title, "unit": self.case.unit}
        fields |= {"build": self.build, "count": self.count, "verdict": str(self.verdict)}
        fields["ratios"] = {measure: asdict(ratio) for measure, ratio in self.ratios().items()}
        fields |= {"before": self.before, "after": self.after}
        return fields | ({"first": self.first.as_object()} if self.first else {})


def choose(names: Sequence[str], builds: str) -> list[Comparison]:
    """Return the comparisons of these cases, or of all if there are none, on one build or on "both"."""
    chosen = [name for name in CASES if name in names] if names else list(CASES)
    return [Comparison(name, build) for build in BUILDS if builds in (build, "both") for name in chosen]


def against(
    name: str, wanted: list[Comparison], seconds: float, rounds: int
) -> tuple[list[Comparison], dict[str, str]]:
    """Compare the working tree with a revision and print the tables.

    Cases that are slower are measured again, to rule out chance.

    Returns:
        The comparisons, and the names of both trees.

    """
    builds = {one.build for one in wanted}
    with tempfile.TemporaryDirectory(prefix="weirpool-against-") as folder:
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
            print("\nslower cases, measured again", flush=True)
            measure(again, before, after, seconds, rounds)
            wanted = merged(wanted, again)
            print(table(one for one in wanted if one.first), flush=True)
    return wanted, {"before": before.name, "after": after.name}


def merged(first: Iterable[Comparison], again: Iterable[Comparison]) -> list[Comparison]:
    """Replace comparisons by their second measurements."""
    second = {(one.build, one.name): one for one in again}
    done = []
    for one in first:
        other = second.get((one.build, one.name))
        if other is not None:
            other.first = one
        done.append(other or one)
    return done


def table(comparisons: Iterable[Comparison]) -> str:
    """Return the comparisons as a table."""
    lines = []
    for build, group in groupby(comparisons, key=lambda one: one.build):
        lines.append(f"\n{build:17}{'time':>20}{'client CPU':>20}{'server CPU':>20}")
        lines += map(str, group)
    return "\n".join(lines)


def measure(
    comparisons: Sequence[Comparison], before: trees.Tree, after: trees.Tree, seconds: float, rounds: int
) -> None:
    """Measure all comparisons in `rounds` rounds."""
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
    """Run one round of a case in both trees, and store the times per operation."""
    if not one.count:
        # This also warms up both trees, so that the first round counts like the others.
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
