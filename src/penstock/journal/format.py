"""What a segment holds: an Arrow IPC stream, each batch of it with a note of ours.

A segment is one schema message, then record batch messages, and no end-of-stream marker. Each batch has one
entry of custom metadata, ``penstock``, a JSON object: where its rows belong, and the checksums that tell
whether it is still what was written. `docs/reference/journal.md` tells the format to other implementations.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import google_crc32c
import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import JournalCorrupt, LocalError

__all__ = [
    "ITEMS",
    "NO_ITEMS",
    "PREAMBLE",
    "SCHEMA",
    "Entry",
    "Malformed",
    "Note",
    "body_is_sound",
    "corrupt",
    "decode",
    "encode",
    "preamble_bytes",
    "scan",
    "tabulate",
]

ITEMS = pa.schema([("data", pa.binary()), ("metadata", pa.binary())])
"""What is appended. Metadata is null where an item has none."""

# Not from a list: for that pyarrow imports pandas, and every worker of Spark would wait for it.
NO_ITEMS = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in ITEMS], schema=ITEMS)
"""What is appended when there is only something to record."""

# Spark compares types and nullability with its own schema: LongType, TimestampType, StringType, BinaryType.
SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("stream", pa.string()),
        ("data", pa.binary()),
        ("metadata", pa.binary()),
    ]
)
"""What a segment's rows are. Every field is nullable."""

PREAMBLE: bytes = SCHEMA.serialize().to_pybytes()
"""The schema message that a segment begins with."""

# Arrow Columnar Format, Encapsulated message format: 0xFFFFFFFF, then the length of the header.
_PREFIX = struct.Struct("<II")
_CONTINUATION = 0xFFFFFFFF
_END_OF_STREAM_BYTES = 8
_MAX_HEADER_BYTES = 1 << 20
"""Our headers take some 500 bytes and the collector's state; a longer one is a damaged length."""

_KEY = "penstock"
_UNSET = "00000000"
_NOTE_START = b'{"penstock":1,"header_crc32c":"'
_BODY_CRC_AT = len(_NOTE_START) + len(_UNSET) + len(b'","body_crc32c":"')


class Note(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a batch's custom metadata says; the fields' order is part of the format."""

    penstock: int
    """The version of the format: 1."""
    header_crc32c: str = msgspec.field()
    """Of the message's header, taken while these eight digits are zeros."""
    body_crc32c: str
    """Of the message's body."""
    position: int
    """Of the first row; of a batch without rows, that of the next row to come."""
    rows: int
    time: int
    """When it was appended: microseconds since 1970, UTC."""
    state: bytes | None = None
    """What the collector wants back after a crash, in base64."""
    gap: str | None = None
    """Why items were lost just before `position`; such a batch has no rows."""

    @classmethod
    def blank(cls, *, position: int, rows: int, time: int, state: bytes | None, gap: str | None = None) -> Note:
        """Return a note whose checksums `encode` fills in."""
        return cls(
            penstock=1,
            header_crc32c=_UNSET,
            body_crc32c=_UNSET,
            position=position,
            rows=rows,
            time=time,
            state=state,
            gap=gap,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch, as it was found in a segment; its header is sound."""

    offset: int
    """Where its message starts in the segment, in bytes."""
    header_bytes: int
    """Length prefix and header."""
    body_bytes: int
    note: Note

    @property
    def end_offset(self) -> int:
        """Where the next message starts."""
        return self.offset + self.header_bytes + self.body_bytes

    @property
    def position(self) -> int:
        """Of the first row."""
        return self.note.position

    @property
    def end(self) -> int:
        """The position behind the last row."""
        return self.note.position + self.note.rows


class Malformed(Exception):
    """These bytes are no batch of a journal.

    Args:
        why: What is wrong with them.
        offset: Where in the segment they start.
        position: The first row that they may have held.

    """

    def __init__(self, why: str, offset: int, position: int) -> None:
        super().__init__(why, offset, position)
        self.why = why
        self.offset = offset
        self.position = position


def corrupt(name: str, start: int, end: int | None, why: str) -> JournalCorrupt:
    """Return the error for the rows from `start` to before `end`; None means that nobody knows how many."""
    rows = f"from {start} on" if end is None else f"{start} to {end - 1}"
    return JournalCorrupt(
        f"{name}: positions {rows} are damaged ({why}); restore this file from a copy, or read on behind it"
    )


def tabulate(items: pa.RecordBatch, stream: str, position: int, time: int) -> pa.RecordBatch:
    """Return the rows that `items` become.

    Args:
        items: Columns `data` and `metadata`, as in `ITEMS`.
        stream: Whence they came.
        position: Of the first of them.
        time: When they came: microseconds since 1970.

    Raises:
        LocalError: The columns of `items` are others.

    """
    if not items.schema.equals(ITEMS):
        raise LocalError(f"a journal takes the columns data and metadata, both binary; not {items.schema.names}")
    rows = items.num_rows
    columns = [
        pc.add(_ramp(max(65_536, 1 << rows.bit_length())).slice(0, rows), pa.scalar(position, pa.int64())),
        pa.repeat(pa.scalar(time, SCHEMA.field("time").type), rows),
        pa.repeat(pa.scalar(stream, pa.string()), rows),
        *items.columns,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@lru_cache(maxsize=1)
def _ramp(length: int) -> pa.Int64Array:
    """Return 0, 1, 2 … `length` - 1."""
    return pa.Array.from_buffers(pa.int64(), length, [None, pa.py_buffer(array("q", range(length)))])


def encode(rows: pa.RecordBatch, note: Note) -> tuple[bytes, pa.Buffer]:
    """Return a batch as header and body: the bytes to append to a segment, in this order."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(rows, custom_metadata={_KEY: msgspec.json.encode(note)})
    encoded = sink.getvalue()
    message = encoded.slice(len(PREAMBLE), encoded.size - len(PREAMBLE) - _END_OF_STREAM_BYTES)
    header_bytes = _PREFIX.size + _PREFIX.unpack_from(message)[1]
    header = bytearray(message.slice(0, header_bytes))
    body = message.slice(header_bytes)

    start = header.index(_NOTE_START)
    body_crc_at = start + _BODY_CRC_AT
    header[body_crc_at : body_crc_at + len(_UNSET)] = _digits(google_crc32c.value(body))
    header_crc_at = start + len(_NOTE_START)
    header_crc = google_crc32c.value(bytes(header[_PREFIX.size :]))
    header[header_crc_at : header_crc_at + len(_UNSET)] = _digits(header_crc)
    return bytes(header), body


def preamble_bytes(content: pa.Buffer) -> int:
    """Return where a segment's first batch starts.

    Raises:
        Malformed: The segment does not begin with our schema.

    """
    if content.size >= _PREFIX.size:
        _, header_bytes = _PREFIX.unpack_from(content)
        size = _PREFIX.size + int(header_bytes)
        try:
            if size <= content.size and pa.ipc.read_schema(content.slice(0, size)).equals(SCHEMA):
                return size
        except (pa.ArrowException, OSError):
            pass
    raise Malformed("it does not begin with the schema of a journal", 0, 0)


def scan(content: pa.Buffer, offset: int, limit: int, position: int) -> Iterator[Entry]:
    """Yield the batches that lie wholly between two offsets of a segment; bodies are not looked at.

    Args:
        content: The segment.
        offset: Where the first of them starts.
        limit: Where to stop; what does not end before is left alone.
        position: What the first of them must begin with.

    Raises:
        Malformed: There is something else than a batch, or one that does not follow the one before it.

    """
    view = memoryview(content)
    while True:
        entry = _entry(view, offset, limit, position)
        if entry is None:
            return
        if entry.position != position:
            raise Malformed(f"a batch of position {entry.position} is in its place", offset, position)
        yield entry
        offset = entry.end_offset
        position = entry.end


def _entry(view: memoryview, offset: int, limit: int, position: int) -> Entry | None:
    if limit - offset < _PREFIX.size:
        return None
    continuation, length = _PREFIX.unpack_from(view, offset)
    if continuation != _CONTINUATION or not 0 < length <= _MAX_HEADER_BYTES:
        raise Malformed("no batch starts there", offset, position)
    header_bytes = _PREFIX.size + length
    if limit - offset < header_bytes:
        return None
    header = bytes(view[offset + _PREFIX.size : offset + header_bytes])
    try:
        entry = Entry(offset, header_bytes, _body_length(header), _note(header))
    except (ValueError, struct.error) as error:
        raise Malformed(str(error), offset, position) from None
    return entry if entry.end_offset <= limit else None


def _note(header: bytes) -> Note:
    """Return the note in a header, once the header is found to be what was written."""
    # It is found by how it starts: inside JSON nothing else can look so, since quotes are escaped there.
    start = header.find(_NOTE_START)
    if start < 0:
        raise ValueError("its header has no note of a journal, or one of a newer version")
    crc_at = start + len(_NOTE_START)
    crc_end = crc_at + len(_UNSET)
    unset = header[:crc_at] + _UNSET.encode() + header[crc_end:]
    if header[crc_at:crc_end] != _digits(google_crc32c.value(unset)):
        raise ValueError("the CRC32C of its header is another")
    # Flatbuffers end a string with a zero byte, and JSON has none.
    return msgspec.json.decode(header[start : header.index(b"\0", start)], type=Note)


def _body_length(header: bytes) -> int:
    """Return Arrow's `Message.bodyLength`, the field in slot 3 of the flatbuffer's root table."""
    (table,) = struct.unpack_from("<I", header, 0)
    (to_vtable,) = struct.unpack_from("<i", header, table)
    vtable = table - to_vtable
    if not 0 <= vtable < len(header):
        raise ValueError("its header is no Arrow message")
    vtable_bytes, _, _, _, _, field = struct.unpack_from("<6H", header, vtable)
    if vtable_bytes < 12 or not field:
        return 0
    (length,) = struct.unpack_from("<q", header, table + field)
    if length < 0:
        raise ValueError("its body has a negative length")
    return int(length)


def body_is_sound(content: pa.Buffer, entry: Entry) -> bool:
    """Return whether the body of a batch is what was written: one pass over its bytes."""
    body = content.slice(entry.offset + entry.header_bytes, entry.body_bytes)
    return entry.note.body_crc32c.encode() == _digits(google_crc32c.value(body))


def decode(content: pa.Buffer, entry: Entry) -> pa.RecordBatch:
    """Return the rows of a batch; they lie in `content`, nothing is copied."""
    message = content.slice(entry.offset, entry.header_bytes + entry.body_bytes)
    return pa.ipc.read_record_batch(message, SCHEMA)


def _digits(crc: int) -> bytes:
    return b"%08x" % crc
