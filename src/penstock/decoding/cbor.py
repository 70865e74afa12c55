"""CBOR: one map per item, with text keys."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pyarrow as pa

from ..cbor import cbor_reader
from .rows import RowDecoder
from .shapes import Shape

__all__ = ["cbor_decoder"]


def cbor_decoder(fields: pa.Schema, unit: str) -> RowDecoder:
    """Return a decoder of CBOR; `LocalError` if a field has no equivalent. Numbers are timestamps in this unit."""
    shape = Shape(fields, unit)
    # Bytes have a type of their own: text is not base64.
    convert = partial(msgspec.convert, type=shape.row, builtin_types=(bytes,))
    read = cbor_reader(text_keys=True)

    def load(item: bytes) -> Any:
        return convert(read(item))

    return RowDecoder(load, shape.row(), shape.columns)
