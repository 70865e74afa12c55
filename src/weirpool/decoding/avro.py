"""Avro: one record per item, in Avro's binary encoding, without the header of a container file."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any, Final

import pyarrow as pa

from ..errors import LocalError
from ..strict_json import strict_json
from .avro_plans import record_plan
from .avro_values import Cursor, Plan
from .columns import Columns, Elements
from .rows import ITEM_ERRORS, RowDecoder

__all__ = ["AvroSchema"]

_PRIMITIVE: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "fixed": pa.binary(),
    "enum": pa.string(),
}
_LOGICAL: Final = {
    "date": pa.date32(),
    "timestamp-millis": pa.timestamp("us", tz="UTC"),
    "timestamp-micros": pa.timestamp("us", tz="UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
}
_DECIMAL: Final = "decimal"
_MAX_PRECISION: Final = 38
# Confluent's wire format: this byte, and the number of the schema in four bytes.
_MAGIC: Final = b"\0"
_FRAMED: Final = 'perhaps it is in Confluent\'s wire format; if so, set "decodeSchemaId" to the number of its schema'
_ONE_TYPE: Final = {frozenset({"int", "long"}): "long", frozenset({"float", "double"}): "double"}
"""Unions that are one type in Spark."""


class AvroSchema:
    """A schema of items.

    Args:
        text: The schema of the columns, as JSON.
        writer: The schema that the items were written with, if it is another one.
        schema_id: The number of that schema, which is before each item in Confluent's wire format; None: nothing is.

    `LocalError` is raised if a schema is invalid, or allows items that take unbounded time.

    """

    def __init__(self, text: bytes, writer: bytes | None = None, schema_id: int | None = None) -> None:
        if schema_id is not None and schema_id >= 1 << 32:
            raise LocalError(f"the number of an Avro schema is {schema_id}; it has 32 bits")
        self._head = b"" if schema_id is None else _MAGIC + schema_id.to_bytes(4, "big")
        self._schema = _parsed(text)
        self._writer = self._schema if writer is None else _parsed(writer)
        _smallest(_expanded(self._writer))

    @cached_property
    def fields(self) -> pa.Schema:
        """All fields; `LocalError` if one has a type without an equivalent."""
        return self.select(field["name"] for field in self._schema["fields"])

    def select(self, names: Iterable[str]) -> pa.Schema:
        """Return some of the fields; `LocalError` if there is no such field, or it has a type without an equivalent."""
        types = {field["name"]: field["type"] for field in _expanded(self._schema)["fields"]}
        fields = []
        for name in names:
            if name not in types:
                raise LocalError(f"the Avro schema has no field {name!r}")
            fields.append(pa.field(name, _type(types[name], name)))
        return pa.schema(fields)

    def decoder(self, fields: pa.Schema) -> RowDecoder:
        """Return a decoder of these fields, which `select` has returned.

        `LocalError` is raised if the writer's schema has no values for one.
        """
        plan = record_plan(_expanded(self._writer), _expanded(self._schema), fields.names)
        blank = [None] * len(fields)
        return RowDecoder(partial(_read, plan, self._head), blank, Columns(fields, Elements()))


def _read(plan: Plan, head: bytes, item: bytes) -> list[Any]:
    """Return the fields of an item."""
    if not head:
        try:
            return Cursor(item).whole(plan)  # type: ignore[no-any-return]
        except ITEM_ERRORS as error:
            raise (ValueError(f"{error}; {_FRAMED}") if item.startswith(_MAGIC) else error) from None
    if not item.startswith(head):
        raise ValueError("the item does not begin with the number of the schema, in Confluent's wire format")
    return Cursor(item[len(head) :]).whole(plan)  # type: ignore[no-any-return]


def _parsed(text: bytes) -> dict[str, Any]:
    """Return a schema as fastavro uses it; `LocalError` if it is not the schema of a record."""
    from fastavro import parse_schema
    from fastavro.schema import SchemaParseException, UnknownType

    try:
        schema = parse_schema(_simplified(strict_json(text)))
    except (SchemaParseException, UnknownType, KeyError, TypeError, ValueError) as error:
        raise LocalError(f"invalid Avro schema: {error}") from error
    if not isinstance(schema, dict) or schema["type"] not in ("record", "error"):
        raise LocalError("the Avro schema of items must be a record, whose fields are the columns")
    return schema


def _expanded(schema: dict[str, Any]) -> Any:
    """Return a parsed schema with definitions in place of names, except in a type that contains itself."""
    from fastavro import parse_schema

    return parse_schema(schema, expand=True, _force=True)


def _simplified(schema: Any) -> Any:
    """Return a schema without those logical types that are read as the type that they annotate."""
    if isinstance(schema, list):
        return [_simplified(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    known = schema.get("logicalType") in (*_LOGICAL, _DECIMAL)
    return {
        name: value if name == "default" else _simplified(value)
        for name, value in schema.items()
        if known or name != "logicalType"
    }


def _type(schema: Any, name: str) -> pa.DataType:
    """Return the column type of a field, of which `name` is the path."""
    if isinstance(schema, list):
        return _union_type(schema, name)
    kind = schema["type"] if isinstance(schema, dict) else schema
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if logical == _DECIMAL and schema["precision"] <= _MAX_PRECISION:
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if kind in _PRIMITIVE and logical is None:
        return _PRIMITIVE[kind]
    if kind == "array":
        return pa.list_(_type(schema["items"], name))
    if kind == "map":
        return pa.map_(pa.string(), _type(schema["values"], name))
    if kind in ("record", "error"):
        return pa.struct(
            [pa.field(field["name"], _type(field["type"], f"{name}.{field['name']}")) for field in schema["fields"]]
        )
    raise LocalError(f"field {name!r} of the Avro schema is of type {logical or kind}, which a column cannot hold")


def _union_type(schemas: list[Any], name: str) -> pa.DataType:
    kinds = [schema for schema in schemas if schema != "null"]
    names = {schema if isinstance(schema, str) else schema["type"] for schema in kinds}
    if len(kinds) > 1 and frozenset(names) in _ONE_TYPE:
        kinds = [_ONE_TYPE[frozenset(names)]]
    if len(kinds) != 1:
        raise LocalError(f"field {name!r} of the Avro schema may have {len(kinds)} types; a column has one")
    return _type(kinds[0], name)


def _smallest(schema: Any) -> int:
    """Return the fewest bytes of a value; `LocalError` if a few bytes may be a value of any size."""
    if isinstance(schema, list):
        return 1 + min((_smallest(each) for each in schema), default=0)
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind in ("record", "error"):
        return sum(_smallest(field["type"]) for field in schema["fields"])
    if kind == "array" and _smallest(schema["items"]) == 0:
        raise LocalError("the Avro schema has an array of values without bytes, which may claim any length")
    if kind == "map":
        _smallest(schema["values"])
    if kind == "fixed":
        return int(schema["size"])
    if kind != "array" and kind != "map" and kind != "null" and kind not in _PRIMITIVE:
        raise LocalError(f"type {kind} of the Avro schema contains itself, so that items may be nested to any depth")
    return 0 if kind == "null" else 1
