"""The time of an event, from a decoded field."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import LocalError
from ..values.forms import text_time
from .columns import FACTORS
from .decoded import Decoded, nulled
from .times import MAX_TIME, MIN_TIME, divided, microseconds

__all__ = ["EVENT_TIME", "EventTime"]

EVENT_TIME: Final = pa.field("event_time", pa.timestamp("us", tz="UTC"))
_MAX_LONG: Final = (1 << 63) - 1


class EventTime:
    """Adds the column `event_time` to decoded rows.

    Args:
        fields: The decoded fields.
        path: The field that has the time; with dots, a member of a struct. It is a timestamp, a date, a number since
            1970, or text in ISO 8601. A time without an offset is taken as UTC. `LocalError` is raised for others.
        unit: The unit of numbers: s, ms, us or ns.

    """

    def __init__(self, fields: pa.Schema, path: str, unit: str) -> None:
        self._path = _resolved(fields, path)
        self._unit = unit

    def add(self, decoded: Decoded) -> Decoded:
        """Return the same rows with the column. A row whose time cannot be converted is malformed."""
        source = pc.struct_field(decoded.fields.to_struct_array(), self._path)
        times, valid = _converted(source, self._unit)
        fields, malformed = decoded.fields, decoded.malformed
        invalid = pc.and_(source.is_valid(), pc.invert(valid))
        if pc.any(invalid).as_py():
            rows = [row for row, wrong in enumerate(invalid.to_pylist()) if wrong]
            fields = nulled(fields, set(rows))
            found = dict.fromkeys(rows, "the event time cannot be converted")
            malformed = dict(sorted({**found, **malformed}.items()))
        return Decoded(decoded.count, fields.append_column(EVENT_TIME, times), malformed, decoded.items)


def _resolved(fields: pa.Schema, path: str) -> list[int]:
    """Return the index of a field at each level."""
    indices: list[int] = []
    kind: pa.DataType = pa.struct(list(fields))
    for name in path.split("."):
        index = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
        if index < 0:
            raise LocalError(f"the event time is in field {path!r}, which is not decoded; add it to the columns")
        indices.append(index)
        kind = kind.field(index).type
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_timestamp, pa.types.is_date, pa.types.is_string)
    if not any(check(kind) for check in checks):
        raise LocalError(f"field {path!r} is of type {kind}, which is not a time")
    return indices


def _converted(values: pa.Array, unit: str) -> tuple[pa.Array, pa.Array]:
    """Return the times, and where they are valid."""
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        return _of_numbers(values, unit)
    if pa.types.is_string(values.type):
        times = pa.array([_of_text(text) for text in values.to_pylist()], EVENT_TIME.type)
    else:
        times = values.cast(pa.timestamp("us")).cast(EVENT_TIME.type)
    return times, times.is_valid()


def _of_numbers(values: pa.Array, unit: str) -> tuple[pa.Array, pa.Array]:
    factor, divisor = FACTORS[unit]
    low, high = MIN_TIME * divisor // factor, MAX_TIME * divisor // factor
    if pa.types.is_floating(values.type):
        limits = [pa.scalar(float(limit)) for limit in (low, high)]
    else:
        limits = [pa.scalar(max(-_MAX_LONG, min(limit, _MAX_LONG))) for limit in (low, high)]
    inside = pc.and_(pc.greater_equal(values, limits[0]), pc.less_equal(values, limits[1])).fill_null(False)
    numbers = pc.if_else(inside, values, None)
    if pa.types.is_floating(values.type):
        found = [None if number is None else microseconds(number, factor, divisor) for number in numbers.to_pylist()]
        return pa.array(found, EVENT_TIME.type), inside
    return divided(pc.multiply(numbers, factor).cast(pa.int64()), divisor).cast(EVENT_TIME.type), inside


def _of_text(text: str | None) -> datetime | None:
    try:
        time = None if text is None else datetime.fromisoformat(text_time(text))
    except ValueError:
        return None
    if time is None or time.tzinfo is None:
        return time if time is None else time.replace(tzinfo=UTC)
    try:
        return time.astimezone(UTC)
    except OverflowError:
        # Its offset leads out of the years that there are.
        return None
