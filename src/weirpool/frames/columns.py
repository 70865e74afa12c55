"""Record batches from values of a Python type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from ..errors import LocalError, Mismatch
from .types import Kind, Member, kind_of, members_of

__all__ = ["ValueColumns"]

VALUE: Final = "value"
"""The column of values that are not structures."""
_ERRORS: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)


class ValueColumns:
    """Makes record batches of values. A structure has a column for each field, any other value the column `value`.

    Args:
        wanted: The type of the values.
        decode: Returns the value of an item's data.
        schema: The columns; None: those that follow from the type. A column gets the values of the field of its name.

    Attributes:
        schema: The columns.

    Raises:
        LocalError: A field does not fit into a column, or the type has no field for a column.

    """

    def __init__(self, wanted: Any, decode: Callable[[bytes], Any], schema: pa.Schema | None = None) -> None:
        members = members_of(wanted)
        if members is None:
            members = [Member(VALUE, lambda value: value, wanted)]
        if schema is None:
            kinds = [kind_of(member.type, member.name) for member in members]
            schema = pa.schema([(member.name, kind.type) for member, kind in zip(members, kinds, strict=True)])
        else:
            members = _chosen(members, schema)
            kinds = [_given(member, field) for member, field in zip(members, schema, strict=True)]
        self.schema = schema
        self._decode = decode
        self._columns = list(zip(members, kinds, strict=True))

    def convert(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the values of a record batch of items.

        Raises:
            Mismatch: An item is not of the type, or does not fit into its column.

        """
        yield self.build(list(map(self._decode, batch.column("data").to_pylist())))

    def build(self, values: Sequence[Any]) -> pa.RecordBatch:
        """Return a record batch of values."""
        arrays = [_array(member, kind, values) for member, kind in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _array(member: Member, kind: Kind, values: Sequence[Any]) -> pa.Array:
    try:
        return pa.array(kind.each(map(member.get, values)), type=kind.type)
    except _ERRORS as error:
        problem = f"a value does not fit into a column of type {kind.type}: {error}; pass another schema"
        raise Mismatch(problems=[(f"/{member.name}", problem)]) from None


def _chosen(members: list[Member], schema: pa.Schema) -> list[Member]:
    """Return the member for each column."""
    known = {member.name: member for member in members}
    missing = [name for name in schema.names if name not in known]
    if missing:
        raise LocalError(f"the schema has a column {missing[0]!r}, but the values have {', '.join(known)}")
    return [known[name] for name in schema.names]


def _given(member: Member, field: pa.Field) -> Kind:
    """Return how values become a column of a given type."""
    try:
        return Kind(field.type, kind_of(member.type, member.name).convert)
    except LocalError:
        # Arrow may know more about the values than their type says.
        return Kind(field.type)
