"""Items as the bytes to append to a segment: an Arrow IPC message with the columns of `SCHEMA`.

pyarrow's writer takes longer for a small batch than everything else that is done with it, and copies a large one. All
batches have the same columns, so their headers differ only in numbers and in the note, and their bodies consist of
buffers that exist already. Tests compare both with what pyarrow writes and reads.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from ..errors import LocalError
from ..wire.widths import BufferedRun
from .format import BODY_AT, CHECKSUM_AT, CONTINUATION, ITEMS, NO_BODY, NO_HEADER, NOTE_KEY, PREFIX, Note

__all__ = ["Encoded", "Rows", "encode", "rows_in"]

Piece: TypeAlias = bytes | memoryview
Column: TypeAlias = tuple[int, Piece, Piece, Piece]
"""The number of nulls, validity, offsets and values."""
Rows: TypeAlias = pa.RecordBatch | BufferedRun

JOINED_BYTES: Final = 65_536
"""A smaller batch is copied into one piece: that is cheaper than several writes."""
FEW_ROWS: Final = 512
"""Up to this many rows, numbers are not made by Arrow: its call would take longer."""
MAX_COLUMN_BYTES: Final = (1 << 31) - 1
"""The offsets in a column have 32 bits."""
ALIGNMENT: Final = 8
"""Buffers start at multiples of this. Spaces are filled with zeros."""

# Arrow Columnar Format, Encapsulated message format; Message.fbs, Schema.fbs. The header is one flatbuffer. Offsets to
# tables, vectors and strings count from the place where they are stored, those of vtables backwards from their table.
_METADATA_V5: Final = 4
_RECORD_BATCH: Final = 3
_COLUMNS: Final = 5
_BUFFERS: Final = 13
"""Validity and values of `position` and `time`; validity, offsets and values of `stream`, `data` and `metadata`."""
_HEADER: Final = struct.Struct(
    "<II"  # the prefix
    "I"  # 0: the offset of the Message
    "7H2x"  # 4: its vtable: its size, that of the table, version, header_type, header, bodyLength, custom_metadata
    "iqIIhBx"  # 20: Message: vtable, bodyLength, header, custom_metadata, version, header_type
    "5H6x"  # 44: the vtable of the RecordBatch: its size, that of the table, length, nodes, buffers
    "iqII"  # 60: RecordBatch: vtable, length, nodes, buffers
    f"4xI{2 * _COLUMNS}q"  # 84: nodes: count; length and null_count of each
    f"4xI{2 * _BUFFERS}q"  # 172: buffers: count; offset and length of each
    "II"  # 384: custom_metadata: count, the offset of the KeyValue
    "4H"  # 392: the vtable of the KeyValue: its size, that of the table, key, value
    "iII"  # 400: KeyValue: vtable, key, value
    "I8s4x"  # 412: the key: its length, and its characters with a zero byte
    "I"  # 428: the length of the value, which follows
)
_MESSAGE: Final = (14, 24, 20, 22, 12, 4, 16)
_BATCH: Final = (10, 20, 4, 12, 16)
_KEY_VALUE: Final = (8, 12, 4, 8)
_OFFSET: Final = struct.Struct("<i").unpack_from
_ZEROS: Final = bytes(ALIGNMENT)


class Encoded(NamedTuple):
    """A batch as it is written."""

    chunks: list[Piece]
    """Length prefix, header and body."""
    size: int
    """Their bytes."""
    digest: str
    """The digest that the next batch contains."""


def rows_in(items: Rows) -> int:
    """Return the number of items."""
    return items.rows if isinstance(items, BufferedRun) else int(items.num_rows)


def encode(items: Rows, stream: str, note: Note) -> Encoded:
    """Return items as rows of the log: the first one gets the note's position, and all of them its time.

    Args:
        items: Columns `data` and `metadata`, both binary, or their buffers; as many rows as the note has.
        stream: The source of the items; it becomes a column.
        note: Its checksums are set.

    Raises:
        LocalError: `items` has other columns, or a column would exceed 2 GiB.

    """
    rows = note.rows
    (data_nulls, *data), (metadata_nulls, *metadata) = _columns(items)
    times = note.time.to_bytes(8, "little", signed=True) * rows
    starts, names = _repeated(stream.encode(), rows)
    pieces, table = _laid_out((b"", _positions(note.position, rows), b"", times, b"", starts, names, *data, *metadata))
    size = table.pop()
    header = _header(rows, (data_nulls, metadata_nulls), size, table, msgspec.json.encode(note))
    whole = len(header) + size
    if whole >= JOINED_BYTES:
        checksum = xxhash.xxh3_128()
        for piece in pieces:
            checksum.update(piece)
        note.body = checksum.hexdigest()
        view = memoryview(header)
        return Encoded([view, *pieces], whole, _seal(view, note.body))
    message = memoryview(bytearray().join([header, *pieces]))
    note.body = xxhash.xxh3_128_hexdigest(message[len(header) :])
    return Encoded([message], whole, _seal(message[: len(header)], note.body))


def _header(rows: int, nulls: tuple[int, int], size: int, table: list[int], note: bytes) -> bytearray:
    """Return the prefix and the header of a message whose body has this size and these buffers."""
    filling = ALIGNMENT - (_HEADER.size + len(note)) % ALIGNMENT
    header = bytearray(
        _HEADER.pack(
            *(CONTINUATION, _HEADER.size - PREFIX.size + len(note) + filling),
            *(20, *_MESSAGE, 16, size, 28, 348, _METADATA_V5, _RECORD_BATCH),
            *(*_BATCH, 16, rows, 12, 96),
            *(_COLUMNS, rows, 0, rows, 0, rows, 0, rows, nulls[0], rows, nulls[1]),
            *(_BUFFERS, *table),
            *(1, 12, *_KEY_VALUE, 8, 8, 20, len(NOTE_KEY), NOTE_KEY, len(note)),
        )
    )
    header += note
    # A string ends with a zero byte.
    header += bytes(filling)
    return header


def _seal(header: memoryview, body: str) -> str:
    """Write the checksum of the body, and then that of the header, into the note; return the header's digest."""
    start = _HEADER.size + BODY_AT
    header[start : start + len(NO_BODY)] = body.encode()
    content = header[PREFIX.size :]
    start = _HEADER.size + CHECKSUM_AT
    header[start : start + len(NO_HEADER)] = xxhash.xxh3_64_hexdigest(content).encode()
    return hashlib.sha256(content).hexdigest()


def _laid_out(buffers: tuple[Piece, ...]) -> tuple[list[Piece], list[int]]:
    """Return buffers with the spaces between them; offset and length of each, and then the size of the body."""
    pieces: list[Piece] = []
    table: list[int] = []
    size = 0
    for buffer in buffers:
        length = len(buffer)
        table.append(size)
        table.append(length)
        if length:
            pieces.append(buffer)
            size += length
            rest = size % ALIGNMENT
            if rest:
                pieces.append(_ZEROS[rest:])
                size += ALIGNMENT - rest
    table.append(size)
    return pieces, table


def _columns(items: Rows) -> tuple[Column, Column]:
    """Return the buffers of data and metadata."""
    if isinstance(items, BufferedRun):
        valid = items.valid if items.nulls else b""
        return (0, b"", items.data_ends, items.data), (items.nulls, valid, items.metadata_ends, items.metadata)
    if not items.schema.equals(ITEMS):
        raise LocalError(f"a journal takes the columns data and metadata, both binary; not {items.schema.names}")
    return _binary(items.column(0)), _binary(items.column(1))


def _binary(column: pa.BinaryArray) -> Column:
    """Return the number of nulls in a column, and its validity, offsets and values."""
    rows = len(column)
    if not rows:
        return 0, b"", bytes(4), b""
    valid, ends, values = column.buffers()
    if column.offset or _OFFSET(ends)[0]:
        # Its buffers begin with other rows. An empty array next to it makes Arrow copy it.
        return _binary(pa.concat_arrays([column, column.slice(0, 0)]))
    nulls = column.null_count
    size = _OFFSET(ends, 4 * rows)[0]
    return (
        nulls,
        memoryview(valid)[: (rows + 7) // 8] if nulls else b"",
        memoryview(ends)[: 4 * (rows + 1)],
        memoryview(values)[:size] if size else b"",
    )


def _positions(first: int, rows: int) -> Piece:
    """Return `rows` consecutive numbers of 64 bits."""
    if rows <= FEW_ROWS:
        few = array("q", bytes(8 * rows))
        view = few
        for row in range(rows):
            view[row] = first + row
        return memoryview(few).cast("B")
    numbers = pc.add(_ramp(1 << rows.bit_length()).slice(0, rows), pa.scalar(first, pa.int64()))
    return memoryview(numbers.buffers()[1])[: 8 * rows]


@lru_cache(maxsize=1)
def _ramp(length: int) -> pa.Int64Array:
    """Return 0, 1, 2 … `length` - 1."""
    return pa.Array.from_buffers(pa.int64(), length, [None, pa.py_buffer(array("q", range(length)))])


def _repeated(text: bytes, rows: int) -> tuple[Piece, Piece]:
    """Return offsets and values of a column that has the same text in all rows."""
    width = len(text)
    if width * rows > MAX_COLUMN_BYTES:
        raise LocalError(f"{rows} rows are too many for a stream whose name has {width} bytes; append fewer at once")
    steps = _few_steps(width, FEW_ROWS) if rows <= FEW_ROWS else _many_steps(width, 1 << rows.bit_length())
    return memoryview(steps)[: 4 * (rows + 1)], text * rows


def _steps(width: int, count: int) -> bytes:
    """Return 0 and the first `count` multiples of `width`, as far as they fit into 32 bits, as such numbers."""
    return array("i", (width * row for row in range(count + 1) if width * row <= MAX_COLUMN_BYTES)).tobytes()


# Many feeds write small batches in turns, and each of them has a name of its own.
_few_steps: Final = lru_cache(maxsize=256)(_steps)
_many_steps: Final = lru_cache(maxsize=4)(_steps)
