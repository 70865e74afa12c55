"""JSON: one object per item."""

from __future__ import annotations

import pyarrow as pa

from ..depth import json_too_deep
from ..values.json import JSON_FORMS, JsonReader
from .rows import RowDecoder
from .shapes import Shape

__all__ = ["json_decoder"]


def json_decoder(fields: pa.Schema, unit: str, *, named_numbers: bool = True, arrays: bool = False) -> RowDecoder:
    """Return a decoder of JSON.

    Args:
        fields: The columns; one without an equivalent raises `LocalError`.
        unit: The unit of numbers that are timestamps.
        named_numbers: Read bare NaN and infinities as numbers, as Spark's `from_json` does.
        arrays: Objects are arrays of their members.

    """
    shape = Shape(fields, unit, arrays=arrays)
    reader = JsonReader({**JSON_FORMS, **shape.forms}, named_numbers=named_numbers)
    return shape.decoder(reader, json_too_deep)
