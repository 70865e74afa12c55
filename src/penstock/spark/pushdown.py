"""The rows that a batch needs to read, according to the filters of the query.

Filters on `source`, `position` and `time` exclude logs, positions and segments. Spark applies all filters again to the
rows that are read, so that a filter has to exclude only what it can exclude cheaply and for certain.

Spark refuses a reader with `pushFilters` unless ``spark.sql.python.filterPushdown.enabled`` is true, which is not the
default and which a data source cannot see. If it is true, however, readers with filters are made by another worker,
whose module is loaded nowhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

from ..journal.layout import Extent
from .survey import Span, remaining

__all__ = ["Needed", "filters_are_pushed"]

WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"
"""The module of the process in which Spark pushes filters."""

_ALL: Final[Span] = (-(1 << 63), 1 << 63)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_TEXT: Final[Mapping[type[Any], Callable[[str, Any], bool]]] = {
    EqualTo: lambda name, value: name == value,
    EqualNullSafe: lambda name, value: name == value,
    GreaterThan: lambda name, value: name > value,
    GreaterThanOrEqual: lambda name, value: name >= value,
    LessThan: lambda name, value: name < value,
    LessThanOrEqual: lambda name, value: name <= value,
    StringStartsWith: str.startswith,
    StringEndsWith: str.endswith,
    StringContains: lambda name, value: value in name,
}
_NUMBER: Final[Mapping[type[Any], Callable[[int], Span]]] = {
    EqualTo: lambda value: (value, value + 1),
    EqualNullSafe: lambda value: (value, value + 1),
    GreaterThan: lambda value: (value + 1, _ALL[1]),
    GreaterThanOrEqual: lambda value: (value, _ALL[1]),
    LessThan: lambda value: (_ALL[0], value),
    LessThanOrEqual: lambda value: (_ALL[0], value + 1),
}


def filters_are_pushed() -> bool:
    """Return True in the process in which Spark pushes filters."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    # Without a daemon that forks, as on Windows, the module is the program.
    return WORKER in sys.modules or (main is not None and main.name == WORKER)


@dataclass(frozen=True, slots=True)
class Needed:
    """The rows that pass some filters, and possibly others. Without filters it is all rows."""

    names: tuple[Filter, ...] = ()
    """Filters on the source."""
    positions: Span = _ALL
    """Their positions."""
    times: Span = _ALL
    """When they were received, in microseconds since 1970."""

    @classmethod
    def of(cls, filters: Iterable[Filter]) -> Needed:
        """Return the rows that pass all of these filters."""
        names: list[Filter] = []
        positions = times = _ALL
        for each in filters:
            column = _column(each)
            if column == "source":
                names.append(each)
            elif column == "position":
                positions = _both(positions, _span(each, _position))
            elif column == "time":
                times = _both(times, _span(each, _microseconds))
        return cls(tuple(names), positions, times)

    def has(self, source: str) -> bool:
        """Return True if rows of a source may be needed."""
        return all(_passes(each, source) for each in self.names)

    def within(self, span: Span) -> Span:
        """Return the positions of a range that may be needed; an empty range at its beginning if none are."""
        first, end = _both(span, self.positions)
        return (first, end) if first < end else (span[0], span[0])

    def parts(self, span: Span, extents: Iterable[Extent]) -> list[Span]:
        """Return the parts of a range that may be needed, according to the times of a log's segments."""
        excluded = [] if self.times == _ALL else [each for each in extents if not self._may_be_received_in(each)]
        return list(remaining(*span, [(each.first, each.end) for each in excluded]))

    def _may_be_received_in(self, extent: Extent) -> bool:
        if extent.times is None:
            return True
        first, end = _both(self.times, (extent.times[0], extent.times[1] + 1))
        return first < end


def _column(each: Filter) -> str | None:
    while isinstance(each, Not):
        each = each.child
    path: tuple[str, ...] = getattr(each, "attribute", ())
    return path[0] if len(path) == 1 else None


def _passes(each: Filter, source: str) -> bool:
    """Return False if a row of this source does not pass a filter on the source, which is never null."""
    if isinstance(each, Not):
        # What is unknown about a filter is unknown about its opposite.
        return not (_is_known(each.child) and _passes(each.child, source))
    if isinstance(each, In):
        return source in each.value or not _is_known(each)
    return _TEXT[type(each)](source, each.value) if _is_known(each) else True  # type: ignore[attr-defined]


def _is_known(each: Filter) -> bool:
    if isinstance(each, In):
        return all(isinstance(value, str) for value in each.value)
    return type(each) in _TEXT and isinstance(each.value, str)  # type: ignore[attr-defined]


def _span(each: Filter, number: Callable[[Any], int | None]) -> Span:
    """Return the numbers that pass a filter."""
    values = each.value if isinstance(each, In) else (getattr(each, "value", None),)
    numbers = [number(value) for value in values]
    known = [value for value in numbers if value is not None]
    if not known or len(known) < len(numbers):
        return _ALL
    if isinstance(each, In):
        return min(known), max(known) + 1
    return _NUMBER[type(each)](known[0]) if type(each) in _NUMBER else _ALL


def _position(value: Any) -> int | None:
    return value if type(value) is int else None


def _microseconds(value: Any) -> int | None:
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // _MICROSECOND


def _both(one: Span, other: Span) -> Span:
    return max(one[0], other[0]), min(one[1], other[1])
