"""The columns of decoded items: those of a journal, the fields, and what is known of malformed items.

The fields follow from the schema of the format, if it has one (Avro, Protobuf). Otherwise they are columns in Spark's
own language. Only Spark can parse that, so the whole schema is text then.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from ..decoding.encoding import Encoding
from ..decoding.eventtime import EVENT_TIME
from ..errors import LocalError
from ..strict_json import strict_json
from .decode_options import DecodeOptions, Mode
from .schema import COLUMNS

__all__ = ["CORRUPT", "ERROR", "INDEX", "columns_without_fields", "grouped", "requested_fields", "typed_schema"]

CORRUPT: Final = "_corrupt"
"""The column of malformed items."""
ERROR: Final = "_error"
"""The column of the reasons."""
INDEX: Final = "index"
"""The column that numbers the rows of an item, for formats whose items have several."""


def typed_schema(options: DecodeOptions) -> StructType | str:
    """Return all columns; as text, if the fields are given as text. `LocalError` if they cannot be columns."""
    encoding = options.encoding()
    if encoding.has_schema:
        return _joined(options, from_arrow_schema(encoding.fields()))
    text = options.given_schema().decode()
    if text.lstrip().startswith("{"):
        return _joined(options, _parsed(text))
    # A comment at the end must not hide the columns that follow.
    fields = f"{text.strip()}\n" if options.into is None else f"{_quoted(options.into)} STRUCT<{text.strip()}\n>"
    before, after = columns_without_fields(options)
    return f"{_ddl(before)}, {fields}, {_ddl(after)}"


def columns_without_fields(options: DecodeOptions) -> tuple[StructType, StructType]:
    """Return the columns before and after the fields."""
    before = [COLUMNS[name] for name in ("source", "position", "time", "stream")]
    after = [COLUMNS["metadata"]]
    if options.format == "arrow":
        before.append(StructField(INDEX, IntegerType()))
    if options.event_time is not None:
        before.append(StructField(EVENT_TIME.name, TimestampType()))
    if options.mode is Mode.PERMISSIVE:
        after += [StructField(CORRUPT, BinaryType()), StructField(ERROR, StringType())]
    return StructType(before), StructType(after)


def _parsed(text: str) -> StructType:
    try:
        schema = _nullable(StructType.fromJson(strict_json(text)))
    except (ValueError, KeyError, TypeError) as error:
        raise LocalError(
            f'option "decodeSchema" is not a schema in JSON, as df.schema.json() returns it: {error}'
        ) from error
    assert isinstance(schema, StructType)
    return schema


def requested_fields(options: DecodeOptions, encoding: Encoding, schema: StructType) -> StructType:
    """Return the fields to decode for a schema; `LocalError` if one is not in items, or cannot be told apart."""
    for name, count in Counter(field.name.lower() for field in schema).items():
        if count > 1:
            raise LocalError(
                f"{count} columns are called {name!r}: a field of the items has the name of another column; set the "
                'option "decodeInto" to the name of one column for all fields'
            )
    before, after = columns_without_fields(options)
    others = {field.name for field in (*before, COLUMNS["data"], *after)}
    fields = [field for field in schema if field.name not in others]
    if options.into is not None:
        fields = _members(options.into, fields)
    for field in fields:
        if not field.nullable or field.dataType != _nullable(field.dataType):
            raise LocalError(f"field {field.name!r} may be null, and so may its parts; declare none of them NOT NULL")
    if encoding.has_schema:
        return from_arrow_schema(encoding.select([field.name for field in fields]))
    return StructType(fields)


def grouped(options: DecodeOptions, fields: StructType) -> StructType:
    """Return the columns that have the fields."""
    return fields if options.into is None else StructType([StructField(options.into, fields)])


def _members(name: str, columns: list[StructField]) -> list[StructField]:
    members: list[StructField] = []
    for column in columns:
        if column.name != name or not isinstance(column.dataType, StructType):
            raise LocalError(f'there is no column {column.name!r}; "decodeInto" puts all fields into struct {name!r}')
        members += column.dataType.fields
    return members


def _nullable(kind: DataType) -> DataType:
    """Return a type all of whose parts may be null."""
    if isinstance(kind, StructType):
        return StructType([StructField(field.name, _nullable(field.dataType)) for field in kind])
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable(kind.elementType))
    return MapType(_nullable(kind.keyType), _nullable(kind.valueType)) if isinstance(kind, MapType) else kind


def _joined(options: DecodeOptions, fields: StructType) -> StructType:
    before, after = columns_without_fields(options)
    return StructType([*before, *grouped(options, fields), *after])


def _ddl(columns: StructType) -> str:
    return ", ".join(f"{_quoted(field.name)} {field.dataType.simpleString()}" for field in columns)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
