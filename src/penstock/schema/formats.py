"""Encodings of data, by MIME type."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from .depth import check_json_depth, check_msgpack_depth
from .river import RiverJson, RiverMsgpack

__all__ = ["FORMATS", "JSON", "KNOWN", "MSGPACK", "RIVER_JSON", "RIVER_MSGPACK", "Format", "format_of"]


class Format:
    """One encoding.

    Args:
        name: Its name in messages.
        module: The part of msgspec that implements it.
        check_depth: Refuses data that nests too deep for a decoder.

    Attributes:
        encode: Returns the bytes of a value.
        decoder: Makes a strict decoder of a type.
        check_depth: As above.

    """

    __slots__ = ("check_depth", "decoder", "encode", "name")

    def __init__(self, name: str, module: Any, check_depth: Callable[[bytes], None]) -> None:
        self.name = name
        self.encode: Callable[[Any], bytes] = module.Encoder().encode
        self.decoder: Callable[[Any], Any] = module.Decoder
        self.check_depth = check_depth

    def __repr__(self) -> str:
        return f"<Format {self.name}>"


JSON: Final = Format("json", msgspec.json, check_json_depth)
MSGPACK: Final = Format("msgpack", msgspec.msgpack, check_msgpack_depth)
RIVER_JSON: Final = Format("River's json", RiverJson, check_json_depth)
RIVER_MSGPACK: Final = Format("River's msgpack", RiverMsgpack, check_msgpack_depth)
FORMATS: Final = (JSON, MSGPACK, RIVER_JSON, RIVER_MSGPACK)

_BY_MIME: Final = {
    "application/json": JSON,
    "application/msgpack": MSGPACK,
    "application/x-msgpack": MSGPACK,
    "application/vnd.msgpack": MSGPACK,
}
_RIVER: Final = {"application/vnd.river+json": RIVER_JSON, "application/vnd.river+msgpack": RIVER_MSGPACK}
"""The data of River's connections: their codecs are not negotiated, and users need not name these types."""
KNOWN: Final = f"{', '.join(_BY_MIME)}, or any type that ends in +json"
"""The supported MIME types, for messages."""


@lru_cache(maxsize=256)
def format_of(mime: str) -> Format | None:
    """Return the encoding of a MIME type, or None if it is not supported.

    Parameters such as a charset are ignored: both encodings have only one charset (RFC 8259, section 8.1).
    """
    name = mime.partition(";")[0].strip().lower()
    known = _BY_MIME.get(name) or _RIVER.get(name)
    # RFC 6839, section 3.1: types with this suffix are JSON.
    return JSON if known is None and name.endswith("+json") else known
