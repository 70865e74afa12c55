"""The encodings of data, by MIME type."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, Final

import msgspec

from ..depth import MAX_DEPTH, cbor_too_deep, count_cbor, count_msgpack, json_too_deep, msgpack_too_deep
from ..errors import Mismatch
from ..protocols import encodings
from . import cbor

__all__ = ["CBOR", "FORMATS", "JSON", "KNOWN", "MSGPACK", "Format", "format_of"]


class Format:
    """One encoding.

    Args:
        name: Its name for error messages.
        module: An object with an `Encoder` and a `Decoder`, such as :mod:`msgspec.json`.
        too_deep: Returns the offset at which data is nested too deeply for a decoder, or -1.

    Attributes:
        name: As above.
        encode: Returns the bytes of a value.
        decoder: Returns a strict decoder for a type.

    """

    __slots__ = ("_too_deep", "decoder", "encode", "name")

    def __init__(self, name: str, module: Any, too_deep: Callable[[bytes], int]) -> None:
        self.name = name
        self.encode: Callable[[Any], bytes] = module.Encoder().encode
        if too_deep is msgpack_too_deep:
            self.encode = partial(_with_text, self.encode)
        self.decoder: Callable[[Any], Any] = module.Decoder
        self._too_deep = too_deep

    def check_depth(self, data: bytes) -> None:
        """Raise Mismatch if data is nested too deeply for a decoder (THREATS 64)."""
        if self._too_deep(data) >= 0:
            keys = " or has a key that is not a text, bytes or a number" if self._too_deep is cbor_too_deep else ""
            raise Mismatch(f"nested more than {MAX_DEPTH} levels deep{keys}")

    def memory(self, data: bytes) -> int:
        """Return about how much memory the decoded value takes, in bytes: seldom less, and at most a few times more.

        Each value is an object with a place in a table. Characters take up to four bytes each, unless all are ASCII.
        """
        if self._too_deep is msgpack_too_deep:
            values = count_msgpack(data)
        elif self._too_deep is cbor_too_deep:
            values = count_cbor(data)
        else:
            values = data.count(b",") + data.count(b"[") + data.count(b"{") + 2 * data.count(b":")
        return VALUE_BYTES * (values + 1) + (1 if data.isascii() else 4) * len(data)

    def __repr__(self) -> str:
        return f"<Format {self.name}>"


def _with_text(encode: Callable[[Any], bytes], value: Any) -> bytes:
    """Return the bytes of a value in MessagePack with its times as text, as in JSON and as its schema says.

    msgspec encodes times with a zone as timestamps, an extension for which JSON Schema has no type.
    """
    data = encode(value)
    if _TIMESTAMP.search(data) is None:
        return data
    # These bytes may also occur in texts and numbers.
    return encode(msgspec.to_builtins(value, builtin_types=_BYTES_TYPES))


_TIMESTAMP: Final = re.compile(rb"\xd6\xff|\xd7\xff|\xc7\x0c\xff")
"""MessagePack, Timestamp extension type: its three forms."""
_BYTES_TYPES: Final = (bytes, bytearray, memoryview)

VALUE_BYTES: Final = 80
"""Memory of a value, beyond its content: a number, a short string, or half of a container."""


JSON: Final = Format("json", msgspec.json, json_too_deep)
MSGPACK: Final = Format("msgpack", msgspec.msgpack, msgpack_too_deep)
CBOR: Final = Format("cbor", cbor, cbor_too_deep)
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
