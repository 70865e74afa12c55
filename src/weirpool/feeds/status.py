"""What people and programs see of feeds: one status for each, and a document of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

__all__ = ["Document", "FeedState", "FeedStatus", "Lag", "ReaderStatus", "ServedStatus", "longest", "readers_of"]


class FeedState(StrEnum):
    """The state of a feed."""

    CONNECTING = "connecting"
    LIVE = "live"
    WAITING_FOR_BUDGET = "waiting for budget"
    WAITING_FOR_DISK = "waiting for disk"
    REFUSED = "refused"
    """The publisher, the log or the configuration refuses; it is tried again by the feed's policy."""
    STANDBY = "standby"
    """Another collector of the group collects it."""
    COMPLETE = "complete"
    STOPPED = "stopped"


class Lag(msgspec.Struct, frozen=True):
    """How far a reader is behind the end of a log."""

    position: int
    """The position that it has committed."""
    rows: int
    seconds: float | None
    """Since the first row that it has not committed was received, of rows that are not sealed; None if that row cannot
    be read."""


class FeedStatus(msgspec.Struct, kw_only=True):
    """The status of one feed.

    Counters are those of the feed since its process started; a restarted feed goes on counting.
    """

    name: str
    url: str
    route: str
    journal: str
    source: str
    state: FeedState
    reason: str = ""
    """Why the feed is in this state, if that needs a reason. It may contain text of the peer."""
    problem: str = ""
    """What is wrong with the configuration, or with the files of readers."""
    position: int = 0
    rows: int = 0
    bytes: int = 0
    rate: float = 0.0
    """Rows per second."""
    readers: dict[str, Lag] = {}
    budget: int = 0
    budget_free: int | None = None
    """Bytes; None if there is no log yet."""
    credit: int = 0
    """Items that were requested and have not arrived."""
    gaps: int = 0
    reconnects: int = 0
    restarts: int = 0
    """How often the feed has ended with an error."""
    sync_seconds: float = 0.0
    """Time that writes to the journal took."""
    worker: int = 0

    @classmethod
    def refused(cls, name: str, problem: str) -> FeedStatus:
        """Return the status of a feed whose configuration has never been valid."""
        state = FeedState.REFUSED
        return cls(name=name, url="", route="", journal="", source="", state=state, reason=problem, problem=problem)


class ReaderStatus(msgspec.Struct, frozen=True):
    """One reader, such as a streaming query, over all logs that it commits positions in."""

    reader: str
    feeds: int
    rows: int
    seconds: float | None
    """The longest lag of those that are known."""


class ServedStatus(msgspec.Struct, frozen=True):
    """A journal that the collector serves to readers elsewhere."""

    name: str
    journal: str
    """Its folder."""
    url: str
    """The URL that readers load."""
    connections: int


class Document(msgspec.Struct, kw_only=True):
    """All statuses of a process and its workers."""

    time: float
    """Seconds since 1970."""
    healthy: bool
    """Every event loop that collects has published its statuses lately."""
    ready: bool
    """It is healthy, and every feed has been started."""
    states: dict[str, int]
    """The number of feeds in each state."""
    feeds: list[FeedStatus]
    readers: list[ReaderStatus]
    served: list[ServedStatus] = []
    """The journals that are served, by name."""
    problem: str = ""
    """What is wrong with a newer version of the whole file, so that all feeds go on as before."""

    @classmethod
    def of(
        cls,
        feeds: list[FeedStatus],
        *,
        time: float,
        healthy: bool,
        ready: bool,
        served: Sequence[ServedStatus] = (),
        problem: str = "",
    ) -> Document:
        """Return the document of these feeds."""
        states = Counter(str(feed.state) for feed in feeds)
        return cls(
            time=time,
            healthy=healthy,
            ready=healthy and ready,
            states={str(state): states[state] for state in FeedState if states[state]},
            feeds=feeds,
            readers=readers_of(feeds),
            served=[*served],
            problem=problem,
        )


def readers_of(feeds: Sequence[FeedStatus]) -> list[ReaderStatus]:
    """Return the readers of some feeds, in the order of their names: the sum of their rows, and the longest lag."""
    found: dict[str, list[Lag]] = {}
    for feed in feeds:
        for reader, lag in feed.readers.items():
            found.setdefault(reader, []).append(lag)
    return [
        ReaderStatus(reader, len(lags), sum(lag.rows for lag in lags), longest(lags))
        for reader, lags in sorted(found.items())
    ]


def longest(lags: Iterable[Lag]) -> float | None:
    """Return the longest of some lags in seconds, of those that are known; None if none is."""
    return max((lag.seconds for lag in lags if lag.seconds is not None), default=None)
