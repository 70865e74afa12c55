"""What both builds of `buffers` give and use: buffers, and where rows of one width end. It costs nothing a row."""

from __future__ import annotations

from array import array
from typing import Any, Final, NamedTuple

from ..errors import LocalError
from ..payload import MAX_RUN_BYTES, PayloadRun, fixed_run

__all__ = ["SHARED_ROWS", "BufferedRun", "WidthRows", "ends_of"]

SHARED_ROWS: Final = 1 << 18
"""Rows of one width whose ends are kept for all batches: 1 MiB, and four times what a batch has by default."""
SHARED_WIDTHS: Final = 8
"""Widths for which that is done."""
LEAST_COST: Final = 4
"""Bytes that a row counts at least where rows are cut into runs: on some wires it has a head of its own."""

_shared: dict[int, bytes] = {}


class BufferedRun(NamedTuple):
    """The buffers of two columns, as Arrow's binary type has them.

    Attributes:
        rows: How many rows they have.
        data: The data of all rows, one after the other.
        data_ends: Native 32-bit integers: 0, then where each row's data ends.
        metadata: The metadata of all rows.
        metadata_ends: As `data_ends`.
        valid: A bit a row, the lowest first: whether it has metadata.
        nulls: How many rows have none.

    """

    rows: int
    data: Any
    data_ends: Any
    metadata: Any
    metadata_ends: Any
    valid: Any
    nulls: int


def ends_of(width: int, rows: int) -> memoryview:
    """Return where rows of `width` bytes end, as Arrow has it: native 32-bit integers, 0 first.

    They are the same for each batch, and made once. Width 0 gives as many zeros.
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
    """Rows of one width and without metadata, from which runs are cut as from `RowBuffers`.

    Args:
        data: The bytes of all rows, one after the other.
        width: Bytes of a row.

    Raises:
        LocalError: They are no whole rows.

    """

    __slots__ = ("_data", "_width")

    def __init__(self, data: memoryview, width: int) -> None:
        if width < 1 or len(data) % width:
            raise LocalError(f"{len(data)} bytes are no rows of {width} bytes each")
        self._data = data
        self._width = width

    def __len__(self) -> int:
        return len(self._data) // self._width

    def run(self, start: int = 0, stop: int | None = None, most: int = MAX_RUN_BYTES, each: int = 0) -> PayloadRun:
        """Return the rows from `start` to `stop`, or as many of them as cost at most `most` bytes, at least one.

        What a row costs beside its bytes, `each`, is not counted: rows of one width travel packed where it matters.

        Raises:
            LocalError: There are no such rows, or one that is longer than a run.

        """
        last = len(self) if stop is None else stop
        if not 0 <= start <= last <= len(self):
            raise LocalError(f"rows {start} to {last} were asked of a record batch of {len(self)}")
        width = self._width
        count = min(last - start, max(most // max(width, LEAST_COST), 1))
        if count * width > MAX_RUN_BYTES:
            raise LocalError(f"a run holds at most {MAX_RUN_BYTES} bytes; make several of these payloads")
        return fixed_run(bytes(self._data[start * width : (start + count) * width]), width, 0, count * width)
