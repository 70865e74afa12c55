"""Batches of a journal as pyarrow writes them: what the journal's own encoder is compared with."""

from __future__ import annotations

import hashlib
import io
import struct
from typing import NamedTuple

import msgspec
import pyarrow as pa
import xxhash

from weirpool.journal.format import SCHEMA, Note

NO_CHECKSUM = b"0" * 16


class Message(NamedTuple):
    """A batch as it is in a segment."""

    header: bytes
    """Length prefix and header."""
    body: bytes
    digest: str


def tabulate(items: pa.RecordBatch, stream: str, position: int, time: int) -> pa.RecordBatch:
    """Return items as rows of `SCHEMA`, from this position on, all with this time."""
    count = items.num_rows
    positions = pa.array(range(position, position + count), pa.int64())
    times = pa.array([time] * count, SCHEMA.field("time").type)
    streams = pa.array([stream] * count, pa.string())
    return pa.RecordBatch.from_arrays([positions, times, streams, *items.columns], schema=SCHEMA)


def encode(rows: pa.RecordBatch, note: Note) -> Message:
    """Return rows, which may be invalid, as a message with valid checksums in its note."""
    _, body = split(_message(rows, note))
    note.body = xxhash.xxh3_128_hexdigest(body)
    header, _ = split(_message(rows, note))
    at = header.index(NO_CHECKSUM)
    checksum = xxhash.xxh3_64_hexdigest(header[8:]).encode()
    header = header[:at] + checksum + header[at + len(checksum) :]
    return Message(header, body, hashlib.sha256(header[8:]).hexdigest())


def split(message: bytes) -> tuple[bytes, bytes]:
    """Return header and body of a message."""
    end = 8 + struct.unpack_from("<I", message, 4)[0]
    return message[:end], message[end:]


def _message(rows: pa.RecordBatch, note: Note) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(rows, custom_metadata={"weirpool": msgspec.json.encode(note)})
        end = sink.tell()
    return sink.getvalue()[len(SCHEMA.serialize()) : end]
