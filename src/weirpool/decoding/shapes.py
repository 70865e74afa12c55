"""The Python type of an Arrow schema: JSON, MessagePack and CBOR are decoded to it, and checked on the way."""

from __future__ import annotations

import types
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Meta, inspect

from ..errors import LocalError
from ..values.conversion import Fix, Forms
from ..values.decoder import Decoder, Reader
from ..values.forms import TIME_FORMS, WHOLE_FLOATS
from .columns import FACTORS, Attributes, Columns
from .rows import RowDecoder
from .times import MAX_TIME, MIN_TIME, microseconds

__all__ = ["Shape"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SIMPLE: Final[dict[pa.DataType, Any]] = {
    pa.bool_(): bool,
    pa.float32(): float,
    pa.float64(): float,
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), str),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), bytes),
    pa.date32(): date,
    **dict.fromkeys((pa.time64("us"), pa.time64("ns")), time),
    **dict.fromkeys((pa.duration("us"), pa.duration("ns")), timedelta),
}
_RANGES: Final[dict[pa.DataType, tuple[int, int | None]]] = {
    **{kind: (0, (1 << kind.bit_width) - 1) for kind in (pa.uint8(), pa.uint16(), pa.uint32())},
    # Its upper limit is checked when the column is built: msgspec has no limits of 64 bits.
    pa.uint64(): (0, None),
    **{
        kind: (-(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1)
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    },
}


class Shape:
    """The class of objects with the fields of a schema. Every value may be missing or null.

    Args:
        schema: The fields; a type without an equivalent raises `LocalError`.
        unit: The unit of numbers that are timestamps: s, ms, us or ns, since 1970.
        arrays: Objects are arrays of their members, in this order.
        whole_floats: The format has floats without a fraction for integers. They are decoded at once.

    Attributes:
        row: A `msgspec.Struct` class.
        columns: Builds columns from its instances.
        forms: The forms that times have.

    """

    def __init__(self, schema: pa.Schema, unit: str, *, arrays: bool = False, whole_floats: bool = False) -> None:
        self._unit = unit
        self.forms: Forms = {**TIME_FORMS, inspect.DateTimeType: self._time_form}
        self.row = _Types(unit, arrays).struct(list(schema))
        self._first = _Types(unit, arrays, whole_floats=True).struct(list(schema)) if whole_floats else self.row
        self.columns = Columns(schema, Attributes(), unit)

    def decoder(self, reader: Reader, too_deep: Callable[[bytes], int] | None = None) -> RowDecoder:
        """Return a decoder of items that a format's reader reads; `too_deep` is that of :class:`RowDecoder`."""
        load = reader.strict(self._first, None)
        return RowDecoder(load, self.row(), self.columns, too_deep, decoder=Decoder(reader, self.row))

    def _time_form(self, info: inspect.DateTimeType) -> Fix:
        usual = TIME_FORMS[inspect.DateTimeType](info)
        assert usual is not None
        factor, divisor = FACTORS[self._unit]
        epoch = _EPOCH.replace(tzinfo=None) if info.tz is False else _EPOCH

        def fix(value: Any) -> Any:
            if type(value) is Decimal:
                return epoch + timedelta(microseconds=microseconds(value, factor, divisor))
            return usual(value)

        return fix


class _Types:
    """The Python types of Arrow types."""

    def __init__(self, unit: str, arrays: bool, *, whole_floats: bool = False) -> None:
        self._unit = unit
        self._arrays = arrays
        self._whole_floats = whole_floats

    def struct(self, fields: list[pa.Field]) -> type[msgspec.Struct]:
        """Return the class of objects with these fields."""
        # A field's name need not be an identifier.
        names = {f"f{index}": field.name for index, field in enumerate(fields)}
        members = [(name, self._type(field.type, field.name), None) for name, field in zip(names, fields, strict=True)]
        return msgspec.defstruct("Row", members, rename=names, gc=False, array_like=self._arrays)

    def _type(self, kind: pa.DataType, name: str) -> Any:
        return self._value_type(kind, name) | None

    def _value_type(self, kind: pa.DataType, name: str) -> Any:
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        if kind in _RANGES:
            return self._integer(*_RANGES[kind])
        if pa.types.is_decimal(kind):
            return Decimal
        if pa.types.is_timestamp(kind):
            return self._timestamp(aware=kind.tz is not None)
        if pa.types.is_struct(kind):
            return self.struct([kind.field(index) for index in range(kind.num_fields)])
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return types.GenericAlias(list, (self._type(kind.value_type, name),))
        if pa.types.is_map(kind) and kind.key_type in (pa.string(), pa.int32(), pa.int64()):
            return types.GenericAlias(dict, (self._value_type(kind.key_type, name), self._type(kind.item_type, name)))
        raise LocalError(f"field {name!r} is of type {kind}, which items cannot be decoded to; declare another type")

    def _integer(self, low: int, high: int | None) -> Any:
        whole = Annotated[int, Meta(ge=low, le=high)]
        if not self._whole_floats:
            return whole
        limit = WHOLE_FLOATS if high is None else min(high, WHOLE_FLOATS)
        return whole | Annotated[float, Meta(ge=max(low, -WHOLE_FLOATS), le=limit, multiple_of=1)]

    def _timestamp(self, *, aware: bool) -> Any:
        factor, divisor = FACTORS[self._unit]
        low, high = MIN_TIME * divisor // factor, MAX_TIME * divisor // factor
        if self._unit == "ns":
            low, high = -(1 << 63), (1 << 63) - 1
        # A time without an offset is taken as UTC. One with an offset is not a local time.
        instant = datetime if aware else Annotated[datetime, Meta(tz=False)]
        return instant | Annotated[int, Meta(ge=low, le=high)] | Annotated[float, Meta(ge=low, le=high)]
