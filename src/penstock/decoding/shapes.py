"""The Python type of an Arrow schema: JSON, MessagePack and CBOR are decoded to it, and checked on the way."""

from __future__ import annotations

import types
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final

import msgspec
import pyarrow as pa
from msgspec import Meta

from ..errors import LocalError
from .columns import FACTORS, Attributes, Columns
from .times import MAX_TIME, MIN_TIME

__all__ = ["Shape"]

_SIMPLE: Final[dict[pa.DataType, Any]] = {
    pa.bool_(): bool,
    pa.float32(): float,
    pa.float64(): float,
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), str),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), bytes),
    pa.date32(): date,
    **dict.fromkeys((pa.time64("us"), pa.time64("ns")), time),
    **dict.fromkeys((pa.duration("us"), pa.duration("ns")), timedelta),
    **{
        kind: Annotated[int, Meta(ge=0, le=(1 << kind.bit_width) - 1)]
        for kind in (pa.uint8(), pa.uint16(), pa.uint32())
    },
    # Its upper limit is checked when the column is built: msgspec has no limits of 64 bits.
    pa.uint64(): Annotated[int, Meta(ge=0)],
    **{
        kind: Annotated[int, Meta(ge=-(1 << kind.bit_width - 1), le=(1 << kind.bit_width - 1) - 1)]
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64())
    },
}


class Shape:
    """The class of objects with the fields of a schema. Every value may be missing or null.

    Args:
        schema: The fields; a type without an equivalent raises `LocalError`.
        unit: The unit of numbers that are timestamps: s, ms, us or ns, since 1970.

    Attributes:
        row: A `msgspec.Struct` class.
        columns: Builds columns from its instances.

    """

    def __init__(self, schema: pa.Schema, unit: str) -> None:
        self._unit = unit
        self.row = self._struct(list(schema))
        self.columns = Columns(schema, Attributes(), unit)

    def _struct(self, fields: list[pa.Field]) -> type[msgspec.Struct]:
        # A field's name need not be an identifier.
        names = {f"f{index}": field.name for index, field in enumerate(fields)}
        members = [(name, self._type(field.type, field.name), None) for name, field in zip(names, fields, strict=True)]
        return msgspec.defstruct("Row", members, rename=names, gc=False)

    def _type(self, kind: pa.DataType, name: str) -> Any:
        return self._value_type(kind, name) | None

    def _value_type(self, kind: pa.DataType, name: str) -> Any:
        if kind in _SIMPLE:
            return _SIMPLE[kind]
        if pa.types.is_decimal(kind):
            return Decimal
        if pa.types.is_timestamp(kind):
            return self._timestamp(aware=kind.tz is not None)
        if pa.types.is_struct(kind):
            return self._struct([kind.field(index) for index in range(kind.num_fields)])
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return types.GenericAlias(list, (self._type(kind.value_type, name),))
        if pa.types.is_map(kind) and kind.key_type in (pa.string(), pa.int32(), pa.int64()):
            return types.GenericAlias(dict, (_SIMPLE[kind.key_type], self._type(kind.item_type, name)))
        raise LocalError(f"field {name!r} is of type {kind}, which items cannot be decoded to; declare another type")

    def _timestamp(self, *, aware: bool) -> Any:
        factor, divisor = FACTORS[self._unit]
        low, high = MIN_TIME * divisor // factor, MAX_TIME * divisor // factor
        if self._unit == "ns":
            low, high = -(1 << 63), (1 << 63) - 1
        # A time without an offset is taken as UTC. One with an offset is not a local time.
        instant = datetime if aware else Annotated[datetime, Meta(tz=False)]
        return instant | Annotated[int, Meta(ge=low, le=high)] | Annotated[float, Meta(ge=low, le=high)]
