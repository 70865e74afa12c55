"""What a segment holds: an Arrow IPC stream, each batch of it with a note of ours.

A segment is one schema message, which names the log, then record batch messages, and no end-of-stream marker.
Each batch has one entry of custom metadata, ``penstock``, a JSON object: where its rows belong, the digest of the
batch before it, and the checksums that tell whether it is still what was written. `docs/reference/journal.md`
describes the format for other implementations.
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from ..errors import JournalCorrupt, LocalError

__all__ = [
    "BODY_DIFFERS",
    "FORMAT",
    "ITEMS",
    "NO_ITEMS",
    "SCHEMA",
    "Encoded",
    "Entry",
    "Malformed",
    "Note",
    "body_is_sound",
    "corrupt",
    "encode",
    "entry_at",
    "genesis",
    "preamble",
    "preamble_bytes",
    "preamble_log",
    "scan",
    "tabulate",
]

BODY_DIFFERS = "the checksum of its body is another"

FORMAT = 2
"""The version of the format."""

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

# Arrow Columnar Format, Encapsulated message format: 0xFFFFFFFF, then the length of the header.
_PREFIX = struct.Struct("<II")
_CONTINUATION = 0xFFFFFFFF
_UNSIGNED = struct.Struct("<I").unpack_from
_SIGNED = struct.Struct("<i").unpack_from
_LONG = struct.Struct("<q").unpack_from
_VTABLE = struct.Struct("<6H").unpack_from
_MAX_HEADER_BYTES = 1 << 20
"""Our headers take some 600 bytes and the collector's state; a longer one is a damaged length."""
_ROW_BYTES = 16
"""At least: a position and a time."""
_RECORD_BATCH = 3
"""Of the union `MessageHeader` in Arrow's Message.fbs."""

_KEY = "penstock"
_SCHEMA_BYTES = len(SCHEMA.serialize())
_FRAME_BYTES = _SCHEMA_BYTES + 1_024
"""What a batch takes beside its rows and its note, at most."""
_TIME = SCHEMA.field("time").type
_MAX_REPEATED_CHARS = 1 << 20
_NO_HEADER = "0" * 16
_NO_BODY = "0" * 32
_CHECKSUM_BYTES = len(_NO_BODY) // 2
_NOTE_START = b'{"penstock":2,"header":"'
_BODY_AT = len(_NOTE_START) + len(_NO_HEADER) + len(b'","body":"')

_Position = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_Time = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
"""What a datetime can hold."""


class Note(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a batch's custom metadata says; the fields' order is part of the format."""

    penstock: int
    """The version of the format."""
    header: str
    """XXH3 of the message's header, taken while these sixteen digits are zeros."""
    body: str
    """XXH3, of 128 bits, of the message's body."""
    prev: str
    """The digest of the batch before it; of a log's first batch, its genesis."""
    position: _Position
    """Of the first row; of a batch without rows, that of the next row to come."""
    rows: _Position
    time: _Time
    """When it was appended: microseconds since 1970, UTC."""
    state: bytes | None = None
    """What the collector wants back after a crash, in base64."""
    gap: str | None = None
    """Why items were lost just before `position`; such a batch has no rows."""
    previous: _Time | None = None
    """In a batch without rows: when the last row before it was appended."""

    @classmethod
    def blank(
        cls,
        *,
        prev: str,
        position: int,
        rows: int,
        time: int,
        state: bytes | None,
        gap: str | None = None,
        previous: int | None = None,
    ) -> Note:
        """Return a note whose checksums `encode` fills in."""
        return cls(
            penstock=FORMAT,
            header=_NO_HEADER,
            body=_NO_BODY,
            prev=prev,
            position=position,
            rows=rows,
            time=time,
            state=state,
            gap=gap,
            previous=previous,
        )


class Encoded(NamedTuple):
    """A batch as it is written."""

    header: bytes
    """Length prefix and header."""
    body: pa.Buffer
    digest: str
    """What the next batch names as the one before it."""


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A batch, as it was found in a segment; its header is sound."""

    offset: int
    """Where its message starts in the segment, in bytes."""
    header_bytes: int
    """Length prefix and header."""
    body_bytes: int
    note: Note
    checksum: bytes
    """Of its body."""
    digest: str
    """SHA-256 of its header, which holds the checksum of its body."""

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
    """These bytes are not a batch of this journal.

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
    """Return the error for the rows from `start` to before `end`; None means that nobody knows how many.

    Where `start` is `end`, no row is missing, but a record between rows: of a gap, or of the collector's state.
    """
    if end is None:
        what = f"positions from {start} on are damaged"
    elif end == start:
        what = f"a record before position {start} is damaged"
    else:
        what = f"positions {start} to {end - 1} are damaged"
    return JournalCorrupt(
        f"{name}: {what} ({why}); restore this file from a copy, or see what `penstock journal repair` can do"
    )


def genesis(log: str) -> str:
    """Return what the first batch of the log with this UUID names as the batch before it."""
    return hashlib.sha256(log.encode()).hexdigest()


@lru_cache(maxsize=8)
def preamble(log: str) -> bytes:
    """Return the schema message that a segment of the log with this UUID begins with."""
    note = msgspec.json.encode({"penstock": FORMAT, "log": log})
    return bytes(SCHEMA.with_metadata({_KEY: note}).serialize().to_pybytes())


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
        pa.Array.from_buffers(_TIME, rows, [None, pa.py_buffer(array("q", (time,)) * rows)]),
        _repeated(stream, rows),
        *items.columns,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@lru_cache(maxsize=1)
def _ramp(length: int) -> pa.Int64Array:
    """Return 0, 1, 2 … `length` - 1."""
    return pa.Array.from_buffers(pa.int64(), length, [None, pa.py_buffer(array("q", range(length)))])


def _repeated(stream: str, rows: int) -> pa.StringArray:
    capacity = max(1_024, 1 << rows.bit_length())
    # Of an array of none Arrow writes all that the slice was cut from.
    if not rows or capacity * len(stream) > _MAX_REPEATED_CHARS:
        return pa.repeat(pa.scalar(stream, pa.string()), rows)
    return _repetition(stream, capacity).slice(0, rows)


@lru_cache(maxsize=4)
def _repetition(stream: str, length: int) -> pa.StringArray:
    return pa.repeat(pa.scalar(stream, pa.string()), length)


def encode(rows: pa.RecordBatch, note: Note) -> Encoded:
    """Return a batch as the bytes to append to a segment: first the header, then the body."""
    text = msgspec.json.encode(note)
    # A buffer that need not grow: growing would copy what is in it.
    room = pa.allocate_buffer(pa.ipc.get_record_batch_size(rows) + len(text) + _FRAME_BYTES)
    sink = pa.FixedSizeBufferWriter(room)
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(rows, custom_metadata={_KEY: text})
        end = sink.tell()
    message = room.slice(_SCHEMA_BYTES, end - _SCHEMA_BYTES)
    header_bytes = _PREFIX.size + _PREFIX.unpack_from(message)[1]
    header = bytearray(message.slice(_PREFIX.size, header_bytes - _PREFIX.size))
    body = message.slice(header_bytes)

    start = header.index(_NOTE_START)
    body_at = start + _BODY_AT
    header[body_at : body_at + len(_NO_BODY)] = xxhash.xxh3_128_hexdigest(body).encode()
    header_at = start + len(_NOTE_START)
    header[header_at : header_at + len(_NO_HEADER)] = xxhash.xxh3_64_hexdigest(header).encode()
    prefix = bytes(message.slice(0, _PREFIX.size))
    return Encoded(prefix + header, body, hashlib.sha256(header).hexdigest())


def preamble_bytes(content: pa.Buffer, log: str) -> int:
    """Return where a segment's first batch starts.

    Raises:
        Malformed: The segment does not begin with our schema, or belongs to another log than the one with this UUID.

    """
    expected = preamble(log)
    if content.size >= len(expected) and bytes(content.slice(0, len(expected))) == expected:
        return len(expected)
    # Another implementation may write the same schema in other bytes.
    size, found = preamble_log(content)
    if found != log:
        raise Malformed(f"it belongs to another log, {found[:64]!r}", 0, 0)
    return size


def preamble_log(content: pa.Buffer) -> tuple[int, str]:
    """Return where a segment's first batch starts, and the UUID of its log.

    Raises:
        Malformed: The segment does not begin with our schema.

    """
    size, schema = _schema(content)
    try:
        found = msgspec.json.decode((schema.metadata or {}).get(_KEY.encode(), b"{}"), type=_Origin)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"its schema does not say whose it is: {error}", 0, 0) from None
    if found.penstock != FORMAT:
        raise Malformed(f"it has format {found.penstock}, and the log has format {FORMAT}", 0, 0)
    return size, found.log


class _Origin(msgspec.Struct):
    penstock: int = 1
    log: str = ""


def _schema(content: pa.Buffer) -> tuple[int, pa.Schema]:
    """Return the size of a segment's schema message, and the schema, which is ours but for its metadata."""
    if content.size >= _PREFIX.size:
        continuation, header_bytes = _PREFIX.unpack_from(content)
        size = _PREFIX.size + int(header_bytes)
        if continuation == _CONTINUATION and header_bytes <= _MAX_HEADER_BYTES and size <= content.size:
            try:
                schema = pa.ipc.read_schema(content.slice(0, size))
                if schema.equals(SCHEMA):
                    return size, schema
            except (pa.ArrowException, OSError, ValueError):
                pass
    raise Malformed("it does not begin with the schema of a journal", 0, 0)


def scan(content: pa.Buffer, offset: int, limit: int, position: int, head: str | None) -> Iterator[Entry]:
    """Yield the batches that lie wholly between two offsets of a segment; bodies with rows are not looked at.

    Args:
        content: The segment.
        offset: Where the first of them starts.
        limit: Where to stop; what does not end before is left alone.
        position: What the first of them must begin with.
        head: The digest of the batch before the first of them; None if it is not known.

    Raises:
        Malformed: There is something else than a batch, or one that does not follow the one before it.

    """
    view = memoryview(content)
    while True:
        entry = entry_at(view, offset, limit, position)
        if entry is None:
            return
        if entry.position != position:
            raise Malformed(f"a batch of position {entry.position} is in its place", offset, position)
        if head is not None and entry.note.prev != head:
            raise Malformed("the batch before it is not the one that it was written after", offset, position)
        if not entry.note.rows and not body_is_sound(content, entry):
            raise Malformed(BODY_DIFFERS, offset, position)
        yield entry
        offset = entry.end_offset
        position = entry.end
        head = entry.digest


def entry_at(view: memoryview, offset: int, limit: int, position: int) -> Entry | None:
    """Return the batch that starts at an offset, or None if what is there does not end before `limit`.

    Raises:
        Malformed: There is no batch, or its header is damaged; the error tells `position`.

    """
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
        note, body_bytes = _note(header), _body_length(header)
        checksum = bytes.fromhex(note.body)
        if len(checksum) != _CHECKSUM_BYTES:
            raise ValueError("the checksum of its body has a wrong length")
        if note.rows * _ROW_BYTES > body_bytes:
            raise ValueError(f"its body is too short for {note.rows} rows")
    except (ValueError, IndexError, struct.error, RecursionError) as error:
        raise Malformed(str(error), offset, position) from None
    entry = Entry(offset, header_bytes, body_bytes, note, checksum, hashlib.sha256(header).hexdigest())
    return entry if entry.end_offset <= limit else None


def _note(header: bytes) -> Note:
    """Return the note in a header, once the header is found to be what was written."""
    # It is found by how it starts: inside JSON nothing else can look so, since quotes are escaped there.
    start = header.find(_NOTE_START)
    if start < 0:
        raise ValueError("its header has no note of a journal, or one of another version")
    at = start + len(_NOTE_START)
    end = at + len(_NO_HEADER)
    if header[at:end] != xxhash.xxh3_64_hexdigest(header[:at] + _NO_HEADER.encode() + header[end:]).encode():
        raise ValueError("the checksum of its header is another")
    # Flatbuffers end a string with a zero byte, and JSON has none.
    return msgspec.json.decode(header[start : header.index(b"\0", start)], type=Note)


def _body_length(header: bytes) -> int:
    """Return Arrow's `Message.bodyLength`, the field in slot 3 of the flatbuffer's root table; slot 1 is its kind."""
    (table,) = _UNSIGNED(header, 0)
    vtable = table - _SIGNED(header, table)[0]
    if vtable < 0:
        raise ValueError("its header is not an Arrow message")
    vtable_bytes, _, _, kind, _, length = _VTABLE(header, vtable)
    if vtable_bytes < 12 or not kind or header[table + kind] != _RECORD_BATCH:
        raise ValueError("its header is not that of a record batch")
    size = _LONG(header, table + length)[0] if length else 0
    if size < 0:
        raise ValueError("its body has a negative length")
    return int(size)


def body_is_sound(content: pa.Buffer, entry: Entry) -> bool:
    """Return whether the body of a batch is what was written: one pass over its bytes."""
    body = content.slice(entry.offset + entry.header_bytes, entry.body_bytes)
    return bool(entry.checksum == xxhash.xxh3_128_digest(body))
