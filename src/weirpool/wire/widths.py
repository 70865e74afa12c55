"""The result of both builds of `buffers`, and rows of one width, whose offsets are shared by all batches."""

from __future__ import annotations

from array import array
from typing import Any, Final, NamedTuple

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES, PayloadRun, fixed_run

__all__ = ["SHARED_ROWS", "BufferedRun", "WidthRows", "ends_of"]

SHARED_ROWS: Final = 1 << 18
"""Maximum number of rows with shared offsets: 1 MiB, and four times the rows of a default batch."""
SHARED_WIDTHS: Final = 8
"""Maximum number of widths with shared offsets."""
MIN_ROW_BYTES: Final = 4
"""Minimum size counted for a row of a run, because each row has a header in some protocols."""

_shared: dict[int, bytes] = {}


class BufferedRun(NamedTuple):
    """The buffers of two columns, in the format of Arrow's binary type. Their lengths are in bytes.

    Attributes:
        rows: The number of rows.
        data: The data of all rows.
        data_ends: Native 32-bit integers: 0, then the end of each row's data.
        metadata: The metadata of all rows.
        metadata_ends: Like `data_ends`.
        valid: One bit for each row, lowest first: whether it has metadata.
        nulls: The number of rows without metadata.

    """

    rows: int
    data: Any
    data_ends: Any
    metadata: Any
    metadata_ends: Any
    valid: Any
    nulls: int


def ends_of(width: int, rows: int) -> memoryview:
    """Return the offsets of rows of `width` bytes in Arrow's format: native 32-bit integers, 0 first.

    They are the same for each batch, and are made once. For width 0, all are 0.
    """
    ends = _shared.get(width)
    if ends is None or len(ends) < 4 * (rows + 1):
        if rows > SHARED_ROWS or SHARED_ROWS * width > MAX_RUN_BYTES:
            return memoryview(_ends(width, rows))
        if len(_shared) >= SHARED_WIDTHS:
            _shared.clear()
        ends = _shared[width] = _ends(width, SHARED_ROWS)
    return memoryview(ends)[: 4 * (rows + 1)]


def _ends(width: int, rows: int) -> bytes:
    return array("i", range(0, rows * width + 1, width)).tobytes() if width else bytes(4 * (rows + 1))


class WidthRows:
    """Rows of one width without metadata, from which runs are made. Has the interface of `RowBuffers`.

    Args:
        data: The bytes of all rows.
        width: The size of a row in bytes.

    Raises:
        LocalError: The size of `data` is not a multiple of `width`.

    """

    __slots__ = ("_data", "_width")

    def __init__(self, data: memoryview, width: int) -> None:
        if width < 1 or len(data) % width:
            raise LocalError(f"{len(data)} bytes cannot be divided into rows of {width} bytes")
        self._data = data
        self._width = width

    def __len__(self) -> int:
        return len(self._data) // self._width

    def run(self, start: int = 0, stop: int | None = None, limit: int = MAX_RUN_BYTES, overhead: int = 0) -> PayloadRun:
        """Return the rows from `start` to `stop`, or the first of them if they exceed `limit`; at least one row.

        `overhead` is ignored, because small rows of one width are sent without headers.

        Raises:
            LocalError: There are no such rows, or one row exceeds the maximum size of a run.

        """
        last = len(self) if stop is None else stop
        if not 0 <= start <= last <= len(self):
            raise LocalError(f"rows {start} to {last} are not in a record batch of {len(self)} rows")
        width = self._width
        count = min(last - start, max(limit // max(width, MIN_ROW_BYTES), 1))
        if count * width > MAX_RUN_BYTES:
            raise LocalError(f"a run has at most {MAX_RUN_BYTES} bytes; make several runs of these payloads")
        return fixed_run(bytes(self._data[start * width : (start + count) * width]), width, 0, count * width)
