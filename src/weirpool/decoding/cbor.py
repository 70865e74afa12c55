"""CBOR: one map per item, with text keys."""

from __future__ import annotations

import pyarrow as pa

from ..values.cbor import CborReader, check_installed
from ..values.forms import BINARY_FORMS
from .rows import RowDecoder
from .shapes import Shape

__all__ = ["cbor_decoder"]


def cbor_decoder(fields: pa.Schema, unit: str, *, arrays: bool = False) -> RowDecoder:
    """Return a decoder of CBOR; see :func:`weirpool.decoding.json.json_decoder`.

    Raises:
        ImportError: The package cbor2 is not installed.

    """
    check_installed()
    shape = Shape(fields, unit, arrays=arrays, whole_floats=True)
    return shape.decoder(CborReader({**BINARY_FORMS, **shape.forms}))
