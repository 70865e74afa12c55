"""The laboratory of absent collectors: the one that serves a journal is away at one request of a query's life.

At each request in turn, all links break, before the collector has done what it was asked for or after that, and the
next requests are lost, too. Then it is back. The query's rows are known, and so is what it has committed in the end.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from unittest import mock

from tests.serving.served import Served
from tests.spark.journals import Offset, advance, damage, datasource, fill, item, over_the_wire, run_task, segments
from weirpool import Service
from weirpool.errors import JournalError
from weirpool.journal import gaps
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.gaps import Gap
from weirpool.journal.layout import log_folder
from weirpool.payload import Payload
from weirpool.serving import serve_journal
from weirpool.serving.links import Links, close_links
from weirpool.serving.messages import PREFIX
from weirpool.spark import cursor, polling, troubles

__all__ = ["LIVES", "absent_collectors", "absent_in"]

LOST: Final = 3
"""Requests that an outage takes: those of the background, too."""
PATIENCE: Final = 30.0
"""Seconds until a query that makes no progress is a breach."""
END: Final = 40
READER: Final = "lake"
NOON: Final = datetime(2026, 1, 2, 12, tzinfo=UTC)

LIVES: Final[Mapping[str, Mapping[str, str]]] = {
    "all rows": {"maxBytesPerTrigger": "1k"},
    "from a time, up to a gap": {"startingTimestamp": "2026-01-01T00:00:00Z", "failOnGap": "true"},
    "without lost rows": {"failOnDataLoss": "false"},
    "gaps": {"rows": "gaps"},
}
"""The options of queries that ask collectors for different things."""


class Outage:
    """What happens to the requests of a server: from one of them on, some are lost with all links."""

    def __init__(self, first: int, *, acted: bool) -> None:
        self.requests = 0
        self._first = first
        self._acted = acted
        self.cut: Callable[[], None] = lambda: None

    async def meet(self, act: Callable[[], Any]) -> None:
        """Let a request pass, or never return."""
        number, self.requests = self.requests, self.requests + 1
        if self._first <= number < self._first + LOST:
            if self._acted and number == self._first:
                await act()
            self.cut()
            await asyncio.get_running_loop().create_future()


class Cutting(Service):
    """A service whose requests meet an outage, except for the reading of rows, which is the work of tasks."""

    def __init__(self, outage: Outage) -> None:
        super().__init__()
        self._outage = outage

    def call(self, route: str, *more: Any, **options: Any) -> Any:
        """Add a handler of calls."""

        def add(handler: Any) -> Any:
            async def handle(request: Payload) -> bytes:
                await self._outage.meet(lambda: handler(request))
                answer: bytes = await handler(request)
                return answer

            return Service.call(self, route, *more, **options)(handle)

        return add

    def stream(self, route: str, *more: Any, **options: Any) -> Any:
        """Add a handler of streams."""

        def add(handler: Any) -> Any:
            async def handle(request: Payload) -> AsyncIterator[bytes]:
                async with aclosing(handler(request)) as answers:
                    await self._outage.meet(lambda: anext(answers))
                    async for each in answers:
                        yield each

            served = handler if route == f"{PREFIX}read" else handle
            return Service.stream(self, route, *more, **options)(served)

        return add


def absent_collectors(folder: Path) -> Iterator[str]:
    """Have an outage at each request of each kind of query."""
    for life in LIVES:
        yield from absent_in(life, folder)


def absent_in(life: str, folder: Path) -> Iterator[str]:
    """Have an outage at each request of one kind of query."""
    with _hurried():
        for acted in (False, True):
            for request in itertools.count():
                asked, wrong = _lived(folder / f"{life} {acted} {request}", LIVES[life], Outage(request, acted=acted))
                where = f"{life}, request {request}, {'after' if acted else 'before'} the collector has acted"
                yield from (f"{where}: {each}" for each in wrong)
                if asked <= request:
                    break


@contextmanager
def _hurried() -> Iterator[None]:
    """Let nothing wait for long, and fail a request at the first loss of a link."""
    ask = Links.ask

    async def at_once(self: Links, url: str, work: Any, patience: float = 0) -> Any:
        return await ask(self, url, work, 0)

    with (
        mock.patch.object(Links, "ask", at_once),
        mock.patch.object(polling, "LONGEST_WAIT", 0.02),
        mock.patch.object(troubles, "RETRY", 0.005),
        mock.patch.object(cursor, "RETRY", 0.005),
        mock.patch.object(os, "fsync", lambda fd: None),
    ):
        yield


def _lived(journal: Path, options: Mapping[str, str], outage: Outage) -> tuple[int, list[str]]:
    """Run a query through its life; return the requests that it made, and what is wrong."""
    fill(journal, "a", 10, 20, 30)
    if "rows" in options:
        gaps.add(log_folder(journal, "a"), [Gap(10, NOON, "the first one", lost=(9, 10))])
    if "failOnDataLoss" in options:
        damage(segments(journal, "a")[0], item(15))
    service = Cutting(outage)
    serve_journal(service, journal)
    served = Served(service, "rsocket+tcp://127.0.0.1:0")
    served.start()
    outage.cut = served.abort
    try:
        wrong = [*_breaches(Query(journal, served.url, options))]
    except Exception as error:
        wrong = [f"the query ends: {type(error).__name__}: {error}"]
    finally:
        close_links()
        served.stop()
    return outage.requests, wrong


def _breaches(query: Query) -> Iterator[str]:
    query.read(30)
    fill(query.journal, "a", 35)
    query.read(35)
    query.restart()
    fill(query.journal, "a", END)
    if query.of_gaps:
        gaps.add(log_folder(query.journal, "a"), [Gap(END, NOON, "the second one", lost=(END, END))])
    query.read(END)
    query.stop()
    if query.rows != query.expected:
        yield f"its rows are {query.rows}"
    if query.committed not in ({}, {READER: END}):
        yield f"it has committed {query.committed}"


class Query:
    """A query, driven as Spark does."""

    def __init__(self, journal: Path, url: str, options: Mapping[str, str]) -> None:
        self.journal = journal
        self.rows: list[Any] = []
        self._url = url
        self.of_gaps = "rows" in options
        self._options = {**options, **({} if self.of_gaps else {"reader": READER, "retainBytes": "0"})}
        self._reader = self._made()
        self._at: Offset = over_the_wire(self._reader.initialOffset())

    @property
    def expected(self) -> list[Any]:
        """The positions that it must have read; of gaps, their reasons."""
        if self.of_gaps:
            return ["the first one", "the second one"]
        lost = range(10, 20) if "failOnDataLoss" in self._options else range(0)
        return [position for position in range(END) if position not in lost]

    @property
    def committed(self) -> dict[str, int]:
        """The position of each cursor."""
        found = FolderCoordinator(str(self.journal)).cursors("a")
        return {name: cursor.position for name, cursor in found.items()}

    def read(self, end: int) -> None:
        """Do micro-batches, until everything before a position is read and committed, or all gaps are."""
        deadline = time.monotonic() + PATIENCE
        while not self._has_read(end):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no progress to {end}; the rows are {self.rows}, and {self.committed} is committed")
            after = advance(self._reader, self._at)
            if after != self._at:
                for part in self._reader.partitions(self._at, after):
                    self.rows += self._task(part)
                self._at = after
                self._reader.commit(after)
                self._reader.reportLatestOffset()

    def _has_read(self, end: int) -> bool:
        if self.of_gaps:
            return len(self.rows) == (2 if end == END else 1)
        return self._at["sources"].get("a") == end and self.committed == {READER: end}

    def _task(self, part: Any) -> list[Any]:
        """Run a task; as Spark does, again after an error."""
        column = "reason" if self.of_gaps else "position"
        for left in range(2 * LOST, -1, -1):
            try:
                return [value for batch in run_task(self._reader, part) for value in batch[column].to_pylist()]
            except JournalError:
                if not left:
                    raise
        return []

    def restart(self) -> None:
        """Go on in another driver, from the checkpoint."""
        self.stop()
        self._reader = self._made()

    def stop(self) -> None:
        """End the driver."""
        self._reader.stop()

    def _made(self) -> Any:
        source = datasource(self._url, **self._options)
        return source.streamReader(source.schema())
