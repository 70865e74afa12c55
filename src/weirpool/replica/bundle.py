"""Bundles: what the feeds of a group have received within an interval, as one object.

::

    magic              8 bytes
    length             of the header, 4 bytes, little-endian
    checksum           XXH3 of the header, 8 bytes, little-endian
    header             MessagePack
    content            the batches of all logs, in the order of the header, as they are in segments

A header names the writer, the bundle before it, and the condition of each log that it has rows of. From time to time it
has the condition of every log of the group: a *snapshot*, so that a successor need not read older bundles.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Final

import msgspec
import xxhash

from ..errors import JournalCorrupt, LocalError
from ..journal.layout import check_name, source_of
from ..journal.retention import MAX_CURSORS, reader_of
from ..texts import concealed

__all__ = [
    "MAX_BUNDLE_BYTES",
    "MAX_POSITION",
    "PREFIX_BYTES",
    "Bundle",
    "Cursor",
    "Header",
    "Part",
    "decode",
    "decode_header",
    "encode",
]

MAGIC: Final = b"penstck2"
"""The last character is the version of the format."""
MAX_BUNDLE_BYTES: Final = 256 * 1024 * 1024
MAX_HEADER_BYTES: Final = 64 * 1024 * 1024
"""10,000 logs in a snapshot, with requests and states of several KiB each."""
PREFIX_BYTES: Final = 64 * 1024
"""Read this much to get the header of most bundles."""

_LENGTHS: Final = struct.Struct("<8sIQ")

MAX_POSITION: Final = 1 << 62
_Position = Annotated[int, msgspec.Meta(ge=0, le=MAX_POSITION)]


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """How far a reader of a log is, as `weirpool.journal.retention.Committed` says it."""

    position: _Position
    query: str | None
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None


class Part(msgspec.Struct, frozen=True, array_like=True):
    """A log in a bundle: its condition after the bundle, and its rows in it."""

    __repr__ = concealed

    source: str
    uuid: str
    """The log's UUID; empty while the log does not exist, because no item has arrived."""
    first: _Position
    """The position of the first row in this bundle; `end` if there is none."""
    end: _Position
    """The position of the next row."""
    head: str = ""
    """The digest of the last batch."""
    size: _Position = 0
    """Bytes of the batches in this bundle."""
    state: bytes | None = None
    """The collector's last recorded state."""
    identity: bytes | None = None
    """The content of `_log.json`; in a snapshot, and when the log is new."""
    secret: bytes | None = None
    """The encrypted content of `_secret`; empty if there is none any more, None if it has not changed."""
    gap: str = ""
    """Why rows are missing at the end of the log; empty if they are not. Its record has no rows, so that bundles with
    it may be deleted before it is in a sealed segment."""
    before: str = ""
    """Why rows are missing before the first row of this bundle, if the record of that may be deleted already."""
    readers: dict[str, Cursor] | None = None
    """The readers of the log, by the names of their cursors; in a snapshot, when the log is new, and when they have
    changed. Without readers it is empty, and not None."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a bundle."""

    number: _Position
    owner: str
    """A random id of the process that wrote it."""
    epoch: _Position
    """How often the group was taken over before."""
    time: _Position
    """When it was written, by the clock of its writer: microseconds since 1970. Nothing depends on it."""
    previous: str
    """SHA-256 of the header of the bundle before it, in hex; empty in the first bundle."""
    snapshot: _Position
    """The number of the newest bundle, up to this one, with the condition of every log."""
    floor: _Position
    """Rows in bundles below this number are in sealed segments: they may be deleted."""
    checksum: bytes
    """XXH3 of 128 bits of the content."""
    parts: list[Part]
    key: bytes = b""
    """Tells a successor whether it has the key of the secrets; see `Vault.proof`."""
    ended: bool = False
    """Its writer has stopped: the group needs another owner, without waiting."""


class Bundle(msgspec.Struct, frozen=True):
    """A bundle that was read."""

    header: Header
    digest: str
    """SHA-256 of the header, in hex, which the next bundle names."""
    content: memoryview

    def batches(self, source: str) -> memoryview:
        """Return the batches of a log, one after the other as in a segment."""
        at = 0
        for part in self.header.parts:
            if part.source == source:
                return self.content[at : at + part.size]
            at += part.size
        return memoryview(b"")


def encode(header: Header, content: Sequence[bytes | memoryview]) -> tuple[bytes, str]:
    """Return the bytes of a bundle, and the digest of its header. The header's checksum is replaced."""
    checksum = xxhash.xxh3_128()
    for each in content:
        checksum.update(each)
    text = msgspec.msgpack.encode(msgspec.structs.replace(header, checksum=checksum.digest()))
    prefix = _LENGTHS.pack(MAGIC, len(text), xxhash.xxh3_64_intdigest(text))
    return b"".join([prefix, text, *content]), hashlib.sha256(text).hexdigest()


def decode_header(data: bytes, name: str) -> tuple[Header, str, int] | None:
    """Return the header of a bundle, its digest, and the start of the content; None if `data` ends before that.

    It raises `JournalCorrupt` if `data` is not the beginning of a bundle; `name` is that of the object.
    """
    if len(data) < _LENGTHS.size:
        return None
    magic, size, checksum = _LENGTHS.unpack_from(data)
    if magic[:-1] == MAGIC[:-1] and magic != MAGIC:
        raise _corrupt(
            name,
            f"it has format {magic[-1:].decode('latin-1')!r}, and this version reads format {MAGIC[-1:].decode()!r}",
        )
    if magic != MAGIC or size > MAX_HEADER_BYTES:
        raise _corrupt(name, "it does not begin like one")
    start = _LENGTHS.size + size
    if len(data) < start:
        return None
    text = data[_LENGTHS.size : start]
    if xxhash.xxh3_64_intdigest(text) != checksum:
        raise _corrupt(name, "the checksum of its header does not match")
    try:
        header = msgspec.msgpack.decode(text, type=Header)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _corrupt(name, str(error)) from None
    if header.snapshot > header.number or any(part.first > part.end for part in header.parts):
        raise _corrupt(name, "its header contradicts itself")
    sources = [part.source for part in header.parts]
    if len(sources) != len(set(sources)) or any(source_of(f"source={source}") is None for source in sources):
        raise _corrupt(name, "a source in its header is invalid, or is there twice")
    for part in header.parts:
        _check_readers(part.readers or {}, name)
    return header, hashlib.sha256(text).hexdigest(), start


def _check_readers(readers: Mapping[str, Cursor], name: str) -> None:
    try:
        for cursor, content in readers.items():
            reader_of(cursor)
            if content.query is not None:
                check_name(content.query, "query")
    except LocalError as error:
        raise _corrupt(name, str(error)) from None
    if len(readers) > MAX_CURSORS:
        raise _corrupt(name, f"a log in it has {len(readers)} readers")


def decode(data: bytes, name: str) -> Bundle:
    """Return a bundle; `JournalCorrupt` if it is damaged. `name` is that of the object."""
    found = decode_header(data, name)
    if found is None:
        raise _corrupt(name, "it is cut off")
    header, digest, start = found
    content = memoryview(data)[start:]
    if sum(part.size for part in header.parts) != len(content):
        raise _corrupt(name, "its content has another length")
    if xxhash.xxh3_128_digest(content) != header.checksum:
        raise _corrupt(name, "the checksum of its content does not match")
    return Bundle(header, digest, content)


def _corrupt(name: str, why: str) -> JournalCorrupt:
    return JournalCorrupt(f"{name}: is not a bundle of a collector ({why}); restore the object from a copy")
