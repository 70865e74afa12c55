"""Reads values in Avro's binary encoding, according to a plan.

The plan bounds the work: its depth is that of a schema, and each element of an array has at least one byte.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import Any, Final

__all__ = ["Cursor", "Kind", "Plan"]


class Kind(IntEnum):
    """The kinds of values, as they are encoded. Scalars come before containers."""

    UNION = 0
    STRING = 1
    INTEGER = 2
    NULL = 3
    BOOLEAN = 4
    DOUBLE = 5
    FLOAT = 6
    BYTES = 7
    FIXED = 8
    ENUM = 9
    RECORD = 10
    ARRAY = 11
    MAP = 12
    MISMATCH = 13
    """A type of the writer's that the reader does not have."""


_UNION: Final = Kind.UNION
_STRING: Final = Kind.STRING
_INTEGER: Final = Kind.INTEGER
_NULL: Final = Kind.NULL
_BOOLEAN: Final = Kind.BOOLEAN
_DOUBLE: Final = Kind.DOUBLE
_FLOAT: Final = Kind.FLOAT
_FIXED: Final = Kind.FIXED
_ENUM: Final = Kind.ENUM
_RECORD: Final = Kind.RECORD
_ARRAY: Final = Kind.ARRAY
_MAP: Final = Kind.MAP

_unpack_float = Struct("<f").unpack_from
_unpack_double = Struct("<d").unpack_from


class Plan:
    """How to read one type of values.

    Args:
        kind: How the value is encoded.
        inner: The plans of a union's branches, of a record's fields in the order of the writer, or of elements.
        low: The smallest valid integer.
        high: The largest valid integer; or the bytes of a fixed.
        factor: The factor of integers, whose range excludes an overflow.
        slots: The index of each field in the list that a record becomes; -1 for a field that is not needed.
        blank: A record with the defaults of fields that the writer does not have.
        symbols: Those of an enum.
        convert: Converts the value; None: it stays as it is.

    """

    __slots__ = ("blank", "convert", "factor", "high", "inner", "kind", "low", "slots", "symbols")

    def __init__(
        self,
        kind: Kind,
        inner: tuple[Plan, ...] = (),
        *,
        low: int = 0,
        high: int = 0,
        factor: int = 1,
        slots: tuple[int, ...] = (),
        blank: tuple[Any, ...] = (),
        symbols: tuple[str, ...] = (),
        convert: Callable[[Any], Any] | None = None,
    ) -> None:
        self.kind = kind
        self.inner = inner
        self.low = low
        self.high = high
        self.factor = factor
        self.slots = slots
        self.blank = list(blank)
        self.symbols = symbols
        self.convert = convert


class Cursor:
    """Reads the values of one item. Malformed data raises `ValueError`."""

    __slots__ = ("at", "data", "size")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.size = len(data)

    def whole(self, plan: Plan) -> Any:
        """Return the value that the item is."""
        value = self.value(plan)
        if self.at != self.size:
            raise ValueError("the item is longer than its record")
        return value

    def value(self, plan: Plan) -> Any:
        """Return the next value."""
        kind = plan.kind
        if kind == _UNION:
            return self.value(plan.inner[self._index(len(plan.inner))])
        if kind < _RECORD:
            value = self._scalar(plan, kind)
        elif kind == _RECORD:
            value = self._record(plan)
        elif kind == _ARRAY:
            value = self._array(plan.inner[0])
        elif kind == _MAP:
            value = self._map(plan.inner[0])
        else:
            raise ValueError("the reader's schema has no type for a value")
        return value if plan.convert is None else plan.convert(value)

    def _scalar(self, plan: Plan, kind: int) -> Any:
        if kind == _STRING:
            at = self._skip(self._number())
            return self.data[at : self.at].decode()
        if kind == _INTEGER:
            number = self._number()
            if not plan.low <= number <= plan.high:
                raise ValueError("a number is out of range")
            return number * plan.factor
        if kind == _NULL:
            return None
        if kind == _BOOLEAN:
            byte = self._byte()
            if byte > 1:
                raise ValueError("a boolean is neither 0 nor 1")
            return byte == 1
        if kind == _DOUBLE:
            return _unpack_double(self.data, self._skip(8))[0]
        if kind == _FLOAT:
            return _unpack_float(self.data, self._skip(4))[0]
        if kind == _ENUM:
            return plan.symbols[self._index(len(plan.symbols))]
        at = self._skip(plan.high if kind == _FIXED else self._number())
        return self.data[at : self.at]

    def _record(self, plan: Plan) -> list[Any]:
        values = plan.blank.copy()
        for index in range(len(plan.inner)):
            value = self.value(plan.inner[index])
            slot = plan.slots[index]
            if slot >= 0:
                values[slot] = value
        return values

    def _array(self, element: Plan) -> list[Any]:
        values = []
        count = self._count()
        while count:
            values += [self.value(element) for _ in range(count)]
            count = self._count()
        return values

    def _map(self, element: Plan) -> dict[str, Any]:
        values = {}
        count = self._count()
        while count:
            for _ in range(count):
                at = self._skip(self._number())
                key = self.data[at : self.at].decode()
                values[key] = self.value(element)
            count = self._count()
        return values

    def _count(self) -> int:
        """Return the number of elements in the next block; 0 after the last one."""
        count = self._number()
        if count < 0:
            # The size of the block in bytes follows.
            self._number()
            count = -count
        if not 0 <= count <= self.size:
            raise ValueError("a block has more elements than the item has bytes")
        return count

    def _index(self, count: int) -> int:
        index = self._number()
        if not 0 <= index < count:
            raise ValueError("a union or an enum has an index out of range")
        return index

    def _number(self) -> int:
        """Return a number: little-endian groups of seven bits, of which the first bit is the sign."""
        shift = 7
        byte = self._byte()
        value = byte & 0x7F
        while byte & 0x80:
            byte = self._byte()
            if shift == 63 and byte > 1:
                raise ValueError("a number has more than 64 bits")
            value |= (byte & 0x7F) << shift
            shift += 7
        return (value >> 1) ^ -(value & 1)

    def _byte(self) -> int:
        return self.data[self._skip(1)]

    def _skip(self, size: int) -> int:
        """Return the offset of the next bytes, and go behind them."""
        at = self.at
        if not 0 <= size <= self.size - at:
            raise ValueError("the item ends within a value")
        self.at = at + size
        return at
