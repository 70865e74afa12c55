"""MessagePack: one map per item."""

from __future__ import annotations

import pyarrow as pa

from ..depth import msgpack_too_deep
from ..values.forms import BINARY_FORMS
from ..values.msgpack import MsgpackReader
from .rows import RowDecoder
from .shapes import Shape

__all__ = ["msgpack_decoder"]


def msgpack_decoder(fields: pa.Schema, unit: str, *, arrays: bool = False) -> RowDecoder:
    """Return a decoder of MessagePack; see :func:`weirpool.decoding.json.json_decoder`."""
    shape = Shape(fields, unit, arrays=arrays, whole_floats=True)
    return shape.decoder(MsgpackReader({**BINARY_FORMS, **shape.forms}), msgpack_too_deep)
