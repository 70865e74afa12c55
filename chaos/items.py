"""Items that identify themselves by the run of the publisher's handler and their number in it."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pyarrow as pa

__all__ = ["RUN_STEP", "WIDTH", "item", "runs_and_numbers"]

WIDTH: Final = 20
"""Bytes of an item."""
RUN_STEP: Final = 10_000
"""The maximum number of runs of one publisher process."""

_RUN_DIGITS: Final = 7
_NUMBER_DIGITS: Final = 11


def item(run: int, number: int) -> bytes:
    """Return an item: a JSON string, which every codec carries unchanged, some with a prefix."""
    return b'"%07d%011d"' % (run, number)


def runs_and_numbers(data: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the run and the number of each item of a column.

    Args:
        data: Items from a log or a table, without nulls. In River's MessagePack each has a prefix.

    Raises:
        ValueError: Not all are such items.

    """
    if not len(data):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if isinstance(data, pa.ChunkedArray):
        data = data.combine_chunks()
    _, offsets, content = data.cast(pa.large_binary()).buffers()
    ends = np.frombuffer(offsets, np.int64)[data.offset : data.offset + len(data) + 1]
    widths = np.diff(ends)
    if (widths != widths[0]).any():
        raise ValueError(f"items have {widths.min()} to {widths.max()} bytes; all must have the same size")
    rows = np.frombuffer(content, np.uint8)[ends[0] : ends[-1]].reshape(len(data), widths[0])
    found = re.search(rb'"\d{18}"', rows[0].tobytes())
    if found is None:
        raise ValueError(f"{rows[0].tobytes()!r} is not a chaos item")
    start = found.start() + 1
    digits = rows[:, start : start + _RUN_DIGITS + _NUMBER_DIGITS].astype(np.int64) - ord("0")
    if ((digits < 0) | (digits > 9)).any():
        raise ValueError("some items are not chaos items")
    run_scale = 10 ** np.arange(_RUN_DIGITS - 1, -1, -1)
    number_scale = 10 ** np.arange(_NUMBER_DIGITS - 1, -1, -1)
    return digits[:, :_RUN_DIGITS] @ run_scale, digits[:, _RUN_DIGITS:] @ number_scale
