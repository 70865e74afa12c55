"""The encodings of data, by MIME type."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, Final

import msgspec

from ..depth import MAX_DEPTH
from ..errors import Mismatch
from ..protocols import encodings
from ..values import cbor
from ..values.cbor import CborReader
from ..values.decoder import Decoder, Hook, Reader
from ..values.json import JsonReader
from ..values.msgpack import TIMESTAMP, MsgpackReader

__all__ = ["CBOR", "FORMATS", "JSON", "KNOWN", "MSGPACK", "Format", "format_of"]


class Format:
    """One encoding.

    Args:
        name: Its name for error messages.
        encode: Returns the bytes of a value.
        reader: Reads it.

    Attributes:
        name: As above.
        encode: As above.
        too_deep: Returns the offset at which data is nested too deeply for a decoder, or -1.

    """

    __slots__ = ("_reader", "encode", "name", "too_deep")

    def __init__(self, name: str, encode: Callable[[Any], bytes], reader: Reader) -> None:
        self.name = name
        self.encode = encode
        self.too_deep: Callable[[bytes], int] = reader.too_deep
        self._reader = reader

    def decoder(self, wanted: Any = Any, hook: Hook | None = None) -> Decoder:
        """Return a decoder for a type; see :class:`weirpool.values.decoder.Decoder`."""
        return Decoder(self._reader, wanted, hook)

    def check_depth(self, data: bytes) -> None:
        """Raise Mismatch if data is nested too deeply for a decoder (THREATS 64)."""
        if self.too_deep(data) >= 0:
            raise Mismatch(f"nested more than {MAX_DEPTH} levels deep")

    def memory(self, data: bytes) -> int:
        """Return about how much memory the decoded value takes, in bytes: seldom less, and at most a few times more.

        Each value is an object with a place in a table. Characters take up to four bytes each, unless all are ASCII.
        """
        values = self._reader.count(data)
        return VALUE_BYTES * (values + 1) + (1 if data.isascii() else 4) * len(data)

    def __repr__(self) -> str:
        return f"<Format {self.name}>"


def _with_text(encode: Callable[[Any], bytes], value: Any) -> bytes:
    """Return the bytes of a value in MessagePack with its times as text, as in JSON and as its schema says.

    msgspec encodes times with a zone as timestamps, an extension for which JSON Schema has no type.
    """
    data = encode(value)
    if TIMESTAMP.search(data) is None:
        return data
    # These bytes may also occur in texts and numbers.
    return encode(msgspec.to_builtins(value, builtin_types=_BYTES_TYPES))


_BYTES_TYPES: Final = (bytes, bytearray, memoryview)

VALUE_BYTES: Final = 80
"""Memory of a value, beyond its content: a number, a short string, or half of a container."""


JSON: Final = Format("json", msgspec.json.Encoder().encode, JsonReader())
MSGPACK: Final = Format("msgpack", partial(_with_text, msgspec.msgpack.Encoder().encode), MsgpackReader())
CBOR: Final = Format("cbor", cbor.encode, CborReader())
FORMATS: Final = (JSON, MSGPACK, CBOR)

_BY_MIME: Final = {
    "application/json": JSON,
    "application/msgpack": MSGPACK,
    "application/x-msgpack": MSGPACK,
    "application/vnd.msgpack": MSGPACK,
    # The default of Spring.
    "application/cbor": CBOR,
}
KNOWN: Final = f"{', '.join(_BY_MIME)}, or any type that ends in +json or +cbor"
"""The supported MIME types, for error messages."""


@lru_cache(maxsize=256)
def format_of(mime: str) -> Format | None:
    """Return the encoding of a MIME type; None if it is not supported.

    Parameters such as a charset are ignored, because the encodings allow only one (RFC 8259, section 8.1).
    """
    name = mime.partition(";")[0].strip().lower()
    known = _BY_MIME.get(name) or _of_protocols().get(name)
    # RFC 6839, section 3.1, and RFC 8949, section 9.5: types with these suffixes are JSON and CBOR.
    if known is not None:
        return known
    return JSON if name.endswith("+json") else CBOR if name.endswith("+cbor") else None


@cache
def _of_protocols() -> dict[str, Format]:
    """Return the encodings that belong to a single protocol, by MIME type."""
    return {mime: Format(*encoding) for mime, encoding in encodings().items()}
