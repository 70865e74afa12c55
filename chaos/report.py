"""The report of a run, as JSON and as a Markdown table."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from .children import End
from .oracle import Verdict

__all__ = ["Report", "insert"]

BEGIN: Final = "<!-- the newest run begins -->"
END: Final = "<!-- the newest run ends -->"


@dataclass
class Report:
    """A run and its verdicts.

    Attributes:
        seed: The seed of its faults.
        seconds: How long faults were injected.
        revision: The revision of the sources.
        reads: How the query read the journal.
        kills: The number of processes killed with SIGKILL.
        starts: How often each process was started.
        log: The faults.
        verdicts: The result for each source.
        stuck: The processes that did not finish after the last fault.
        ends: How processes ended.
        complaints: Messages for other problems.

    """

    seed: int
    seconds: float
    revision: str
    reads: str = ""
    kills: int = 0
    starts: dict[str, int] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether all guarantees were kept."""
        fine = not (self.stuck or self.complaints)
        return fine and bool(self.verdicts) and all(verdict.sound for verdict in self.verdicts)

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1))

    def table(self) -> str:
        """Return the run as Markdown."""
        faults = Counter(fault["kind"] for fault in self.log)
        total = sum(verdict.rows for verdict in self.verdicts)
        lines = [
            f"Seed {self.seed}, revision {self.revision}, journal {self.reads}: {total:,} items and "
            f"{self.kills:,} kills in {self.seconds / 60:.0f} minutes.",
            "",
            "| source | items | runs | gaps | lost | doubled | out of order | unexplained gaps |",
            "|---|---|---|---|---|---|---|---|",
            *map(_row, self.verdicts),
            "",
            "| fault | times |",
            "|---|---|",
            *(f"| {kind} | {times:,} |" for kind, times in faults.most_common()),
        ]
        problems = [f"* {verdict.source}: {text}" for verdict in self.verdicts for text in verdict.problems]
        problems += [f"* {name} did not finish" for name in self.stuck]
        problems += [f"* {text}" for text in self.complaints]
        return "\n".join(lines + (["", *problems] if problems else [])) + "\n"


def _row(verdict: Verdict) -> str:
    numbers = (
        verdict.rows,
        verdict.runs,
        verdict.gaps,
        verdict.lost,
        verdict.doubled,
        verdict.disordered,
        verdict.unexplained,
    )
    return f"| {verdict.source} | " + " | ".join(f"{number:,}" for number in numbers) + " |"


def insert(page: Path, table: str) -> None:
    """Replace the table of the previous run in a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{table}\n{END}{after}")
