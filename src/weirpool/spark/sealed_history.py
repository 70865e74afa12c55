"""The history of a journal as one DataFrame: sealed segments through Spark's own Parquet reader, and the tail."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col, lit

from ..archive.file import check_files
from ..archive.manifest import Segment
from ..archive.snapshot import Snapshot, snapshot
from ..errors import JournalCorrupt, LocalError
from ..journal.journal import Journal
from .given import FORMAT
from .hadoop import hadoop_paths, hadoop_uri
from .schema import COLUMNS

__all__ = ["history"]

logger = logging.getLogger("weirpool.spark")

Positions = Mapping[str, tuple[int, int]]
"""First position and the position after the last, by source."""

_LAST: Final = 1 << 62
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_FILE_SYSTEM: Final = ("No FileSystem for scheme", "UnsupportedFileSystemException", "ClassNotFoundException")


def history(
    spark: SparkSession,
    journal: str,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    sources: Iterable[str] | None = None,
    positions: Positions | None = None,
) -> DataFrame:
    """Return the rows of a journal, up to its current end, as one DataFrame with the columns of the format "weirpool".

    The DataFrame keeps that end: call this again for newer rows.

    Sealed rows are read by Spark's own Parquet reader, from the files of one manifest of each log, and the rows after
    them by the format "weirpool". No row is missing or exists twice, even if rows are sealed meanwhile. Files without
    wanted rows are not opened; of the others, Spark reads the row groups and columns that the query needs.

    Size and footer of each file with wanted rows are compared with the manifest at once, and Spark verifies the
    checksum of each page that it reads.

    Args:
        spark: The session.
        journal: The journal's folder; the URI of a store, of which only the sealed rows are read, see
            `weirpool.objects.open_store`; or the URL of a collector that serves it, which then reads all rows itself.
        since: Only rows received at this time or later; it has a time zone.
        until: Only rows received before this time.
        sources: The logs to read; None: all of them.
        positions: First position, and the position after the last, of each log to read; instead of `sources`.

    Raises:
        LocalError: An argument is invalid.
        JournalMissing: There is no such journal, or no such log in it.
        JournalCorrupt: A file is missing, shorter or longer, or not the one that the manifest lists.
        JournalError: The journal cannot be read.

    """
    wanted = _Wanted(since, until, positions)
    if sources is not None and positions is not None:
        raise LocalError("history takes sources or positions, not both: the logs in positions are the ones to read")
    names = sorted(set(positions or (Journal(journal).sources() if sources is None else sources)))
    logs = _checked(journal, names, wanted)
    try:
        frames = [*_sealed(spark, logs, wanted)]
    except (PySparkException, Py4JJavaError) as error:
        if not any(text in str(error) for text in _NO_FILE_SYSTEM):
            raise
        logger.warning(
            "journal %s: Spark has no file system for the store %s, so that sealed rows are read by Weirpool, at half "
            "the speed; add the package of Hadoop for it, such as org.apache.hadoop:hadoop-aws",
            journal,
            logs[0].store.partition("?")[0],
        )
        frames, wanted = [], wanted.unsealed()
    frames += _tail(spark, journal, logs, wanted)
    return reduce(DataFrame.unionAll, frames) if frames else spark.createDataFrame([], COLUMNS)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is to be read; without Parquet, if Spark cannot read that."""

    since: datetime | None
    until: datetime | None
    positions: Positions | None
    parquet: bool = True

    def __post_init__(self) -> None:
        for name, time in (("since", self.since), ("until", self.until)):
            if time is not None and not isinstance(time, datetime):
                raise LocalError(f"{name} is {time!r}; pass a datetime, such as datetime.fromtimestamp(SECONDS, UTC)")
            if time is not None and time.tzinfo is None:
                raise LocalError(f"{name} is {time}, without a time zone; pass datetime.now(UTC), or add tzinfo")
        for source, (first, end) in (self.positions or {}).items():
            if not 0 <= first <= end:
                raise LocalError(f"positions of source {source!r}: there is no range from {first} to {end}")

    def unsealed(self) -> _Wanted:
        return _Wanted(self.since, self.until, self.positions, parquet=False)

    def span(self, source: str) -> tuple[int, int]:
        return (0, _LAST) if self.positions is None else self.positions[source]

    def files(self, log: Snapshot) -> list[tuple[str, Segment]]:
        """Return the files of a log that may have wanted rows."""
        first, end = self.span(log.source)
        return [each for each in log.files_between(max(first, log.first), end) if self._overlaps(each[1].times)]

    def _overlaps(self, times: tuple[int, int] | None) -> bool:
        """Return True if rows that were appended between these times may be wanted."""
        if times is None:
            return False
        since, until = _microseconds(self.since), _microseconds(self.until)
        return (since is None or times[1] >= since) and (until is None or times[0] < until)

    def rows(self, frame: DataFrame, span: tuple[int, int] | None = None) -> DataFrame:
        """Return the wanted rows of a frame, in the order of columns."""
        conditions: list[Column] = []
        if self.since is not None:
            conditions.append(col("time") >= lit(self.since))
        if self.until is not None:
            conditions.append(col("time") < lit(self.until))
        if span is not None:
            conditions += [col("position") >= lit(span[0]), col("position") < lit(span[1])]
        for condition in conditions:
            frame = frame.where(condition)
        return frame.select(*COLUMNS.names)


def _checked(journal: str, names: Sequence[str], wanted: _Wanted) -> list[Snapshot]:
    """Return logs as they are now, after checking their files with wanted rows."""
    logs = [snapshot(journal, name) for name in names]
    while files := [each for log in logs for each in wanted.files(log)]:
        try:
            check_files(_store(logs), files)
            break
        except JournalCorrupt:
            logs = [snapshot(journal, name) for name in names]
            # Files that `keep` has removed meanwhile are not damaged.
            if not set(files).difference(*map(wanted.files, logs)):
                raise
    return logs


def _store(logs: Iterable[Snapshot]) -> str:
    """Return the URI of the store of all logs of a journal, of which some are sealed."""
    return next(log.store for log in logs if log.files)


def _sealed(spark: SparkSession, logs: Sequence[Snapshot], wanted: _Wanted) -> Iterator[DataFrame]:
    """Yield the frames of sealed rows: one of whole files, and one for each log of which a part is wanted."""
    whole: list[str] = []
    for log in logs:
        first, end = wanted.span(log.source)
        cut: list[str] = []
        for name, segment in wanted.files(log):
            inside = max(first, log.first) <= segment.first and segment.end <= end
            (whole if inside else cut).append(name)
        if cut:
            yield wanted.rows(_parquet(spark, log.store, cut), (max(first, log.first), end))
    if whole:
        yield wanted.rows(_parquet(spark, _store(logs), whole))


def _parquet(spark: SparkSession, store: str, names: list[str]) -> DataFrame:
    # With its settings to ignore them, Spark would return the other rows and say nothing.
    reader = spark.read.option("ignoreMissingFiles", "false").option("ignoreCorruptFiles", "false")
    # By default, Parquet's reader returns changed bytes as they are.
    reader = reader.option("parquet.page.verify-checksum.enabled", "true")
    # Otherwise Spark would read the footer of a file to find the columns, and guess the type of the source's name.
    frame = reader.schema(COLUMNS).option("basePath", hadoop_uri(store)).parquet(*hadoop_paths(store, names))
    # With Spark Connect, this is where the file system is looked for.
    assert frame.schema is not None
    return frame


def _tail(spark: SparkSession, journal: str, logs: Sequence[Snapshot], wanted: _Wanted) -> Iterator[DataFrame]:
    """Yield the frame of the rows that are not sealed."""
    starts, ends = {}, {}
    for log in logs:
        first, end = wanted.span(log.source)
        start = max(first, log.sealed_end if wanted.parquet else log.first)
        if start < min(end, log.end):
            starts[log.source], ends[log.source] = start, min(end, log.end)
    if starts:
        options = {"source": ",".join(starts), "startingOffsets": json.dumps(starts), "endingOffsets": json.dumps(ends)}
        yield wanted.rows(spark.read.format(FORMAT).options(**options).load(str(journal)))


def _microseconds(time: datetime | None) -> float | None:
    return None if time is None else (time - _EPOCH).total_seconds() * 1_000_000
