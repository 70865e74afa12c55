"""The content of a segment: an Arrow IPC stream with a note for each batch.

A segment is one schema message, which names the log, then record batch messages, and no end-of-stream marker.
Each batch has one entry of custom metadata, ``weirpool``, a JSON object: the position of its rows, the digest of the
previous batch, and checksums of header and body. `docs/reference/journal.md` describes the format for other
implementations.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import xxhash

__all__ = [
    "BODY_AT",
    "BODY_DIFFERS",
    "CHECKSUM_AT",
    "CONTINUATION",
    "FORMAT",
    "ITEMS",
    "NOTE_KEY",
    "NO_BODY",
    "NO_HEADER",
    "NO_ITEMS",
    "PREFIX",
    "SCHEMA",
    "Entry",
    "Malformed",
    "Note",
    "body_is_sound",
    "entry_at",
    "genesis",
    "preamble",
    "preamble_bytes",
    "preamble_log",
    "scan",
]

BODY_DIFFERS = "the checksum of its body does not match"

FORMAT = 2
"""The version of the format."""

ITEMS = pa.schema([("data", pa.binary()), ("metadata", pa.binary())])
"""The columns to append. Metadata is null for an item without metadata."""

# Not from a list: for that pyarrow imports pandas, which would delay every Spark worker.
NO_ITEMS = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in ITEMS], schema=ITEMS)
"""A batch for a record without rows."""

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
"""The columns of a segment. Every field is nullable."""

# Arrow Columnar Format, Encapsulated message format: 0xFFFFFFFF, then the length of the header.
PREFIX = struct.Struct("<II")
"""The start of a message."""
CONTINUATION = 0xFFFFFFFF
_UNSIGNED = struct.Struct("<I").unpack_from
_SIGNED = struct.Struct("<i").unpack_from
_LONG = struct.Struct("<q").unpack_from
_VTABLE = struct.Struct("<6H").unpack_from
_MAX_HEADER_BYTES = 1 << 20
"""A header has about 600 bytes plus the collector's state; a longer one means a damaged length."""
_ROW_BYTES = 16
"""At least: a position and a time."""
_RECORD_BATCH = 3
"""The value in the union `MessageHeader` of Arrow's Message.fbs."""

NOTE_KEY = b"weirpool"
"""The key of the custom metadata of schemas and batches."""
NO_HEADER = "0" * 16
NO_BODY = "0" * 32
_CHECKSUM_BYTES = len(NO_BODY) // 2
_NOTE_START = b'{"weirpool":2,"header":"'
CHECKSUM_AT = len(_NOTE_START)
"""Where a note has the checksum of the header."""
BODY_AT = CHECKSUM_AT + len(NO_HEADER) + len('","body":"')
"""Where it has that of the body."""

_Position = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_Time = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
"""The range of a datetime."""


class Note(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The custom metadata of a batch; the order of the fields is part of the format."""

    weirpool: int
    """The version of the format."""
    header: str
    """XXH3 of the message's header, computed while these sixteen digits are zeros."""
    body: str
    """XXH3, of 128 bits, of the message's body."""
    prev: str
    """The digest of the previous batch; in a log's first batch, its genesis."""
    position: _Position
    """Of the first row; in a batch without rows, of the next row."""
    rows: _Position
    time: _Time
    """When it was appended: microseconds since 1970, UTC."""
    state: bytes | None = None
    """The collector's state, to be restored after a crash, in base64."""
    gap: str | None = None
    """Why items were lost just before `position`; such a batch has no rows."""
    previous: _Time | None = None
    """In a batch without rows: when the last row before it was appended."""

    @classmethod
    def blank(cls, **fields: Any) -> Note:
        """Return a note with these fields, whose checksums are set when it is encoded."""
        return cls(weirpool=FORMAT, header=NO_HEADER, body=NO_BODY, **fields)


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A batch found in a segment, with a valid header."""

    offset: int
    """The start of its message in the segment, in bytes."""
    header_bytes: int
    """Length prefix and header."""
    body_bytes: int
    note: Note
    checksum: bytes
    """The checksum of its body."""
    digest: str
    """SHA-256 of its header, which contains the checksum of its body."""

    @property
    def end_offset(self) -> int:
        """The start of the next message."""
        return self.offset + self.header_bytes + self.body_bytes

    @property
    def position(self) -> int:
        """The position of the first row."""
        return self.note.position

    @property
    def end(self) -> int:
        """The position after the last row."""
        return self.note.position + self.note.rows


class Malformed(Exception):
    """These bytes, from `offset` on, are not a batch of this journal; `position` is the first row that may be there."""

    def __init__(self, why: str, offset: int, position: int) -> None:
        super().__init__(why, offset, position)
        self.why = why
        self.offset = offset
        self.position = position


def genesis(log: str) -> str:
    """Return the digest that the first batch of the log with this UUID contains for the previous batch."""
    return hashlib.sha256(log.encode()).hexdigest()


@lru_cache(maxsize=8)
def preamble(log: str) -> bytes:
    """Return the schema message at the start of a segment of the log with this UUID."""
    note = msgspec.json.encode({"weirpool": FORMAT, "log": log})
    return bytes(SCHEMA.with_metadata({NOTE_KEY: note}).serialize().to_pybytes())


def preamble_bytes(content: pa.Buffer, log: str) -> int:
    """Return the start of a segment's first batch.

    It raises `Malformed` if the segment does not start with this schema, or belongs to a log with another UUID.
    """
    expected = preamble(log)
    if content.size >= len(expected) and bytes(content.slice(0, len(expected))) == expected:
        return len(expected)
    # Another implementation may encode the same schema in other bytes.
    size, found = preamble_log(content)
    if found != log:
        raise Malformed(f"it belongs to another log, {found[:64]!r}", 0, 0)
    return size


def preamble_log(content: pa.Buffer) -> tuple[int, str]:
    """Return the start of a segment's first batch, and the UUID of its log; or raise `Malformed`."""
    size, schema = _schema(content)
    try:
        found = msgspec.json.decode((schema.metadata or {}).get(NOTE_KEY, b"{}"), type=_Origin)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"its schema does not name the log: {error}", 0, 0) from None
    if found.weirpool != FORMAT:
        raise Malformed(f"it has format {found.weirpool}, and the log has format {FORMAT}", 0, 0)
    return size, found.log


class _Origin(msgspec.Struct):
    weirpool: int = 1
    log: str = ""


def _schema(content: pa.Buffer) -> tuple[int, pa.Schema]:
    """Return the size of a segment's schema message, and the schema, which equals `SCHEMA` except for its metadata."""
    if content.size >= PREFIX.size:
        continuation, header_bytes = PREFIX.unpack_from(content)
        size = PREFIX.size + int(header_bytes)
        if continuation == CONTINUATION and header_bytes <= _MAX_HEADER_BYTES and size <= content.size:
            try:
                schema = pa.ipc.read_schema(content.slice(0, size))
                if schema.equals(SCHEMA):
                    return size, schema
            except (pa.ArrowException, OSError, ValueError):
                pass
    raise Malformed("it does not begin with the schema of a journal", 0, 0)


def scan(content: pa.Buffer, offset: int, limit: int, position: int, head: str | None) -> Iterator[Entry]:
    """Yield the batches that lie completely between two offsets of a segment, without reading the bodies of rows.

    The first one must have this position, and `head` as the digest of the batch before it, if that is known. Raises
    `Malformed` where the next bytes are not a batch, or not the one that follows.
    """
    view = memoryview(content)
    while True:
        entry = entry_at(view, offset, limit, position)
        if entry is None:
            return
        if entry.position != position:
            raise Malformed(f"a batch of position {entry.position} is in its place", offset, position)
        if head is not None and entry.note.prev != head:
            raise Malformed("it was written after a different batch than the one before it", offset, position)
        if not entry.note.rows and not body_is_sound(content, entry):
            raise Malformed(BODY_DIFFERS, offset, position)
        yield entry
        offset = entry.end_offset
        position = entry.end
        head = entry.digest


def entry_at(view: memoryview, offset: int, limit: int, position: int) -> Entry | None:
    """Return the batch that starts at an offset, or None if it does not end before `limit`.

    It raises `Malformed`, with `position`, if there is none, or if its header is damaged.
    """
    if limit - offset < PREFIX.size:
        return None
    continuation, length = PREFIX.unpack_from(view, offset)
    if continuation != CONTINUATION or not 0 < length <= _MAX_HEADER_BYTES:
        raise Malformed("no batch starts there", offset, position)
    header_bytes = PREFIX.size + length
    if limit - offset < header_bytes:
        return None
    header = bytes(view[offset + PREFIX.size : offset + header_bytes])
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
    """Return the note in a header, after checking the header's checksum."""
    # It is found by its first characters, which cannot occur inside JSON, because quotes are escaped there.
    start = header.find(_NOTE_START)
    if start < 0:
        raise ValueError("its header has no note of a journal, or one of another version")
    at = start + CHECKSUM_AT
    end = at + len(NO_HEADER)
    if header[at:end] != xxhash.xxh3_64_hexdigest(header[:at] + NO_HEADER.encode() + header[end:]).encode():
        raise ValueError("the checksum of its header does not match")
    # Flatbuffers end a string with a zero byte, which JSON does not contain.
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
    """Return True if the checksum of a batch's body is right: one pass over its bytes."""
    body = content.slice(entry.offset + entry.header_bytes, entry.body_bytes)
    return bool(entry.checksum == xxhash.xxh3_128_digest(body))
