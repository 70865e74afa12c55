"""Arrow buffers to runs and back. An input is numbers: the first ones are options, the next ones offsets."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final

import pyarrow
from tests.builds import Build

from fuzz.outcomes import attempt
from fuzz.targets import Difference

MAX_ROWS: Final = 12


def seeds() -> Iterator[bytes]:
    """Yield columns with and without metadata, and offsets that are wrong."""
    ends = (0, 1, 1, 5, 9)
    for options in range(8):
        yield bytes((4, options, 0)) + _offsets(ends) + _offsets(ends) + bytes((options, 0xA5)) + b"0123456789abc"
    yield bytes((0, 1, 0)) + _offsets((-1,)) * 2
    yield bytes((3, 5, 3)) + _offsets((0, -1, 2, 2**31 - 1)) * 2 + b"\xff\xffabc"


def _offsets(ends: tuple[int, ...]) -> bytes:
    return array("i", ends).tobytes()


def _columns(data: bytes) -> tuple[Any, ...]:
    """Return the arguments of RowBuffers."""
    rows, options, bit = (*data[:3], 0, 0, 0)[:3]
    size = 4 * (rows % MAX_ROWS + 1)
    at = 3 + size
    ends, more = data[3:at].ljust(size, b"\0"), data[at : at + size].ljust(size, b"\0")
    valid, values = data[at + size : at + size + 2], data[at + size + 2 :]
    return (
        memoryview(values),
        memoryview(array("i", ends)),
        memoryview(values) if options & 1 else None,
        memoryview(array("i", more)) if options & 2 else None,
        memoryview(valid) if options & 4 else None,
        bit % 12,
    )


def outcome(build: Build, data: bytes) -> object:
    """Return the rows of several slices, and the columns that are made of them."""
    made = attempt(build, build.module("weirpool.wire.rows").RowBuffers, *_columns(data))
    if isinstance(made, tuple):
        return made
    found: list[object] = []
    buffers = build.module("weirpool.wire.buffers").ColumnBuffers()
    for start, stop, limit in ((0, None, 1 << 31), (0, 0, 5), (1, None, 4), (len(made), None, 0), (0, 2, 1)):
        run = attempt(build, made.run, start, stop, limit, 1)
        found.append(run if isinstance(run, tuple) else [(item.data, item.metadata) for item in run.payloads()])
        if not isinstance(run, tuple):
            found.append(attempt(build, buffers.append, run))
            found.append(attempt(build, buffers.append, run, 1, len(run)))
    taken = buffers.take()
    found.append([taken.rows, taken.nulls, *(bytes(part) for part in taken[1:6])])
    return found


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare valid data with what Arrow reads."""
    values, ends, metadata, _, _, _ = _columns(data)
    # Arrow checks the offset behind no rows, which we do not read.
    if isinstance(found, tuple) or isinstance(found[0], tuple) or metadata is not None or not found[0]:
        return
    column = pyarrow.Array.from_buffers(
        pyarrow.binary(), len(ends) - 1, [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(values)]
    )
    column.validate(full=True)
    theirs = [(value, None) for value in column.to_pylist()]
    if theirs != found[0]:
        raise Difference(f"Arrow reads {theirs}, not {found[0]}")
