"""The results as tables and as JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import weirpool

RESULTS = Path(__file__).parent / "results"


@dataclass
class Row:
    """The result of one implementation in one scenario: medians of all rounds."""

    name: str
    rate: float
    """Operations per second."""
    client_us: float | None = None
    """CPU microseconds per operation in the client's process."""
    server_us: float | None = None


@dataclass
class Table:
    """The results of a scenario. The first row is ours; the others are compared with it."""

    name: str
    title: str
    unit: str
    rows: list[Row]

    def ratio(self, row: Row) -> float:
        """Return how many times faster ours is."""
        return self.rows[0].rate / row.rate

    def __str__(self) -> str:
        lines = [
            f"{self.title} ({self.name})",
            f"  {'':28}{self.unit + '/s':>14}{'ns each':>11}{'client µs':>11}{'server µs':>11}{'ours is':>10}",
        ]
        for row in self.rows:
            client, server = ("" if us is None else f"{us:.2f}" for us in (row.client_us, row.server_us))
            ratio = "" if row is self.rows[0] else f"{self.ratio(row):.2f} x"
            lines.append(f"  {row.name:28}{row.rate:14,.0f}{1e9 / row.rate:11,.0f}{client:>11}{server:>11}{ratio:>10}")
        return "\n".join(lines)

    def as_object(self) -> dict[str, object]:
        """Return the table as a JSON object."""
        rows = [asdict(row) | {"ours_is": self.ratio(row)} for row in self.rows]
        return {"scenario": self.name, "title": self.title, "unit": self.unit, "rows": rows}


class Result(Protocol):
    """A result that can be saved."""

    def as_object(self) -> dict[str, object]:
        """Return the result as a JSON object."""


def about() -> dict[str, object]:
    """Return the time, the versions and the machine of this run."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "weirpool": weirpool.__version__,
        "accelerated": weirpool.ACCELERATED,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def save(results: Sequence[Result], **more: object) -> Path:
    """Write results and `more` to a new file in `results/`, and return its path."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    fields = about() | more | {"results": [result.as_object() for result in results]}
    path.write_text(json.dumps(fields, indent=2) + "\n")
    return path
