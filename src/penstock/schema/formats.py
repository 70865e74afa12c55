"""How data is encoded: what MIME types stand for."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec

from .depth import check_json_depth, check_msgpack_depth

__all__ = ["FORMATS", "JSON", "KNOWN", "MSGPACK", "Format", "format_of"]


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
FORMATS: Final = (JSON, MSGPACK)

RIVER: Final = "application/vnd.river+"
_BY_MIME: Final = {
    "application/json": JSON,
    "application/msgpack": MSGPACK,
    "application/x-msgpack": MSGPACK,
    "application/vnd.msgpack": MSGPACK,
}
KNOWN: Final = f"{', '.join(_BY_MIME)}, or any type that ends in +json"
"""The MIME types that work, for messages."""


@lru_cache(maxsize=256)
def format_of(mime: str) -> Format | None:
    """Return the encoding that a MIME type stands for; None when we have none for it.

    Parameters such as a charset are ignored: both encodings leave no choice of it (RFC 8259, section 8.1).
    """
    name = mime.partition(";")[0].strip().lower()
    if name.startswith(RIVER):
        from .river import RIVER as FORMATS_OF_RIVER

        return FORMATS_OF_RIVER.get(name)
    # RFC 6839, section 3.1: whatever ends so is JSON.
    return JSON if name.endswith("+json") else _BY_MIME.get(name)
