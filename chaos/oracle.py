"""The oracle: finds lost, duplicated, disordered and unexplained items in the table, the logs and the gaps.

It does not depend on how the pipeline works, only on three facts. Each run of a publisher's handler publishes the items
0, 1, 2, and so on, each once, and runs have increasing numbers. Missing items must be recorded as a gap. A gap must
have a cause; see `chaos.causes`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weirpool.errors import JournalError
from weirpool.journal import Gap, Journal

from .causes import Facts, unexplained
from .items import runs_and_numbers
from .sources import SOURCES, Source

__all__ = ["Verdict", "committed_files", "judge", "judge_source"]


@dataclass
class Verdict:
    """The result for one source.

    Attributes:
        source: Its name.
        rows: The number of rows in the table.
        runs: The number of runs with rows.
        gaps: The number of recorded gaps.
        lost: Missing items that are not recorded as a gap.
        doubled: Duplicate items.
        disordered: Items after a later item of the same run, or after a later run.
        unexplained: Gaps without a cause.
        problems: Messages for these and for all other problems.

    """

    source: str
    rows: int = 0
    runs: int = 0
    gaps: int = 0
    lost: int = 0
    doubled: int = 0
    disordered: int = 0
    unexplained: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether all guarantees were kept."""
        return not (self.lost or self.doubled or self.disordered or self.unexplained or self.problems)


def judge(folder: Path, facts: Facts) -> list[Verdict]:
    """Check the results of a run, as far as they exist.

    Args:
        folder: The folder of the run.
        facts: The faults, and how processes ended.

    """
    try:
        table = pq.read_table(committed_files(folder / "parquet"), columns=["source", "position", "data"])
        shown = json.loads((folder / "gaps.json").read_text())
    except OSError as error:
        return [Verdict(source.name, problems=[f"the query left no results: {error}"]) for source in SOURCES]
    return [_judge(source, folder, table, shown, facts) for source in SOURCES]


def _judge(source: Source, folder: Path, table: pa.Table, shown: list[tuple[str, int, str]], facts: Facts) -> Verdict:
    mine = table.filter(pc.equal(table["source"].cast(pa.string()), source.name)).sort_by("position")
    try:
        journal = Journal(folder / "journal")
        report = journal.verify([source.name])[source.name]
        reader = journal.reader(source.name)
        gaps = reader.gaps(0)
    except JournalError as error:
        return Verdict(source.name, problems=[f"the log cannot be read: {error}"])
    begun = [run for (run,) in _numbers(folder / f"{source.name}.begun")]
    ended = {run: made for run, made in _numbers(folder / f"{source.name}.ended")}
    facts = replace(facts, begun=begun, ended=ended)
    verdict = judge_source(source, mine["position"].to_numpy(), mine["data"], gaps, facts)
    verdict.problems += report.problems
    if report.end != mine.num_rows:
        verdict.problems.append(f"the log ends at {report.end}, and the table has {mine.num_rows} rows")
    kept = pa.Table.from_batches(reader.read(reader.first, reader.end))["data"] if reader.end > reader.first else None
    if kept is not None and not kept.combine_chunks().equals(mine["data"].slice(reader.first).combine_chunks()):
        verdict.problems.append("the table and the log differ")
    recorded = sorted([source.name, gap.position, gap.reason] for gap in gaps)
    if recorded != [row for row in map(list, shown) if row[0] == source.name]:
        verdict.problems.append("the gaps in Spark differ from those of the log")
    return verdict


def judge_source(
    source: Source, positions: np.ndarray, data: pa.ChunkedArray, gaps: list[Gap], facts: Facts
) -> Verdict:
    """Check the rows of one source.

    Args:
        source: The source.
        positions: The positions of its rows, in order.
        data: The items of its rows.
        gaps: The recorded gaps.
        facts: The other facts.

    """
    verdict = Verdict(source.name, rows=len(positions), gaps=len(gaps))
    if not len(positions):
        verdict.problems.append("there are no rows to check")
        return verdict
    if (positions != np.arange(len(positions))).any():
        verdict.problems.append("positions are missing or duplicated")
    runs, numbers = runs_and_numbers(data)
    keys = runs * 10**11 + numbers
    verdict.doubled = len(keys) - len(np.unique(keys))
    verdict.disordered = int((np.diff(keys) < 0).sum())
    begins = np.flatnonzero(np.diff(runs, prepend=-1))
    verdict.runs = len(begins)
    places = {gap.position for gap in gaps}
    _look_for_losses(verdict, runs, numbers, begins, places)
    _look_at_the_ends(verdict, runs, numbers, places, facts)
    causeless = unexplained(source, runs, gaps, facts)
    verdict.unexplained = len(causeless)
    verdict.problems += causeless
    return verdict


def _look_for_losses(
    verdict: Verdict, runs: np.ndarray, numbers: np.ndarray, begins: np.ndarray, gaps: set[int]
) -> None:
    """Count lost items. Items may be missing only between two runs, and only with a gap."""
    ends = [*begins[1:], len(runs)]
    for begin, end in zip(begins, ends, strict=True):
        mine = numbers[begin:end]
        # A run starts at 0. A gap between runs does not explain items missing at the start of a run or within it.
        verdict.lost += int(mine[0]) + int((np.diff(mine) - 1).clip(0).sum())
        if end < len(runs) and end not in gaps:
            verdict.lost += 1
            verdict.problems.append(f"run {runs[begin]} is followed by run {runs[end]} at {end} without a gap")


def _look_at_the_ends(verdict: Verdict, runs: np.ndarray, numbers: np.ndarray, gaps: set[int], facts: Facts) -> None:
    """Count lost items before the first row and after the last one."""
    if min(facts.begun, default=runs[0]) < runs[0] and 0 not in gaps:
        verdict.lost += 1
        verdict.problems.append(f"run {min(facts.begun)} has no rows, and there is no gap before run {runs[0]}")
    last, final = int(runs[-1]), max(facts.ended, default=-1)
    made = facts.ended.get(final, 0)
    if final < last:
        verdict.problems.append(f"the last run, {last}, never ended")
    elif final == last:
        verdict.lost += made - 1 - int(numbers[-1])
    else:
        # The last run has no rows.
        verdict.lost += made
        if len(runs) not in gaps:
            verdict.lost += 1
            verdict.problems.append(f"run {last} is followed by run {final} at the end without a gap")


def committed_files(folder: Path) -> list[Path]:
    """Return the files of a table that Spark has committed, according to its log in the folder."""
    log = folder / "_spark_metadata"
    batches = {int(path.name.removesuffix(".compact")): path for path in log.iterdir() if path.name[0].isdigit()}
    compacted = max((number for number, path in batches.items() if path.suffix == ".compact"), default=-1)
    lines = [
        line
        for number, path in sorted(batches.items())
        if number >= compacted
        for line in path.read_text().splitlines()[1:]
    ]
    return [folder / Path(json.loads(line)["path"]).name for line in lines]


def _numbers(path: Path) -> list[list[int]]:
    lines = path.read_text().splitlines() if path.exists() else []
    return [[int(word) for word in line.split()] for line in lines]
