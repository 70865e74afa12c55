"""The gaps of a journal as rows, with their positions, times and reasons.

A stream of gaps neither misses nor repeats one. Gaps recorded by the collector have its current position, which orders
them; several may have the same one. A loss of rows that were written before is recorded when it is found: such losses
have numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType, TimestampType

from ..errors import JournalError
from ..journal.gaps import Gap
from ..journal.layout import is_source
from .offsets import VERSION, foreign, same_logs
from .options import SourceOptions
from .places import is_time
from .polling import Poll
from .schema import arrow_schema
from .shown import plain_errors
from .troubles import Troubles
from .view import JournalView

__all__ = ["GAP_COLUMNS", "GapBatchReader", "GapOffset", "GapPartition", "GapStreamReader", "Seen"]

GAP_COLUMNS: Final = StructType(
    [
        StructField("source", StringType()),
        StructField("position", LongType()),
        StructField("time", TimestampType()),
        StructField("previous_time", TimestampType()),
        StructField("last_position", LongType()),
        StructField("lost_first", LongType()),
        StructField("lost_end", LongType()),
        StructField("query", StringType()),
        StructField("reason", StringType()),
    ]
)
"""All columns of a gap."""

_MAY_BE_NULL: Final = frozenset({"previous_time", "last_position", "lost_first", "lost_end", "query"})
_TYPES: Final[dict[DataType, pa.DataType]] = {
    StringType(): pa.string(),
    LongType(): pa.int64(),
    TimestampType(): pa.timestamp("us", "UTC"),
}
_FIELDS: Final = {field.name: pa.field(field.name, _TYPES[field.dataType]) for field in GAP_COLUMNS.fields}
_KEYS: Final = {"v", "rows", "from", "sources", "logs"}

Row = dict[str, Any]


class Seen(NamedTuple):
    """How far the gaps of a log were read."""

    position: int
    """The largest position of a gap recorded by the collector."""
    shared: int
    """The number of gaps with this position."""
    number: int
    """The largest number of a loss of written rows."""

    @classmethod
    def before(cls, gaps: Sequence[Gap], time: datetime) -> Seen:
        """Return the end of those gaps of a log that were recorded before the first one at or after a time."""
        numbered = sorted((gap for gap in gaps if gap.number), key=lambda gap: gap.number)
        others = (gap for gap in gaps if not gap.number)
        return cls.all_of(
            [gap for group in (others, numbered) for gap in takewhile(lambda gap: gap.time < time, group)]
        )

    @classmethod
    def all_of(cls, gaps: Sequence[Gap]) -> Seen:
        """Return the end of all current gaps of a log."""
        ends = ((gap.position, index + 1) for gap, index in _indexed(gaps))
        return cls(*max(ends, default=(0, 0)), max((gap.number for gap in gaps), default=0))

    def or_later(self, other: Seen) -> Seen:
        """Return the later end of the two: a gap that no longer exists has been read."""
        return Seen(*max(self[:2], other[:2]), max(self.number, other.number))

    def between(self, end: Seen, gaps: Sequence[Gap]) -> list[Gap]:
        """Return the gaps that were recorded after this, up to `end`."""
        ordered = [gap for gap, index in _indexed(gaps) if self[:2] <= (gap.position, index) < end[:2]]
        return ordered + [gap for gap in gaps if self.number < gap.number <= end.number]


NONE: Final = Seen(0, 0, 0)


def _indexed(gaps: Iterable[Gap]) -> Iterator[tuple[Gap, int]]:
    """Yield the gaps without a number, each with the count of earlier ones at its position."""
    position = index = -1
    for gap in gaps:
        if not gap.number:
            index = index + 1 if gap.position == position else 0
            position = gap.position
            yield gap, index


@dataclass(frozen=True, slots=True)
class GapOffset:
    """The offset of a query of gaps."""

    begun: str
    """Where to start in sources that were not read yet: "earliest", "latest", or the start time of a query that starts
    with the latest ones."""
    seen: Mapping[str, Seen]
    """What was read of each source."""
    logs: Mapping[str, str]
    """The UUID of the log of each of these."""

    @classmethod
    def parse(cls, value: Any) -> GapOffset:
        """Return an offset from the checkpoint; `LocalError` if it is not an offset of this source."""
        # THREATS 82
        if not isinstance(value, dict) or value.get("v") != VERSION or set(value) != _KEYS:
            raise foreign(value)
        seen, logs = value["sources"], value["logs"]
        begun = value["from"]
        if value["rows"] != "gaps" or not isinstance(begun, str):
            raise foreign(value)
        if begun not in ("earliest", "latest") and not is_time(begun):
            raise foreign(value)
        if (
            not isinstance(seen, dict)
            or not isinstance(logs, dict)
            or seen.keys() != logs.keys()
            or not all(map(is_source, logs))
        ):
            raise foreign(value)
        if not all(map(_is_seen, seen.values())) or not all(isinstance(uuid, str) for uuid in logs.values()):
            raise foreign(value)
        return cls(begun, {source: Seen(*numbers) for source, numbers in seen.items()}, logs)

    def json(self) -> dict[str, Any]:
        """Return the offset as stored in the checkpoint."""
        return {
            "v": VERSION,
            "rows": "gaps",
            "from": self.begun,
            "sources": {source: list(seen) for source, seen in sorted(self.seen.items())},
            "logs": dict(sorted(self.logs.items())),
        }


def _is_seen(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(type(each) is int and each >= 0 for each in value)


class GapPartition(InputPartition):
    """Rows: there are so few that the task includes them."""

    def __init__(self, rows: list[Row]) -> None:
        super().__init__(None)
        self.rows = rows


def _row(source: str, gap: Gap) -> Row:
    last = (gap.position if gap.lost is None else gap.lost[0]) - 1
    return {
        "source": source,
        "position": gap.position,
        "time": gap.time,
        "previous_time": gap.previous,
        "last_position": last if last >= 0 else None,
        "lost_first": None if gap.lost is None else gap.lost[0],
        "lost_end": None if gap.lost is None else gap.lost[1],
        "query": gap.query,
        "reason": gap.reason,
    }


class _GapReader:
    """The work of a task."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema, GAP_COLUMNS, _FIELDS, _MAY_BE_NULL)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        assert isinstance(partition, GapPartition)
        columns = [pa.array([row[field.name] for row in partition.rows], field.type) for field in self._schema]
        yield pa.RecordBatch.from_arrays(columns, schema=self._schema)


class GapBatchReader(_GapReader, DataSourceReader):
    """Reads all gaps of a journal, once."""

    @plain_errors()
    def partitions(self) -> list[InputPartition]:
        """Return the gaps; `JournalError` if the journal cannot be read."""
        view = JournalView(self._options)
        troubles = Troubles(self._options, view)
        troubles.refresh(bounded=True)
        found = sorted(_gaps(view, troubles, bounded=True))
        return [GapPartition([_row(source, gap) for source, gaps in found for gap in gaps])]


class GapStreamReader(_GapReader, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads gaps as they are recorded."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._view: JournalView | None = None
        self._troubles: Troubles | None = None
        self._poll: Poll | None = None
        self._targets: dict[str, Seen] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_view": None, "_troubles": None, "_poll": None}

    def initialOffset(self) -> dict[str, Any]:
        """Return the start, unresolved: Spark calls this twice, and does not store the result."""
        assert isinstance(self._options.starting, str)
        return GapOffset(self._options.starting, {}, {}).json()

    @plain_errors()
    def prepareForTriggerAvailableNow(self) -> None:
        """Read only the gaps that exist now."""
        view, troubles = self._view_and_troubles(())
        troubles.refresh(bounded=True)
        self._targets = {source: Seen.all_of(gaps) for source, gaps in _gaps(view, troubles, bounded=True)}

    @plain_errors()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the end of the existing gaps; `start` if there are no more, after a moment."""
        before = GapOffset.parse(start)
        end = self._latest(before)
        assert self._poll is not None
        for _ in self._poll.changes() if end == start and self._targets is None else ():
            end = self._latest(before)
            if end != start:
                break
        if end != start:
            self._poll.progress()
        return start if end == start else end

    def _latest(self, before: GapOffset) -> dict[str, Any]:
        begun = datetime.now(UTC).isoformat() if before.begun == "latest" else before.begun
        view, troubles = self._view_and_troubles(before.seen)
        readable = troubles.refresh(bounded=self._targets is not None)
        same_logs(self._options.journal, before.logs, view.logs())
        found = {}
        if self._targets is not None:
            found = self._targets
        elif readable:
            found = {source: Seen.all_of(gaps) for source, gaps in _gaps(view, troubles, bounded=False)}
        found = {source: before.seen.get(source, NONE).or_later(seen) for source, seen in found.items()}
        logs = {source: uuid for source, uuid in view.logs().items() if source in found}
        return GapOffset(begun, {**before.seen, **found}, {**before.logs, **logs}).json()

    def commit(self, end: dict[str, Any]) -> None:
        """Note a finished micro-batch, perhaps of another source of the query."""
        if self._poll is not None:
            self._poll.progress()

    @plain_errors()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Return the gaps between two offsets."""
        before, after = GapOffset.parse(start), GapOffset.parse(end)
        changed = [source for source, seen in after.seen.items() if before.seen.get(source) != seen]
        _, troubles = self._view_and_troubles(after.seen)
        rows = troubles.insist(lambda: self._rows(before, after, changed), bounded=self._targets is not None)
        return [GapPartition(rows)] if rows else []

    def _rows(self, before: GapOffset, after: GapOffset, changed: Collection[str]) -> list[Row]:
        """Return the gaps between two offsets, which are in these sources."""
        view, troubles = self._view_and_troubles(after.seen)
        troubles.wait_until_readable(changed)
        same_logs(self._options.journal, after.logs, view.logs())
        rows = []
        for source in sorted(changed):
            gaps, seen = view.reader(source).gaps(), after.seen[source]
            since = before.seen.get(source) or _beginning(before.begun, gaps, seen)
            rows += [_row(source, gap) for gap in since.between(seen, gaps)]
        return rows

    def _view_and_troubles(self, expected: Collection[str]) -> tuple[JournalView, Troubles]:
        if self._view is None or self._troubles is None:
            self._view = JournalView(self._options)
            self._troubles = Troubles(self._options, self._view)
            self._poll = Poll(self._view.may_have_changed)
        self._view.expected = expected
        return self._view, self._troubles


def _gaps(view: JournalView, troubles: Troubles, *, bounded: bool) -> Iterator[tuple[str, list[Gap]]]:
    """Yield the gaps of each readable source."""
    for source, reader in view.readers.items():
        try:
            gaps = reader.gaps()
        except JournalError as error:
            troubles.skip_gaps(source, error, bounded=bounded)
        else:
            yield source, gaps


def _beginning(begun: str, gaps: Sequence[Gap], end: Seen) -> Seen:
    """Return where a query starts in a source that was not seen before."""
    if begun == "earliest":
        return NONE
    # "latest" means after the gaps that existed when the query first read the log.
    return end if begun == "latest" else Seen.before(gaps, datetime.fromisoformat(begun))
