"""Offsets: the position of a streaming query in each source, as stored in Spark's checkpoint.

``{"v": 2, "query": …, "from": …, "sources": {name: position}, "logs": {name: uuid}}``. Spark compares offsets as
strings, so the order of keys never changes: sources are sorted. `from` is where the query started in each source.
Before its first batch it is the unchanged option `startingOffsets`, because Spark does not store the first offset: if
"latest" were resolved again after a crash, rows would be lost. The end of the first batch therefore has the resolved
start, and the query's id, because an id in the first offset would differ after a crash.

A source that could not be seen when the query started has no latest position yet. There "latest" means the time at
which the query started, in ISO 8601: in `from`, or under the key `since` for all sources that are not named. A query
that starts at a time has that time there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ..errors import JournalMismatch, LocalError
from ..journal.layout import is_source
from .places import Start, is_time

__all__ = ["VERSION", "Offset", "foreign", "same_logs"]

VERSION: Final = 2
_KEYS: Final = {"v", "query", "from", "sources", "logs"}


@dataclass(frozen=True, slots=True)
class Offset:
    """The position of a query."""

    begun: Start
    """Where it started, or will start, in each source."""
    positions: Mapping[str, int] = field(default_factory=dict)
    """The next row of each source that it has started to read."""
    logs: Mapping[str, str] = field(default_factory=dict)
    """The UUID of the log of each of these sources."""
    query: str | None = None
    """The query's id, for one source in one query. None before its first batch."""
    since: str | None = None
    """The time at which it started everywhere, if it started at "latest" or at a time; None before its first batch."""

    @classmethod
    def parse(cls, value: Any) -> Offset:
        """Return an offset from the checkpoint.

        It raises `LocalError` if that is not an offset of this source: it was edited, or belongs to another one.
        """
        # THREATS 82: the content of a checkpoint is only data.
        if not isinstance(value, dict) or value.get("v") != VERSION or value.keys() - {"since"} != _KEYS:
            raise foreign(value)
        query, begun, positions, logs = value["query"], value["from"], value["sources"], value["logs"]
        since = value.get("since")
        if not isinstance(begun, dict) and not (isinstance(begun, str) and _is_place(begun)):
            raise foreign(value)
        if isinstance(begun, dict) and not all(map(_is_place, begun.values())):
            raise foreign(value)
        if since is not None and not (isinstance(since, str) and is_time(since)):
            raise foreign(value)
        if not isinstance(positions, dict) or not all(map(_is_position, positions.values())):
            raise foreign(value)
        if not isinstance(logs, dict) or logs.keys() != positions.keys() or not all(map(is_source, logs)):
            raise foreign(value)
        if not all(isinstance(uuid, str) for uuid in logs.values()):
            raise foreign(value)
        if not (query is None and not positions) and not (isinstance(query, str) and query.isalnum()):
            raise foreign(value)
        return cls(begun, positions, logs, query, since)

    def json(self) -> dict[str, Any]:
        """Return the offset as stored in the checkpoint."""
        begun = self.begun if isinstance(self.begun, str) else dict(sorted(self.begun.items()))
        return {
            "v": VERSION,
            "query": self.query,
            "from": begun,
            "sources": dict(sorted(self.positions.items())),
            "logs": dict(sorted(self.logs.items())),
            **({} if self.since is None else {"since": self.since}),
        }

    def opened(self, now: str) -> Offset:
        """Return the offset of a query that starts now; where it is not a position, "latest" means this time."""
        if self.query is not None:
            return self
        if isinstance(self.begun, str):
            return replace(self, since={"latest": now, "earliest": None}.get(self.begun, self.begun))
        return replace(self, begun={name: now if place == "latest" else place for name, place in self.begun.items()})

    def place(self, source: str) -> int | str:
        """Return where to continue in a source: a position, "earliest", "latest" or a time."""
        return self.positions[source] if source in self.positions else self.origin(source)

    def origin(self, source: str) -> int | str:
        """Return where the query started in a source; "earliest", "latest" or a time while that is unresolved."""
        return self.begun if isinstance(self.begun, str) else self.begun.get(source, self.since or "earliest")

    def ranges(self, end: Offset) -> dict[str, tuple[int, int]]:
        """Return first and end position of the rows of each source between this offset and a later one.

        It raises `LocalError` if `end` is not later, belongs to another query, or lacks the start of a source.
        """
        if self.query not in (None, end.query):
            raise LocalError(
                f"the batch begins in query {self.query} and ends in query {end.query}; this checkpoint was changed by "
                "hand, or is that of another query"
            )
        if not self.logs.items() <= end.logs.items():
            raise LocalError(
                "the batch ends without a log in which it begins; this checkpoint was changed by hand, or is that of "
                "another query"
            )
        ranges = {}
        for source, stop in sorted(end.positions.items()):
            first = self.positions.get(source, end.origin(source))
            if not isinstance(first, int) or stop < first:
                raise LocalError(
                    f"source {source!r}: there are no rows from {first} to {stop}; this checkpoint was changed by "
                    "hand, or is that of another query"
                )
            if first < stop:
                ranges[source] = (first, stop)
        return ranges


def same_logs(journal: str, expected: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Check that logs are those of a checkpoint, by source; logs that are not readable now are ignored.

    It raises `JournalMismatch` if a source's log is another one.
    """
    for source, uuid in expected.items():
        if found.get(source, uuid) != uuid:
            raise JournalMismatch(
                f"source {source!r} of journal {journal} is log {found[source]}, and this checkpoint belongs to log "
                f"{uuid}: the log was created again, or this is another journal; restore that log, or read this one "
                "with a new checkpoint (and another reader name)"
            )


def foreign(value: Any) -> LocalError:
    """Return the error for an invalid offset."""
    if isinstance(value, dict) and value.get("v") == 1:
        # Its positions belong to a log of format 1, which is no longer readable, and it does not name that log. Using
        # them for a current log would skip rows or mix two logs.
        return LocalError(
            "the checkpoint was written by an earlier version of Weirpool, whose journals this version cannot read; "
            "finish the query with that version, then start it with a new checkpoint on a new journal"
        )
    return LocalError(
        f"the checkpoint holds the offset {str(value)[:200]}, which is not an offset of this source in "
        f"version {VERSION}; give the query its own checkpoint, or a new one"
    )


def _is_place(value: Any) -> bool:
    return value in ("earliest", "latest") or (isinstance(value, str) and is_time(value)) or _is_position(value)


def _is_position(value: Any) -> bool:
    return type(value) is int and value >= 0
