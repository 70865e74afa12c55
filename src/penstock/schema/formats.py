"""How data is encoded: what MIME types stand for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Final

import msgspec

from ..depth import MAX_DEPTH, json_too_deep, msgpack_too_deep
from ..errors import Mismatch
from ..protocols import encodings

__all__ = ["FORMATS", "JSON", "KNOWN", "MSGPACK", "Format", "format_of"]


class Format:
    """One encoding.

    Args:
        name: What people call it.
        module: The part of msgspec that knows it.
        too_deep: Returns the offset at which data is nested too deeply for a decoder; -1: nowhere.

    Attributes:
        encode: Returns a value's bytes.
        decoder: Makes what decodes a type, strictly.
    """

    __slots__ = ("_too_deep", "decoder", "encode", "name")

    def __init__(self, name: str, module: Any, too_deep: Callable[[bytes], int]) -> None:
        self.name = name
        self.encode: Callable[[Any], bytes] = module.Encoder().encode
        self.decoder: Callable[[Any], Any] = module.Decoder
        self._too_deep = too_deep

    def check_depth(self, data: bytes) -> None:
        """Refuse data that is nested too deeply for a decoder (THREATS 64).

        Raises:
            Mismatch: It is.

        """
        if self._too_deep(data) >= 0:
            raise Mismatch(f"nests deeper than {MAX_DEPTH} levels")

    def __repr__(self) -> str:
        return f"<Format {self.name}>"


JSON: Final = Format("json", msgspec.json, json_too_deep)
MSGPACK: Final = Format("msgpack", msgspec.msgpack, msgpack_too_deep)
FORMATS: Final = (JSON, MSGPACK)

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
    known = _BY_MIME.get(name) or _of_protocols().get(name)
    # RFC 6839, section 3.1: whatever ends so is JSON.
    return JSON if known is None and name.endswith("+json") else known


@cache
def _of_protocols() -> dict[str, Format]:
    """Return the encodings that belong to single protocols, by MIME type."""
    return {mime: Format(*encoding) for mime, encoding in encodings().items()}
