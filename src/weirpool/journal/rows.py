"""The rows of a batch: decoded by Arrow after a check that decoding is safe, and merged.

Checksums detect accidents. They do not detect a hostile file: a batch with valid checksums may have offsets outside its
body, or be compressed and large. Everything that Arrow would trust is therefore checked first.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Iterator

import pyarrow as pa
import xxhash

from .format import BODY_DIFFERS, SCHEMA, Malformed

__all__ = ["check", "decode", "merge_small"]

_PREFIX_BYTES = 8
_UNSIGNED = struct.Struct("<I").unpack_from
_SHORT = struct.Struct("<H").unpack_from
_SIGNED = struct.Struct("<i").unpack_from
_MESSAGE_VTABLE = struct.Struct("<5H").unpack_from
_BATCH_VTABLE = struct.Struct("<6H").unpack_from
_BATCH_VTABLE_BYTES = 12
"""The size of a `RecordBatch` table that has a field for its compression."""
_TIME = SCHEMA.get_field_index("time")
_TIME_TYPE = SCHEMA.field("time").type
_STREAM = SCHEMA.get_field_index("stream")
_LARGE_ROWS = 8_192
"""A batch of this many rows is returned as it is in the file; Spark's cost per batch is then negligible."""
_LARGE_BYTES = 1024 * 1024
"""The same for this many bytes: copying would cost more than it saves."""
_CHUNK_BYTES = 65_536
"""The bytes to decode at once: more memory would be requested from the system each time."""
_SAME_ROWS = 8_192
"""The times to compare at once."""
_FEW_ROWS = 1_024
"""Up to this many rows, it is faster to let Arrow check all columns at once."""


def decode(message: pa.Buffer) -> pa.RecordBatch:
    """Return the rows of a batch that `check` has accepted, as views of `message`; or raise `Malformed`."""
    try:
        return pa.ipc.read_record_batch(message, SCHEMA)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _malformed(f"Arrow cannot read it: {error}") from None


def check(message: pa.Buffer, header_bytes: int, rows: int, time: int, checksum: bytes | bytearray) -> pa.RecordBatch:
    """Return the rows of a batch after checking its body, and that every row can be read safely; or raise `Malformed`.

    It takes one pass over the body, which starts after the header and has this checksum, and one over the offsets. All
    rows must have the same time, in microseconds since 1970.
    """
    view = memoryview(message)
    if xxhash.xxh3_128_digest(view[header_bytes:]) != checksum:
        raise _malformed(BODY_DIFFERS)
    if _compressed(view[_PREFIX_BYTES:header_bytes]):
        raise _malformed("it is compressed")
    batch = decode(message)
    if batch.num_rows != rows:
        raise _malformed(f"it has {batch.num_rows} rows, not {rows}")
    try:
        _validate(batch, rows)
        _validate_time(batch.column(_TIME), rows, time)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _malformed(f"its columns are invalid: {error}") from None
    return batch


def _compressed(header: memoryview) -> bool:
    """Return True if a batch has compressed buffers, which may become larger than any memory.

    The header's root table is a `Message`, with the `RecordBatch` in slot 2, and in that the compression in slot 3.
    """
    try:
        (table,) = _UNSIGNED(header, 0)
        slot = _MESSAGE_VTABLE(header, _vtable(header, table))[4]
        batch = table + slot + _UNSIGNED(header, table + slot)[0]
        vtable = _vtable(header, batch)
        if _SHORT(header, vtable)[0] < _BATCH_VTABLE_BYTES:
            return False
        return bool(_BATCH_VTABLE(header, vtable)[5])
    except (ValueError, struct.error) as error:
        raise _malformed(f"its header is invalid: {error}") from None


def _vtable(header: memoryview, table: int) -> int:
    """Return the offset of the vtable of a flatbuffer's table."""
    vtable = table - int(_SIGNED(header, table)[0])
    if vtable < 0:
        raise ValueError("a table has no fields")
    return vtable


def _validate(batch: pa.RecordBatch, rows: int) -> None:
    if rows <= _FEW_ROWS:
        batch.validate(full=True)
        return
    for index, column in enumerate(batch.columns):
        if index == _STREAM:
            _validate_text(column)
        else:
            column.validate(full=True)


def _validate_time(column: pa.TimestampArray, rows: int, time: int) -> None:
    expected = (array("q", (time,)) * min(rows, _SAME_ROWS)).tobytes()
    found = memoryview(column.buffers()[1])[: 8 * rows]
    chunks = (found[start : start + len(expected)] for start in range(0, len(found), len(expected) or 1))
    if column.null_count or any(bytes(chunk) != expected[: len(chunk)] for chunk in chunks):
        raise ValueError("its rows have a different time")


def _validate_text(column: pa.StringArray) -> None:
    """Validate a column of text. It is usually ASCII, and then need not be decoded row by row."""
    column.view(pa.binary()).validate(full=True)
    data = column.buffers()[2]
    if data is not None and not _ascii(data):
        column.validate(full=True)


def _ascii(data: pa.Buffer) -> bool:
    view = memoryview(data)
    try:
        for start in range(0, len(view), _CHUNK_BYTES):
            str(view[start : start + _CHUNK_BYTES], "ascii")
    except UnicodeDecodeError:
        return False
    return True


def _malformed(why: str) -> Malformed:
    return Malformed(why, 0, 0)


def merge_small(batches: Iterable[tuple[pa.RecordBatch, int]]) -> Iterator[pa.RecordBatch]:
    """Return large batches as they are, and consecutive small ones as one. Each is passed with its size in bytes."""
    small: list[pa.RecordBatch] = []
    rows = size = 0
    for batch, batch_bytes in batches:
        large = batch.num_rows >= _LARGE_ROWS or batch_bytes >= _LARGE_BYTES
        if small and (large or rows >= _LARGE_ROWS or size >= _LARGE_BYTES):
            yield _merged(small)
            small = []
            rows = size = 0
        if large:
            yield batch
        else:
            small.append(batch)
            rows += batch.num_rows
            size += batch_bytes
    if small:
        yield _merged(small)


def _merged(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    merged: pa.RecordBatch = pa.Table.from_batches(batches, batches[0].schema).combine_chunks().to_batches()[0]
    return merged
