"""The options of `.option(name, value)`: names, values and error messages."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from ..errors import LocalError
from ..journal.layout import check_name
from ..journal.retention import DEFAULT_RETAIN_BYTES
from ..urls import parse_url

__all__ = ["FORMAT", "SinkOptions", "SourceOptions", "Start"]

FORMAT: Final = "penstock"

DEFAULT_TRIGGER_BYTES: Final = 1024 * 1024 * 1024
"""About eight million rows of 128 bytes: above it, Spark's cost per batch is negligible."""
DEFAULT_TIMEOUT: Final = 60.0
"""Seconds: enough for a disk that is mounted at boot, or a collector that is started with the query."""

Start = str | dict[str, int | str]
"""Where reading starts: "earliest", "latest", or for each source one of these or a position."""

EARLIEST: Final[Start] = "earliest"
LATEST: Final[Start] = "latest"

T = TypeVar("T")

_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*([smh]?)", re.IGNORECASE)
_SIZES = ("", "k", "m", "g", "t")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """The options of `spark.read` and `spark.readStream`."""

    journal: str
    """A folder, or a URI for reading only."""
    sources: tuple[str, ...] | None = None
    """The logs to read; None means all existing and future ones. With `url` it is the one that is collected, named
    after the route by default."""
    starting: Start = EARLIEST
    """Where to start without a checkpoint."""
    ending: Start = LATEST
    """Where a batch read ends; "earliest" is not valid."""
    max_rows: int | None = None
    """Maximum rows of a micro-batch; None: no limit."""
    max_bytes: int = DEFAULT_TRIGGER_BYTES
    """Maximum bytes of a micro-batch, but at least one row."""
    partitions: int | None = None
    """Tasks of a batch; None: depends on the number of cores and rows."""
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

    @property
    def remote(self) -> bool:
        """True if the journal is not a folder of this machine: it can be read, but not trimmed."""
        return "://" in self.journal

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SourceOptions:
        """Return the options of a source; `LocalError` if one is unknown, missing, or has an invalid value."""
        if "paths" in options:
            raise LocalError("a query reads one journal at a time; load each one separately, and use union()")
        given = _Given(options, "journal path source startingOffsets endingOffsets rows url route", _PLAIN_SOURCE)
        journal = given.get("journal", _text, given.get("path", _text, ""))
        if not journal:
            raise LocalError(
                'option "journal" is missing: it names the folder of a journal, as in load("data/flights")'
            )
        url = given.get("url", _url, None)
        route = given.get("route", _text, None)
        if (url is None) != (route is None):
            raise LocalError(
                'options "url" and "route" go together: the publisher, and which of its streams to collect'
            )
        sources = given.get("source", _names, None)
        if route is not None and sources is None:
            sources = (check_name(route, "source"),)
        if url is not None and sources is not None and len(sources) > 1:
            raise LocalError('option "source" must name the one log that the stream at "url" is collected into')
        journal = journal.removeprefix("file://")
        gaps = given.get("rows", _rows, False)
        if gaps:
            given.only(_GAPS_OPTIONS, 'with rows set to "gaps"')
        starting = given.get("startingOffsets", _start, EARLIEST)
        ending = given.get("endingOffsets", _ending, LATEST)
        _check_places("startingOffsets", starting, sources)
        _check_places("endingOffsets", ending, sources)
        if gaps and not isinstance(starting, str):
            raise LocalError('option "startingOffsets" is earliest or latest where rows is "gaps"')
        return cls(
            journal=journal if "://" in journal else os.path.abspath(journal),
            sources=sources,
            starting=starting,
            ending=ending,
            gaps=gaps,
            url=url,
            route=route,
            **given.fields(_PLAIN_SOURCE),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The options of `df.write` and `df.writeStream`."""

    url: str
    """The service."""
    route: str
    """Its handler."""
    kind: str = "channel"
    """Either "channel", which is awaited to its end, or "fire", without a response."""
    data_column: str | None = None
    """The column for an item's data; None: see :mod:`penstock.spark.items`."""
    metadata_column: str | None = None
    """The column for an item's metadata; None: the row's origin."""

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> SinkOptions:
        """Return the options of a sink; `LocalError` if one is unknown, missing, or has an invalid value."""
        # Spark adds checkpointLocation and queryName, which a sink does not use.
        given = _Given(options, "url route delivery queryName checkpointLocation", _PLAIN_SINK)
        url = given.get("url", _url, None)
        route = given.get("route", _text, None)
        if url is None or route is None:
            missing = "url" if url is None else "route"
            raise LocalError(f'option "{missing}" is missing: "url" and "route" name the destination of the rows')
        given.get("delivery", _delivery, None)
        return cls(
            url=url,
            route=route,
            **given.fields(_PLAIN_SINK),
        )


class _Given:
    """The options as passed by Spark: names in lower case, values always strings."""

    def __init__(self, options: Mapping[str, str], others: str, plain: _Plain) -> None:
        self._values = {name.lower(): value for name, value in options.items()}
        known = [*others.split(), *(name for name, _ in plain.values())]
        names = {name.lower(): name for name in known}
        for name in self._values.keys() - names.keys():
            near = get_close_matches(name, names, n=1)
            hint = f'did you mean "{names[near[0]]}"?' if near else f"the options are {', '.join(sorted(known))}"
            raise LocalError(f'format "{FORMAT}" has no option "{name}" here; {hint}')

    def only(self, names: tuple[str, ...], where: str) -> None:
        """Refuse all options except these."""
        for name in self._values.keys() - {name.lower() for name in names}:
            raise LocalError(f'option "{name}" is not valid {where}; the options are {", ".join(names)}')

    def fields(self, plain: _Plain) -> dict[str, Any]:
        """Return the values of those fields whose option was passed."""
        passed = ((field, name, parse) for field, (name, parse) in plain.items() if name.lower() in self._values)
        return {field: self.get(name, parse, None) for field, name, parse in passed}

    def get(self, name: str, parse: Callable[[str], T], default: T) -> T:
        """Return the parsed value of an option, or its default."""
        text = self._values.get(name.lower())
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise LocalError(f'option "{name}" is {text!r}; {error}') from None


def _one_of(text: str, *words: str) -> str:
    if text not in words:
        raise ValueError(f"it must be {' or '.join(words)}")
    return text


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError("it must not be empty")
    return text


def _url(text: str) -> str:
    return str(parse_url(text))


def _count(text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise ValueError("it must be a whole number of at least 1")
    return int(text)


def _size_or_none(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("it must be a number of bytes, such as 67108864 or 64m")
    return int(match[1]) << 10 * _SIZES.index(match[2].lower())


def _size(text: str) -> int:
    size = _size_or_none(text)
    if size < 1:
        raise ValueError("it must be at least 1 byte")
    return size


def _flag(text: str) -> bool:
    return _one_of(text.strip().lower(), "true", "false") == "true"


def _seconds(text: str) -> float:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError("it must be a time such as 60, 60s or 5m")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2].lower()]


def _rows(text: str) -> bool:
    return _one_of(text, "items", "gaps") == "gaps"


def _reader(text: str) -> str:
    return check_name(text, "reader")


def _names(text: str) -> tuple[str, ...] | None:
    names = [name.strip() for name in text.split(",")]
    return tuple(dict.fromkeys(check_name(name, "source") for name in names))


def _start(text: str) -> Start:
    """Return a start: a keyword, or JSON with one for each source."""
    hint = 'it must be earliest, latest, or JSON such as {"flights": 1000}'
    text = text.strip()
    if text in ("earliest", "latest"):
        return text
    try:
        places = json.loads(text)
    except ValueError:
        raise ValueError(hint) from None
    if not isinstance(places, dict) or not places:
        raise ValueError(hint)
    for source, place in places.items():
        check_name(source, "source")
        if place not in ("earliest", "latest") and not (type(place) is int and place >= 0):
            raise ValueError(f"source {source!r}: a position is a whole number from 0 on, earliest or latest")
    return places


def _ending(text: str) -> Start:
    places = _start(text)
    if places == "earliest" or (isinstance(places, dict) and "earliest" in places.values()):
        raise ValueError("a read cannot end at the earliest position; use latest, or a position for each source")
    return places


def _check_places(option: str, places: Start, sources: tuple[str, ...] | None) -> None:
    """Refuse starts in sources that are not read, such as a mistyped name."""
    if sources is not None and not isinstance(places, str):
        for source in places.keys() - set(sources):
            raise LocalError(f'option "{option}" names source {source!r}, which is not read: {", ".join(sources)}')


def _kind(text: str) -> str:
    return _one_of(text, "channel", "fire")


def _delivery(text: str) -> None:
    if text == "transactional":
        raise ValueError(
            "this version delivers at-least-once; the metadata of each item lets the receiver drop duplicates"
        )
    _one_of(text, "at-least-once")


_GAPS_OPTIONS: Final = ("journal", "path", "source", "startingOffsets", "rows", "failOnDataLoss", "journalTimeout")

_Plain = dict[str, tuple[str, Callable[[str], Any]]]
"""The fields that depend on one option alone: its name, and how to parse it."""

_PLAIN_SOURCE: Final[_Plain] = {
    "max_rows": ("maxRowsPerTrigger", _count),
    "max_bytes": ("maxBytesPerTrigger", _size),
    "partitions": ("partitions", _count),
    "rows_per_partition": ("rowsPerPartition", _count),
    "fail_on_data_loss": ("failOnDataLoss", _flag),
    "fail_on_gap": ("failOnGap", _flag),
    "journal_timeout": ("journalTimeout", _seconds),
    "reader": ("reader", _reader),
    "trim": ("trim", _flag),
    "retain_bytes": ("retainBytes", _size_or_none),
    "data": ("data", str.encode),
}
_PLAIN_SINK: Final[_Plain] = {
    "kind": ("kind", _kind),
    "data_column": ("dataColumn", _text),
    "metadata_column": ("metadataColumn", _text),
}
