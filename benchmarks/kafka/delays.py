"""The time from an event to its commit in Spark's Parquet sink, on both chains and with Spark's own source of rows.

The sink lists the files of each micro-batch in its log, `_spark_metadata`. An event is there for readers when the file
of its batch appears, which the file system dates: nothing has to watch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq

from ..fairness import percentile
from .chains import Chain

__all__ = ["Delay", "Delays", "delays", "event_delays", "floor_delays"]

EVENTS = 30
WARM_EVENTS = 5
"""The first micro-batches compile code, and are not counted."""
INTERVAL_MS = 500
"""Milliseconds between events: each has a micro-batch of its own."""
LIMIT_SECONDS = 60.0
POLL_SECONDS = 0.1


@dataclass
class Delay:
    """The seconds that events took on one way."""

    name: str
    seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        found = sorted(self.seconds)
        columns = "".join(f"{1e3 * each:12.0f}" for each in (median(found), percentile(found, 0.9), found[-1]))
        return f"  {self.name:34}{columns}{len(found):12}"


@dataclass
class Delays:
    """The delays of all ways. The first one is ours."""

    rows: list[Delay]

    def __str__(self) -> str:
        head = f"  {'':34}{'p50 ms':>12}{'p90 ms':>12}{'longest ms':>12}{'events':>12}"
        return "\n".join(["from an event to Spark's Parquet sink (kafka-delay)", head, *map(str, self.rows)])

    def as_object(self) -> dict[str, object]:
        """Return the delays as a JSON object."""
        return {"scenario": "kafka-delay", "unit": "s", "rows": [vars(row) for row in self.rows]}


def event_delays(chain: Chain, log: str, folder: Path) -> list[float]:
    """Return the seconds from each event, through a new log, to the sink in `folder`."""
    count = WARM_EVENTS + EVENTS
    chain.create(log)
    chain.spark.ask("follow", log, str(folder))
    # No event waits for the start of the query.
    chain.spark.ask("settle")
    chain.events(log, count, INTERVAL_MS)
    return _stopped(chain, folder, count)


def floor_delays(chain: Chain, folder: Path) -> list[float]:
    """Return the same for rows that Spark itself makes: no source can be faster."""
    chain.spark.ask("floor", str(folder))
    return _stopped(chain, folder, WARM_EVENTS + EVENTS)


def _stopped(chain: Chain, folder: Path, count: int) -> list[float]:
    """Wait for the events, stop the query, and return the delays of those that count."""
    end = time.monotonic() + LIMIT_SECONDS
    while len(found := delays(folder)) < count:
        if time.monotonic() > end:
            raise SystemExit(f"benchmarks: {len(found)} of {count} events came through {chain.name} within the limit")
        time.sleep(POLL_SECONDS)
    chain.spark.ask("stop")
    return found[WARM_EVENTS:count]


def delays(folder: Path) -> list[float]:
    """Return the seconds from each event to its commit, in the order of micro-batches."""
    return [
        committed - event / 1e6
        for path, committed in _files(folder)
        for event in pq.ParquetFile(path).read(columns=["event"])["event"].to_pylist()
    ]


def _files(folder: Path) -> Iterator[tuple[Path, float]]:
    """Yield the files of the sink, and the time at which each was committed."""
    known = set()
    log = folder / "_spark_metadata"
    batches = [entry for entry in log.glob("[0-9]*") if entry.suffix in ("", ".compact")] if log.exists() else []
    for entry in sorted(batches, key=lambda entry: int(entry.stem)):
        # Renaming it into place changed its status, and nothing does afterwards.
        committed = entry.stat().st_ctime
        # The first line is the version. A compacted entry begins with all that came before it.
        for line in entry.read_text().splitlines()[1:]:
            path = Path(unquote(urlsplit(json.loads(line)["path"]).path))
            if path not in known:
                known.add(path)
                yield path, committed
