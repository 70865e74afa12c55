"""MessagePack: one map per item."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from ..depth import msgpack_too_deep
from .rows import RowDecoder
from .shapes import Shape

__all__ = ["msgpack_decoder"]


def msgpack_decoder(fields: pa.Schema, unit: str) -> RowDecoder:
    """Return a decoder of MessagePack; `LocalError` if a field has no equivalent.

    Numbers are timestamps in this unit.
    """
    shape = Shape(fields, unit)
    return RowDecoder(msgspec.msgpack.Decoder(shape.row).decode, shape.row(), shape.columns, msgpack_too_deep)
