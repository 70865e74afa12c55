"""The options that decode items into typed columns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from ..decoding.columns import FACTORS
from ..decoding.encoding import FORMATS, Encoding
from ..errors import LocalError
from .given import Given, Plain, as_count, as_flag, as_text, one_of

__all__ = ["DECODE_OPTIONS", "DecodeOptions", "Mode"]


class Mode(Enum):
    """What becomes of malformed items, as in Spark's own formats."""

    PERMISSIVE = "PERMISSIVE"
    """A row of nulls, with the item in the column `_corrupt`."""
    FAILFAST = "FAILFAST"
    """The task fails."""
    DROPMALFORMED = "DROPMALFORMED"
    """No row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeOptions:
    """The options of a source that concern the content of items."""

    format: str
    """One of `FORMATS`."""
    schema: str | None = None
    """What items contain: columns as in Spark's DDL or as Spark's JSON, or an Avro schema."""
    schema_file: str | None = None
    """A file with it, on the driver's machine; for Protobuf a descriptor set."""
    writer_schema: str | None = None
    """The Avro schema that the items were written with; None: the same."""
    message: str | None = None
    """The full name of a Protobuf message."""
    into: str | None = None
    """The column for a struct of the fields; None: each field is a column."""
    mode: Mode = Mode.PERMISSIVE
    """What becomes of malformed items."""
    event_time: str | None = None
    """The field with the time of the event; None: there is no such column."""
    unit: str = "s"
    """The unit of numbers that are times: s, ms, us or ns, since 1970."""
    schema_id: int | None = None
    """The number of the Avro schema in Confluent's wire format, before each item; None: nothing is before it."""
    named_numbers: bool | None = None
    """Whether bare NaN and infinities are numbers in JSON; None: they are."""
    arrays: bool = False
    """Whether objects are arrays of their members."""

    @classmethod
    def of(cls, given: Given) -> DecodeOptions | None:
        """Return the options; None without "decode". `LocalError` if one is missing, or does not fit the format."""
        name = given.get("decode", _format, None)
        fields = given.fields(_PLAIN)
        if name is None:
            for field in fields:
                raise LocalError(f'option "{_PLAIN[field][0]}" has no effect without the option "decode"')
            return None
        options = cls(format=name, **fields)
        for field, formats in _ONLY.items():
            if getattr(options, field) not in (None, False) and name not in formats:
                raise LocalError(f'option "{_PLAIN[field][0]}" is for {", ".join(formats)}, not for {name}')
        if name == "protobuf" and (options.message is None or options.schema_file is None):
            raise LocalError(
                'options "decodeSchemaFile" and "decodeMessage" are missing: a descriptor set, as written by protoc '
                "--include_imports --descriptor_set_out, and the full name of the message"
            )
        return options

    def encoding(self) -> Encoding:
        """Return how items are encoded; `LocalError` if a schema is missing or cannot be read."""
        named_numbers = self.named_numbers is not False
        plain = Encoding(format=self.format, unit=self.unit, named_numbers=named_numbers, arrays=self.arrays)
        if not plain.has_schema:
            return plain
        return Encoding(
            format=self.format,
            schema=self.given_schema(),
            writer_schema=None if self.writer_schema is None else self.writer_schema.encode(),
            schema_id=self.schema_id,
            message=self.message or "",
        )

    def given_schema(self) -> bytes:
        """Return the schema, from its option or from its file; `LocalError` if it is missing or cannot be read."""
        if (self.schema is None) == (self.schema_file is None):
            raise LocalError(
                f'set either "decodeSchema" or "decodeSchemaFile", which say what items of {self.format} contain, as '
                'in .option("decodeSchema", "carrier STRING, delay INT"); or pass all columns to .schema()'
            )
        if self.schema is not None:
            return self.schema.encode()
        try:
            with open(str(self.schema_file), "rb") as file:
                return file.read()
        except OSError as error:
            raise LocalError(f'option "decodeSchemaFile": {error}') from error


def _format(text: str) -> str:
    return one_of(text.strip().lower(), *FORMATS)


def _mode(text: str) -> Mode:
    return Mode(one_of(text.strip().upper(), *(mode.value for mode in Mode)))


def _unit(text: str) -> str:
    return one_of(text.strip(), *FACTORS)


_PLAIN: Final[Plain] = {
    "schema": ("decodeSchema", as_text),
    "schema_file": ("decodeSchemaFile", as_text),
    "writer_schema": ("decodeWriterSchema", as_text),
    "message": ("decodeMessage", as_text),
    "into": ("decodeInto", as_text),
    "mode": ("mode", _mode),
    "event_time": ("eventTime", as_text),
    "unit": ("timestampUnit", _unit),
    "schema_id": ("decodeSchemaId", as_count),
    "named_numbers": ("allowNonNumericNumbers", as_flag),
    "arrays": ("structsAsArrays", as_flag),
}
_ONLY: Final = {
    "writer_schema": ("avro",),
    "schema_id": ("avro",),
    "message": ("protobuf",),
    "named_numbers": ("json",),
    "arrays": ("json", "msgpack", "cbor"),
}
"""The formats of options that are not for all of them."""
DECODE_OPTIONS: Final = " ".join(["decode", *(name for name, _ in _PLAIN.values())])
"""Their names, separated by spaces."""
