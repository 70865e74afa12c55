"""The rows of a batch, as Arrow reads them, after a look at whether reading them is safe.

Checksums tell accidents. They do not tell that somebody hostile made the file: a batch with sound checksums may have
offsets that lead out of its body, or say that it is compressed and large. So what Arrow would trust is checked first.
"""

from __future__ import annotations

import struct

import pyarrow as pa

from .format import SCHEMA, Entry, Malformed, body_is_sound, flat_field

__all__ = ["BODY_DIFFERS", "check", "decode"]

BODY_DIFFERS = "the checksum of its body is another"

_PREFIX_BYTES = 8
_BATCH_SLOT = 2
_COMPRESSION_SLOT = 3
_STREAM = SCHEMA.get_field_index("stream")


def decode(content: pa.Buffer, entry: Entry) -> pa.RecordBatch:
    """Return the rows of a batch that `check` has passed; they lie in `content`, nothing is copied.

    Raises:
        Malformed: Arrow cannot read it.

    """
    message = content.slice(entry.offset, entry.header_bytes + entry.body_bytes)
    try:
        return pa.ipc.read_record_batch(message, SCHEMA)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _malformed(entry, f"Arrow cannot read it: {error}") from None


def check(content: pa.Buffer, entry: Entry) -> pa.RecordBatch:
    """Return the rows of a batch, once its body is what was written, and every row of it can be looked at.

    It takes one pass over the body, and one over the offsets.

    Raises:
        Malformed: It is not.

    """
    if not body_is_sound(content, entry):
        raise _malformed(entry, BODY_DIFFERS)
    if _compressed(content, entry):
        raise _malformed(entry, "it is compressed")
    batch = decode(content, entry)
    if batch.num_rows != entry.note.rows:
        raise _malformed(entry, f"it has {batch.num_rows} rows, and not {entry.note.rows}")
    try:
        for index, column in enumerate(batch.columns):
            _check_text(column) if index == _STREAM else column.validate(full=True)
        if entry.note.rows:
            _check_positions(batch.column(0), entry)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _malformed(entry, f"its columns are not sound: {error}") from None
    return batch


def _compressed(content: pa.Buffer, entry: Entry) -> bool:
    """Return whether a batch has compressed buffers: they may become larger than any memory."""
    header = bytes(content.slice(entry.offset + _PREFIX_BYTES, entry.header_bytes - _PREFIX_BYTES))
    try:
        (root,) = struct.unpack_from("<I", header, 0)
        at = flat_field(header, root, _BATCH_SLOT)
        (to_batch,) = struct.unpack_from("<I", header, at)
        return bool(flat_field(header, at + to_batch, _COMPRESSION_SLOT))
    except (ValueError, struct.error) as error:
        raise _malformed(entry, str(error)) from None


def _check_text(column: pa.StringArray) -> None:
    """Validate a column of text. The rule is that it is ASCII, and then it need not be decoded row by row."""
    binary = column.view(pa.binary())
    binary.validate(full=True)
    data = column.buffers()[2]
    if data is not None and not _ascii(data):
        column.validate(full=True)


def _ascii(data: pa.Buffer) -> bool:
    try:
        str(memoryview(data), "ascii")
    except UnicodeDecodeError:
        return False
    return True


def _check_positions(positions: pa.Int64Array, entry: Entry) -> None:
    ends = positions[0].as_py(), positions[-1].as_py()
    if ends != (entry.position, entry.end - 1):
        raise ValueError(f"its rows have the positions {ends[0]} to {ends[1]}")


def _malformed(entry: Entry, why: str) -> Malformed:
    return Malformed(why, entry.offset, entry.position)
