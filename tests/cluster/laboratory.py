"""The laboratory: what a data engineer builds with the documentation alone, and what must be true of it at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from chaos.causes import Facts
from chaos.oracle import committed_files, judge_source

from tests.transports.certificates import Certificates
from weirpool.errors import JournalError
from weirpool.journal import Journal

from .feeds import FEEDS, Feed, Publisher
from .machine import Machine
from .processes import Program, Stuck, until
from .spark import Cluster

__all__ = ["Laboratory"]

COLUMNS = ["source", "position", "data"]
AUDITS = 2
"""Audits at once."""
IMPATIENCE = "Python worker failed to connect back"
"""How Spark ends a query if Python takes more than ten seconds to start, as it does on a machine that is very busy."""
FEW = 200
"""Rows of each feed that are enough for the next step."""


@dataclass(frozen=True)
class Laboratory:
    """Everything that several runs share.

    Attributes:
        cluster: Spark.
        certificates: By which Spark and collectors know each other.
        folder: An empty folder for this run.
        store: The URI of an empty place in a store.
        saboteur: What is wrong with the code of collectors; empty: nothing.

    """

    cluster: Cluster
    certificates: Certificates
    folder: Path
    store: str
    saboteur: str = ""

    def breaches(self) -> Generator[str, None, None]:
        """Run everything, and yield a sentence for each promise that is broken."""
        publisher = Publisher(self.folder, self.certificates)
        run = _Run(self.cluster.driver, publisher, str(self.folder / "lake"))
        try:
            for name, state in ("one", "live"), ("two", "standby"):
                disk = self.cluster.disks / self.folder.name / name
                run.machines.append(Machine(disk, publisher, self.store, self.saboteur))
                run.machines[-1].start()
                run.machines[-1].await_state(state)
            run.begin()
            try:
                yield from run.through(self.store)
            finally:
                self.cluster.driver.ask("stop")
            yield from self._history(run)
        except Stuck as stuck:
            yield str(stuck)
        finally:
            for machine in run.machines:
                machine.kill()
            publisher.program.kill()

    def _history(self, run: _Run) -> Iterator[str]:
        """Compare what Spark reads from the store with the table."""
        history = f"{run.lake}/history"
        self.cluster.driver.ask("history", journal=self.store, lake=history)
        sealed, table = pq.read_table(history, columns=COLUMNS), run.table()
        for feed in FEEDS:
            mine = _of(sealed, feed)
            end = _sealed_end(self.store, feed)
            if mine.num_rows != end or not mine.equals(_of(table, feed).slice(0, end)):
                yield f"{feed.name}: the {mine.num_rows} sealed rows are not the first {end} rows of the table"


@dataclass
class _Run:
    """One run of all processes."""

    driver: Program
    publisher: Publisher
    lake: str
    machines: list[Machine] = field(default_factory=list)
    owner: int = 0
    """Which machine collects."""
    lost: float = 0.0

    @property
    def machine(self) -> Machine:
        """The machine that collects."""
        return self.machines[self.owner]

    @property
    def url(self) -> str:
        """The URL of the journal, whichever machine collects it."""
        return "|".join(machine.url for machine in self.machines)

    def begin(self) -> None:
        """Start the query, or continue it."""
        self.driver.ask("start", url=self.url, lake=self.lake)

    def through(self, store: str) -> Iterator[str]:
        """Lose the collector's machine in the middle, and let everything end; yield what is wrong then."""
        self._until(lambda: all(_sealed_end(store, feed) for feed in FEEDS), "rows of all feeds are sealed")
        self._until(lambda: self._positions_reach(FEW), "rows of all feeds are in the table")
        before = {name: feed["position"] for name, feed in self.machine.status().items()}
        self.lost = time.time()
        self.machine.lose()
        self.owner = 1
        after = {name: position + FEW for name, position in before.items()}
        self._until(lambda: self._collected(after), "all feeds go on after the collector's machine was lost")
        self.publisher.finish()
        self._until(self._complete, "all feeds are complete, and the table has all rows")
        yield from self._judged()
        with ThreadPoolExecutor(AUDITS) as pool:
            yield from filter(None, pool.map(self.machine.audit, FEEDS))
        if code := self.machine.end():
            yield f"the collector has ended with {code}"

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until something is true; `Stuck` if the query ends before."""

        def true() -> bool:
            error = self.driver.ask("error")
            if error and IMPATIENCE in error:
                self.begin()
            elif error:
                raise Stuck(f"the query has ended before {what}: {error}")
            return condition()

        until(true, f"not yet: {what}; {self.machine.log()}")

    def _collected(self, positions: dict[str, int]) -> bool:
        found = self.machine.status()
        return all(found[name]["position"] >= position for name, position in positions.items())

    def _positions_reach(self, position: int) -> bool:
        """Return True if the query has committed these positions of all feeds."""
        found = self.machine.status()
        return all(feed["readers"].get("lake", {"position": 0})["position"] >= position for feed in found.values())

    def _complete(self) -> bool:
        found = self.machine.status().values()
        return all(
            feed["state"] == "complete" and feed["readers"].get("lake", {"rows": 1})["rows"] == 0 for feed in found
        )

    def table(self) -> pa.Table:
        """Return the table."""
        return pq.read_table(committed_files(Path(self.lake, "table")), columns=COLUMNS)

    def _judged(self) -> Iterator[str]:
        """Compare the table with what was published, with the journal, and with the history that is served."""
        self.driver.ask("history", journal=self.url, lake=f"{self.lake}/served")
        served, table = pq.read_table(f"{self.lake}/served", columns=COLUMNS), self.table()
        for feed in FEEDS:
            rows = _of(table, feed)
            reader = Journal(self.machine.journal).reader(feed.name)
            ended = self.publisher.made(feed)
            fault = {"kind": "kill collector", "target": feed.name, "at": self.lost}
            facts = Facts(log=[fault], begun=range(max(ended, default=0) + 1), ended=ended)
            verdict = judge_source(feed.source, rows["position"].to_numpy(), rows["data"], reader.gaps(0), facts)
            if not verdict.sound:
                yield f"{feed.name}: {verdict}"
            if reader.end != rows.num_rows:
                yield f"{feed.name}: the log has {reader.end} rows, and the table {rows.num_rows}"
            if not _of(served, feed).equals(rows):
                yield f"{feed.name}: the history that the collector serves is not the table"


def _of(table: pa.Table, feed: Feed) -> pa.Table:
    """Return the rows of a feed, in order."""
    mine = table.filter(pc.equal(table["source"].cast(pa.string()), feed.name))
    return mine.sort_by("position").select(["position", "data"]).combine_chunks()


def _sealed_end(store: str, feed: Feed) -> int:
    """Return the number of rows of a feed in the store."""
    try:
        return Journal(store).reader(feed.name).end
    except JournalError:
        return 0
