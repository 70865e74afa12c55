"""JSON: one object per item."""

from __future__ import annotations

import msgspec
import pyarrow as pa

from ..depth import json_too_deep
from .rows import RowDecoder
from .shapes import Shape

__all__ = ["json_decoder"]


def json_decoder(fields: pa.Schema, unit: str) -> RowDecoder:
    """Return a decoder of JSON; `LocalError` if a field has no equivalent. Numbers are timestamps in this unit."""
    shape = Shape(fields, unit)
    return RowDecoder(msgspec.json.Decoder(shape.row).decode, shape.row(), shape.columns, json_too_deep)
