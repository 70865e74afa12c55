"""The interface of decoders, and what they return."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import pyarrow as pa

__all__ = ["MAX_BLOCK_BYTES", "MAX_BLOCK_ROWS", "Decoded", "Decoder", "blocks", "nulled", "reason"]

MAX_BLOCK_ROWS: Final = 16_384
"""Enough for a cost per block that is negligible."""
MAX_BLOCK_BYTES: Final = 4 << 20
"""Decoded objects may need thirty times the memory of their items."""
MAX_REASON: Final = 200
"""Characters of a reason. Messages of decoders may contain names of fields, which a publisher chooses."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """The rows of some consecutive items."""

    count: int
    """The number of items."""
    fields: pa.RecordBatch
    """Their fields; all null in the row of a malformed item."""
    malformed: dict[int, str]
    """The reason by row of each malformed item, in ascending order."""
    items: pa.Int32Array | None = None
    """The item of each row, in ascending order; None: each item has one row."""


class Decoder(Protocol):
    """Decodes the items of one format."""

    def decode(self, items: pa.BinaryArray) -> Iterator[Decoded]:
        """Yield the rows of all items, in order, in blocks of bounded size. Malformed items raise nothing."""
        ...


def blocks(items: pa.BinaryArray) -> Iterator[pa.BinaryArray]:
    """Yield consecutive slices of limited size, but of at least one item."""
    if len(items) > 1 and (len(items) > MAX_BLOCK_ROWS or items.nbytes > MAX_BLOCK_BYTES):
        middle = len(items) // 2
        yield from blocks(items[:middle])
        yield from blocks(items[middle:])
    else:
        yield items


def nulled(fields: pa.RecordBatch, rows: Container[int]) -> pa.RecordBatch:
    """Return the same fields, all null in some rows."""
    kept = [None if row in rows else row for row in range(fields.num_rows)]
    return fields.take(pa.array(kept, pa.int32()))


def reason(error: Exception) -> str:
    """Return why an item is malformed, in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"
