"""All encodings of data, including those of a single protocol."""

from __future__ import annotations

from weirpool.protocols import encodings
from weirpool.schema.formats import FORMATS, Format, format_of

__all__ = ["ALL"]

ALL: list[Format] = [*FORMATS, *(form for mime in encodings() if (form := format_of(mime)) is not None)]
