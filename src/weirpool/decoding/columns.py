"""Columns from decoded objects: one pass per field, so that the loops run in C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from itertools import accumulate, chain
from operator import attrgetter, itemgetter
from typing import Any, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from .times import check_times, microseconds

__all__ = ["FACTORS", "Attributes", "Columns", "Elements", "Fields", "Get"]

Build = Callable[[Sequence[Any]], pa.Array]
"""Converts the values of a column, of which each may be None."""
Get = Callable[[Any], Any]
"""Returns a field of an object."""

FACTORS: Final = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
"""Microseconds in a unit of time, as a fraction."""

_TIMES: Final = frozenset((datetime, type(None)))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOCAL_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_COARSER: Final = {"s": "second", "ms": "millisecond"}
# Spark's largest precision.
_DECIMALS: Final = Context(prec=38, rounding=ROUND_HALF_UP, traps=[InvalidOperation])


class Fields(Protocol):
    """Access to the fields of one kind of object."""

    def get(self, index: int, name: str) -> Get:
        """Return a function that gets a field, by its index in the schema and its name."""
        ...

    def inner(self, name: str) -> Fields:
        """Return access to the objects in a field."""
        ...


class Attributes:
    """Fields that are attributes: f0, f1 and so on, because names of fields need not be identifiers."""

    def get(self, index: int, name: str) -> Get:
        """Return a function that gets an attribute."""
        return attrgetter(f"f{index}")

    def inner(self, name: str) -> Attributes:
        """Return the same access."""
        return self


class Elements:
    """Fields that are elements of a list."""

    def get(self, index: int, name: str) -> Get:
        """Return a function that gets an element."""
        return itemgetter(index)

    def inner(self, name: str) -> Elements:
        """Return the same access."""
        return self


class Columns:
    """Builds record batches of a schema from objects.

    Args:
        schema: The fields.
        access: How to get the fields of an object.
        unit: The unit of numbers in columns of timestamps: s, ms, us or ns, since 1970.

    """

    def __init__(self, schema: pa.Schema, access: Fields, unit: str = "us") -> None:
        self._schema = schema
        self._get = [access.get(index, field.name) for index, field in enumerate(schema)]
        self._build = [_builder(field.type, access.inner(field.name), unit) for field in schema]

    def build(self, rows: Sequence[object]) -> pa.RecordBatch:
        """Return a batch with a row for each object.

        A value that does not fit its type raises `ValueError`, `TypeError` or `ArithmeticError`, which include Arrow's
        errors.
        """
        columns = [build(list(map(get, rows))) for get, build in zip(self._get, self._build, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _builder(kind: pa.DataType, access: Fields, unit: str) -> Build:
    """Return a function that converts values of a type; `access` is to the objects among them."""
    if pa.types.is_struct(kind):
        members = [kind.field(index) for index in range(kind.num_fields)]
        getters = [_of_value(access.get(index, member.name)) for index, member in enumerate(members)]
        builds = [_builder(member.type, access.inner(member.name), unit) for member in members]
        return partial(_structs, members, getters, builds)
    if pa.types.is_large_list(kind):
        lists = _builder(pa.list_(kind.value_field), access, unit)
        return lambda values: lists(values).cast(kind)
    if pa.types.is_list(kind):
        return partial(_lists, kind, _builder(kind.value_type, access, unit))
    if pa.types.is_map(kind):
        return partial(_maps, kind, _builder(kind.key_type, access, unit), _builder(kind.item_type, access, unit))
    if pa.types.is_decimal(kind):
        return partial(_decimals, kind)
    if pa.types.is_timestamp(kind):
        return partial(_timestamps, kind, *FACTORS[unit])
    if pa.types.is_float32(kind):
        return _floats
    return partial(pa.array, type=kind)


def _of_value(get: Get) -> Get:
    return lambda value: None if value is None else get(value)


def _structs(members: list[pa.Field], getters: list[Get], builds: list[Build], values: Sequence[Any]) -> pa.Array:
    children = [build(list(map(get, values))) for get, build in zip(getters, builds, strict=True)]
    return pa.StructArray.from_arrays(children, fields=members, mask=_nulls(values))


def _lists(kind: pa.DataType, build: Build, values: Sequence[Any]) -> pa.Array:
    items = build(list(chain.from_iterable(filter(None, values))))
    return pa.ListArray.from_arrays(_offsets(values), items, type=kind, mask=_nulls(values))


def _maps(kind: pa.DataType, keys: Build, items: Build, values: Sequence[Any]) -> pa.Array:
    pairs = list(chain.from_iterable(value.items() for value in values if value))
    return pa.MapArray.from_arrays(
        _offsets(values),
        keys([key for key, _ in pairs]),
        items([item for _, item in pairs]),
        type=kind,
        mask=_nulls(values),
    )


def _decimals(kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    # Rounded like Spark's from_json. A number that needs more than 38 digits raises InvalidOperation.
    step = Decimal(1).scaleb(-kind.scale)
    return pa.array([None if value is None else value.quantize(step, context=_DECIMALS) for value in values], kind)


def _floats(values: Sequence[Any]) -> pa.Array:
    wide = pa.array(values, pa.float64())
    narrow = wide.cast(pa.float32())
    if pc.any(pc.and_(pc.is_inf(narrow), pc.is_finite(wide))).as_py():
        raise ValueError("a number is too large")
    return narrow


def _timestamps(kind: pa.DataType, factor: int, divisor: int, values: Sequence[Any]) -> pa.Array:
    if _TIMES.issuperset(map(type, values)):
        found = _since(values, _LOCAL_EPOCH if kind.tz is None else _EPOCH)
    else:
        found = pa.array([_number(value, factor, divisor) for value in values], pa.int64())
    times = found.cast(pa.timestamp("us", kind.tz))
    # An offset may lead out of the years that there are.
    check_times(times)
    return times if times.type == kind else _in_unit(times, kind)


def _since(values: Sequence[datetime | None], epoch: datetime) -> pa.Array:
    """Return microseconds since 1970. Arrow converts spans of time several times faster than times with a zone."""
    try:
        spans = [None if value is None else value - epoch for value in values]
    except TypeError:
        # A time without an offset is UTC.
        spans = [None if value is None else _aware(value) - epoch for value in values]
    return pa.array(spans, pa.duration("us")).cast(pa.int64())


def _number(value: Any, factor: int, divisor: int) -> int | None:
    """Return the microseconds since 1970 of a time, or of a number in a unit."""
    if value is None or isinstance(value, int):
        return value if value is None else value * factor // divisor
    if isinstance(value, datetime):
        return (_aware(value) - _EPOCH) // _MICROSECOND
    return microseconds(value, factor, divisor)


def _aware(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


def _in_unit(times: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return times in another unit than microseconds, without their further digits."""
    unit = _COARSER.get(kind.unit)
    return (times if unit is None else pc.floor_temporal(times, unit=unit)).cast(kind)


def _offsets(values: Sequence[Any]) -> pa.Int32Array:
    return pa.array(accumulate((len(value) if value else 0 for value in values), initial=0), pa.int32())


def _nulls(values: Sequence[Any]) -> pa.BooleanArray:
    return pa.array([value is None for value in values], pa.bool_())
