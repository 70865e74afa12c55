"""How data is encoded: what MIME types stand for."""

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
        name: What people call it.
        module: The part of msgspec that knows it.
        check_depth: Refuses what nests too deep for a decoder.

    Attributes:
        encode: Returns a value's bytes.
        decoder: Makes what decodes a type, strictly.
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
"""What the data of River's connections is: their codecs are not negotiated, and nobody has to name these."""
KNOWN: Final = f"{', '.join(_BY_MIME)}, or any type that ends in +json"
"""The MIME types that work, for messages."""


@lru_cache(maxsize=256)
def format_of(mime: str) -> Format | None:
    """Return the encoding that a MIME type stands for; None when we have none for it.

    Parameters such as a charset are ignored: both encodings leave no choice of it (RFC 8259, section 8.1).
    """
    name = mime.partition(";")[0].strip().lower()
    known = _BY_MIME.get(name) or _RIVER.get(name)
    # RFC 6839, section 3.1: whatever ends so is JSON.
    return JSON if known is None and name.endswith("+json") else known
