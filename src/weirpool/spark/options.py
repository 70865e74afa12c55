"""The options of a source: names, values and error messages."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..errors import LocalError
from ..journal.layout import check_name, log_folder
from ..journal.retention import DEFAULT_RETAIN_BYTES
from .decode_options import DECODE_OPTIONS, DecodeOptions
from .given import Given, Plain, as_count, as_flag, as_seconds, as_size, as_size_or_none, as_text, as_url, one_of
from .partitions import Tasks
from .places import ENDS, STARTS, Start, check_places, is_future

__all__ = ["SourceOptions"]

DEFAULT_TRIGGER_BYTES: Final = 1024 * 1024 * 1024
"""About eight million rows of 128 bytes: above it, Spark's cost per batch is negligible."""
DEFAULT_TIMEOUT: Final = 60.0
"""Seconds: enough for a disk that is mounted at boot, or a collector that is started with the query."""
DEFAULT_DELAY: Final = 900.0
"""Seconds, as in Spark's Kafka source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of `spark.read` and `spark.readStream`."""

    journal: str
    """A folder, or a URI for reading only."""
    sources: tuple[str, ...] | None = None
    """The logs to read; None means all existing and future ones. With `url` it is the one that is collected, named
    after the route by default."""
    pattern: str | None = None
    """A regular expression that the names of the logs to read match as a whole; None: any name."""
    starting: Start = STARTS.default
    """Where to start without a checkpoint."""
    ending: Start = ENDS.default
    """Where a batch read ends; "earliest" is not valid."""
    require_rows_since: bool = False
    """Whether a start at a time without any row since is an error; otherwise it is the end of the log."""
    min_rows: int | None = None
    """Rows that a micro-batch waits for; None: one."""
    max_delay: float = DEFAULT_DELAY
    """Seconds that it waits for them at most."""
    max_rows: int | None = None
    """Maximum rows of a micro-batch; None: no limit."""
    max_bytes: int = DEFAULT_TRIGGER_BYTES
    """Maximum bytes of a micro-batch, but at least one row."""
    partitions: int | None = None
    """Tasks of a batch; None: depends on the number of cores, and on the rows and bytes."""
    min_partitions: int | None = None
    """Minimum tasks of a batch, unless it has fewer rows."""
    rows_per_partition: int | None = None
    """Maximum rows of a task; None: no limit."""
    gaps: bool = False
    """Whether to read the journal's gaps instead of its rows."""
    fail_on_data_loss: bool = True
    """Whether missing or damaged rows end the query; otherwise they are skipped."""
    fail_on_gap: bool = False
    """Whether a gap ends the query before a row after it is read."""
    journal_timeout: float = DEFAULT_TIMEOUT
    """Seconds to wait for a journal or source that does not exist."""
    reader: str | None = None
    """The name under which a streaming query commits its position in the journal; None: it does not."""
    trim: bool = True
    """Whether it commits, so that the journal can delete committed rows."""
    retain_bytes: int = DEFAULT_RETAIN_BYTES
    """Bytes of committed rows to keep."""
    url: str | None = None
    """The publisher of an embedded collector; None: the collector runs elsewhere."""
    route: str | None = None
    """The stream to collect."""
    data: bytes = b""
    """The data of its request."""
    decode: DecodeOptions | None = None
    """How items are decoded; None: they are not."""

    @property
    def remote(self) -> bool:
        """True if the journal is not a folder of this machine: it can be read, but not trimmed."""
        return "://" in self.journal

    @property
    def tasks(self) -> Tasks:
        """How many tasks read a batch."""
        return Tasks(count=self.partitions, at_least=self.min_partitions, max_rows=self.rows_per_partition)

    def reads(self, source: str) -> bool:
        """Return True if a log of this name is to be read."""
        if self.sources is not None:
            return source in self.sources
        return self.pattern is None or re.fullmatch(self.pattern, source) is not None

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Return the options of a source; `LocalError` if one is unknown, missing, or has an invalid value."""
        if "paths" in options:
            raise LocalError("a query reads one journal at a time; load each one separately, and use union()")
        given = Given(options, " ".join((_OTHERS, DECODE_OPTIONS, *STARTS.names, *ENDS.names)), _PLAIN_SOURCE)
        journal = given.get("journal", as_text, given.get("path", as_text, "")).removeprefix("file://")
        if not journal:
            raise LocalError(
                'option "journal" is missing: it names the folder of a journal, as in load("data/flights")'
            )
        url, route = _publisher(given)
        sources = given.get("source", _names, None)
        if route is not None and sources is None:
            sources = (check_name(route, "source"),)
        if url is not None and sources is not None and len(sources) > 1:
            raise LocalError('option "source" must name the one log that the stream at "url" is collected into')
        gaps = given.get("rows", _rows, False)
        if gaps:
            given.only(_GAPS_OPTIONS, 'with rows set to "gaps"')
        (from_option, starting), (to_option, ending) = STARTS.parse(given.get), ENDS.parse(given.get)
        if gaps and not isinstance(starting, str):
            raise LocalError('option "startingOffsets" is earliest or latest where rows is "gaps"')
        parsed = cls(
            journal=journal if "://" in journal else os.path.abspath(journal),
            sources=sources,
            starting=starting,
            ending=ending,
            gaps=gaps,
            url=url,
            route=route,
            decode=DecodeOptions.of(given),
            **given.fields(_PLAIN_SOURCE),
        )
        parsed._check({from_option: starting, to_option: ending})
        return parsed

    def _check(self, places: Mapping[str, Start]) -> None:
        """Refuse options that contradict each other."""
        if self.url is not None and self.sources is not None:
            # The stream is written there, so it must be a folder.
            log_folder(self.journal, self.sources[0])
        if self.sources is not None and self.pattern is not None:
            other = "url" if self.url is not None else "source"
            raise LocalError(f'options "{other}" and "sourcePattern" exclude each other; give one of them')
        if self.min_rows is not None and self.max_rows is not None and self.min_rows > self.max_rows:
            raise LocalError(
                f'option "minRowsPerTrigger" is {self.min_rows}, more than maxRowsPerTrigger, which is {self.max_rows}'
            )
        if self.partitions is not None and self.min_partitions is not None:
            raise LocalError('options "partitions" and "minPartitions" exclude each other; give one of them')
        if is_future(self.starting):
            raise LocalError(f'option "{next(iter(places))}" is in the future; use startingOffsets latest instead')
        described = self.sources if self.sources is not None else [f"those that match {self.pattern}"]
        for option, value in places.items():
            check_places(option, value, self.reads, described)


def _rows(text: str) -> bool:
    return one_of(text, "items", "gaps") == "gaps"


def _reader(text: str) -> str:
    return check_name(text, "reader")


def _names(text: str) -> tuple[str, ...] | None:
    names = [name.strip() for name in text.split(",")]
    return tuple(dict.fromkeys(check_name(name, "source") for name in names))


def _pattern(text: str) -> str:
    try:
        re.compile(as_text(text))
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from None
    return text


def _strategy(text: str) -> bool:
    return one_of(text, "latest", "error") == "error"


def _publisher(given: Given) -> tuple[str | None, str | None]:
    """Return the URL and the route of an embedded collector."""
    url = given.get("url", as_url, None)
    route = given.get("route", as_text, None)
    if (url is None) != (route is None):
        raise LocalError('options "url" and "route" go together: the publisher, and which of its streams to collect')
    return url, route


_OTHERS: Final = "journal path source rows url route"
_GAPS_OPTIONS: Final = (
    "journal", "path", "source", "sourcePattern", "startingOffsets", "rows", "failOnDataLoss", "journalTimeout"
)  # fmt: skip

_PLAIN_SOURCE: Final[Plain] = {
    "pattern": ("sourcePattern", _pattern),
    "require_rows_since": ("startingOffsetsByTimestampStrategy", _strategy),
    "min_rows": ("minRowsPerTrigger", as_count),
    "max_delay": ("maxTriggerDelay", as_seconds),
    "min_partitions": ("minPartitions", as_count),
    "max_rows": ("maxRowsPerTrigger", as_count),
    "max_bytes": ("maxBytesPerTrigger", as_size),
    "partitions": ("partitions", as_count),
    "rows_per_partition": ("rowsPerPartition", as_count),
    "fail_on_data_loss": ("failOnDataLoss", as_flag),
    "fail_on_gap": ("failOnGap", as_flag),
    "journal_timeout": ("journalTimeout", as_seconds),
    "reader": ("reader", _reader),
    "trim": ("trim", as_flag),
    "retain_bytes": ("retainBytes", as_size_or_none),
    "data": ("data", str.encode),
}
