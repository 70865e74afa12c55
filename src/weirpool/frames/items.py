"""Record batches from items of JSON, MessagePack, CBOR or Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from ..decoding.encoding import Encoding
from ..errors import LocalError, Mismatch

__all__ = ["ARROW_MIME", "ItemColumns", "encoding_of"]

ARROW_MIME: Final = "application/vnd.apache.arrow.stream"
ENCODINGS: Final = ("json", "msgpack", "cbor", "arrow")
_MIMES: Final = {
    "application/json": "json",
    "application/msgpack": "msgpack",
    "application/x-msgpack": "msgpack",
    "application/vnd.msgpack": "msgpack",
    "application/cbor": "cbor",
    ARROW_MIME: "arrow",
}


def encoding_of(mime: str) -> str:
    """Return the name of the encoding of a MIME type.

    Raises:
        LocalError: It is not known.

    """
    name = mime.partition(";")[0].strip().lower()
    # RFC 6838, section 4.2.8: a suffix names the encoding.
    suffix = name.rpartition("+")[2]
    found = _MIMES.get(name) or _MIMES.get(f"application/{suffix}")
    if found is None:
        raise LocalError(f"items of type {mime!r} cannot be decoded; pass encoding=, one of {', '.join(ENCODINGS)}")
    return found


class ItemColumns:
    """Decodes items in bulk, without an object of the user's for each.

    Args:
        encoding: One of `ENCODINGS`.
        schema: The columns. Arrow items need none: it is that of the first item.

    Attributes:
        schema: The columns; None before the first item.

    Raises:
        LocalError: The encoding is unknown or needs a schema, or a column has a type that items cannot have.

    """

    def __init__(self, encoding: str, schema: pa.Schema | None = None) -> None:
        if encoding not in ENCODINGS:
            raise LocalError(f"the encoding is {encoding!r}; use one of {', '.join(ENCODINGS)}")
        if schema is None and encoding != "arrow":
            raise LocalError(f"items of {encoding} need a schema; pass schema=pyarrow.schema([...]), or a typed stream")
        self.schema = schema
        self._encoding = Encoding(format=encoding)
        self._decoder = None if schema is None else self._encoding.decoder(schema)
        self._count = 0

    def convert(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a record batch of items.

        Raises:
            Mismatch: An item is malformed, or does not match the schema.

        """
        if not batch.num_rows:
            return
        data = batch.column("data")
        if self._decoder is None:
            self.schema = _schema_of(data[0].as_buffer())
            self._decoder = self._encoding.decoder(self.schema)
        for decoded in self._decoder.decode(data):
            for row, why in decoded.malformed.items():
                item = row if decoded.items is None else decoded.items[row].as_py()
                raise Mismatch(f"item {self._count + item} is not the {self._encoding.format} of the schema: {why}")
            self._count += decoded.count
            yield decoded.fields


def _schema_of(item: pa.Buffer) -> pa.Schema:
    try:
        with pa.ipc.open_stream(item) as reader:
            return reader.schema
    except (pa.ArrowException, OSError) as error:
        raise Mismatch(f"item 0 is not an Arrow IPC stream: {error}") from None
