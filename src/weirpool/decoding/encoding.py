"""The encoding of items: a format with its schema, and the choice of a decoder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

import pyarrow as pa

from ..errors import LocalError

if TYPE_CHECKING:
    from .avro import AvroSchema
    from .decoded import Decoder
    from .protobuf import ProtobufSchema

__all__ = ["FORMATS", "Encoding"]

_OBJECTS: Final = ("json", "msgpack", "cbor")
FORMATS: Final = (*_OBJECTS, "avro", "protobuf", "arrow")


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """How items are encoded.

    Its methods raise `LocalError` if a schema is invalid, or a package is missing.
    """

    format: str
    """One of `FORMATS`."""
    schema: bytes = b""
    """Avro: the schema of the columns. Protobuf: a descriptor set. Others have none."""
    writer_schema: bytes | None = None
    """Avro: the schema that the items were written with; None: the same."""
    schema_id: int | None = None
    """Avro: the number of that schema before each item, in Confluent's wire format; None: nothing is before it."""
    message: str = ""
    """Protobuf: the full name of the message."""
    unit: str = "s"
    """JSON, MessagePack, CBOR: the unit of numbers that are timestamps: s, ms, us or ns."""
    arrays: bool = False
    """JSON, MessagePack, CBOR: objects are arrays of their members, in the order of the columns."""
    named_numbers: bool = True
    """JSON: bare NaN and infinities are numbers."""

    @property
    def has_schema(self) -> bool:
        """True if the columns follow from a schema of the format."""
        return self.format in ("avro", "protobuf")

    def fields(self) -> pa.Schema:
        """Return all fields of a format that has a schema."""
        with _packages():
            return self._with_schema().fields

    def select(self, names: list[str]) -> pa.Schema:
        """Return some fields of a format that has a schema."""
        with _packages():
            return self._with_schema().select(names)

    def decoder(self, fields: pa.Schema) -> Decoder:
        """Return a decoder of these fields."""
        with _packages():
            if self.has_schema:
                return self._with_schema().decoder(fields)
            # Only the format that is used is imported: options are parsed in processes that decode nothing.
            module = import_module(f".{self.format}", __package__)
            if self.format == "arrow":
                return cast("Decoder", module.ArrowDecoder(fields))
            options = {"arrays": self.arrays} | ({"named_numbers": self.named_numbers} if self.format == "json" else {})
            return cast("Decoder", getattr(module, f"{self.format}_decoder")(fields, self.unit, **options))

    def _with_schema(self) -> AvroSchema | ProtobufSchema:
        if self.format == "avro":
            from .avro import AvroSchema

            return AvroSchema(self.schema, self.writer_schema, self.schema_id)
        from .protobuf import ProtobufSchema

        return ProtobufSchema(self.schema, self.message)


@contextmanager
def _packages() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise LocalError(f"{error}; install weirpool[decode] on every machine") from error
