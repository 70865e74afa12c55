"""The manifest of a log's cold storage: which sealed segments exist, and what they contain.

A manifest is one version of this list. Versions are never changed. Old entries are folded into pages, so that a version
stays small for years. Everything is checked when it is read, because anybody may have written it.
"""

from __future__ import annotations

import re
import uuid as uuids
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated, Any, Final, TypeVar

import msgspec
import xxhash

from ..errors import JournalCorrupt

__all__ = [
    "FORMAT",
    "MAX_BYTES",
    "GapFile",
    "Manifest",
    "Page",
    "Segment",
    "checksum",
    "decode",
    "decode_page",
    "encode",
    "encode_page",
    "folded",
    "segment_file",
]

FORMAT: Final = 1
"""The version of the format of cold storage."""
MAX_BYTES: Final = 1 << 24
"""The size of a manifest or a page: that of 16,000 entries."""
MAX_RAW_BYTES: Final = 1 << 40
"""Of one segment, which is held in memory while it is sealed. Ranges are divided by this number."""
MAX_SEGMENTS: Final = 192
PAGE_SEGMENTS: Final = 128
"""With more than `MAX_SEGMENTS` entries, the oldest ones move to a page of this many."""

_FILE = re.compile(r"\d{20}\.parquet")
_PAGE = re.compile(r"\d{20}-[0-9a-f]{16}\.(?:json|gaps)")

_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
_Time = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
_Times = tuple[_Time, _Time]
_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_Checksum = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]

T = TypeVar("T")


def checksum(data: Any) -> str:
    """Return the checksum of a file in cold storage: XXH3 of 128 bits, in hex."""
    return xxhash.xxh3_128_hexdigest(data)


def segment_file(first: int) -> str:
    """Return the name of the sealed segment whose first row has this position."""
    return f"{first:020d}.parquet"


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """A sealed segment, as listed."""

    first: _Count
    """The position of its first row."""
    end: _Count
    """The position after its last row."""
    name: str
    """Its file in the log's folder."""
    rows: _Count
    """Its rows: less than its positions if the loss of some was accepted."""
    size: _Count
    """The size of the file."""
    raw_bytes: _Count
    """The bytes of the Arrow segments that it replaces."""
    times: _Times | None = None
    """The earliest and the latest time of its rows: microseconds since 1970. None if it has no rows."""
    head: _Digest
    """The digest of the last batch of these rows in the log's chain."""
    checksum: _Checksum
    """The checksum of the file."""
    chunks: bytes
    """The checksums of each column of each row group, in order, in base64."""
    footer_bytes: _Count
    """The size of the file's footer, at its end."""
    footer: _Checksum
    """The checksum of that footer. It tells where everything in the file is."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A file with the entries of old segments, and what they are in sum."""

    first: _Count
    end: _Count
    name: str
    """Its file in the log's folder of pages."""
    segments: _Count
    """The number of entries."""
    rows: _Count
    size: _Count
    raw_bytes: _Count
    times: _Times | None = None
    checksum: _Checksum
    """The checksum of the page."""


class GapFile(msgspec.Struct, frozen=True):
    """A file with the gaps of the log, in the format of ``_gaps``."""

    name: str
    checksum: _Checksum


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One version of the list."""

    uuid: str
    """The UUID of the log."""
    version: _Count
    """Increases by one with each version."""
    writer: str
    """A random id of whoever wrote it: two writers of one version differ."""
    first: _Count
    """The first position of the history: entries below it have been removed."""
    segments: list[Segment] = []
    """The newest entries, in order."""
    pages: list[Page] = []
    """Pages with the entries before them, in order."""
    gaps: GapFile | None = None
    """The gaps of the log up to the end; None if there are none."""

    @property
    def end(self) -> int:
        """The position after the last sealed row."""
        last: Sequence[Segment | Page] = self.segments or self.pages
        return last[-1].end if last else self.first

    @property
    def raw_bytes(self) -> int:
        """The bytes of all Arrow segments that were replaced."""
        return sum(page.raw_bytes for page in self.pages) + sum(each.raw_bytes for each in self.segments)

    def successor(self, **changes: Any) -> Manifest:
        """Return the next version, with some fields changed."""
        return msgspec.structs.replace(self, version=self.version + 1, writer=uuids.uuid4().hex, **changes)


def encode(manifest: Manifest) -> bytes:
    """Return the file content of a manifest."""
    fields = {"weirpool": FORMAT, **msgspec.to_builtins(manifest)}
    return msgspec.json.encode(fields | {"checksum": _short_checksum(msgspec.json.encode(fields))}) + b"\n"


def decode(data: bytes, name: str) -> Manifest:
    """Return the manifest in the file `name`.

    It raises `JournalCorrupt` if that differs from what was written, or has another version of the format.
    """
    try:
        head = msgspec.json.decode(_limited(data), type=_Head)
        if head.weirpool > FORMAT:
            raise JournalCorrupt(
                f"{name}: the manifest has format {head.weirpool}, which a newer version of Weirpool has written; this "
                f"one reads format {FORMAT}; update Weirpool"
            )
        manifest = msgspec.json.decode(data, type=Manifest)
        again = msgspec.json.encode({"weirpool": FORMAT, **msgspec.to_builtins(manifest)})
        if head.checksum != _short_checksum(again):
            raise ValueError("its checksum does not match")
        _validate(manifest)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _damaged(name, "a manifest", error) from None
    return manifest


def encode_page(segments: Iterable[Segment]) -> bytes:
    """Return the file content of a page: a line of JSON for each entry."""
    return msgspec.json.Encoder().encode_lines(list(segments))


def decode_page(data: bytes, page: Page, name: str) -> list[Segment]:
    """Return the entries of a page in the file `name`; `JournalCorrupt` if they are not those of the manifest."""
    try:
        if checksum(_limited(data)) != page.checksum:
            raise ValueError("its checksum does not match")
        segments = msgspec.json.Decoder(Segment).decode_lines(data)
        _in_order(segments)
        if len(segments) != page.segments or (segments[0].first, segments[-1].end) != (page.first, page.end):
            raise ValueError("its entries are not those of the manifest")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _damaged(name, "a page of a manifest", error) from None
    return segments


def folded(manifest: Manifest) -> tuple[Manifest, Page | None, bytes]:
    """Return a manifest with its oldest entries in a page, and that page; the same and None if there are few."""
    if len(manifest.segments) <= MAX_SEGMENTS:
        return manifest, None, b""
    old, kept = manifest.segments[:PAGE_SEGMENTS], manifest.segments[PAGE_SEGMENTS:]
    data = encode_page(old)
    digest = checksum(data)
    times = [each.times for each in old if each.times is not None]
    page = Page(
        first=old[0].first,
        end=old[-1].end,
        name=f"{manifest.version:020d}-{digest[:16]}.json",
        segments=len(old),
        rows=sum(each.rows for each in old),
        size=sum(each.size for each in old),
        raw_bytes=sum(each.raw_bytes for each in old),
        times=(min(first for first, _ in times), max(last for _, last in times)) if times else None,
        checksum=digest,
    )
    return msgspec.structs.replace(manifest, segments=kept, pages=[*manifest.pages, page]), page, data


class _Head(msgspec.Struct):
    weirpool: int
    checksum: str


def _validate(manifest: Manifest) -> None:
    if str(uuids.UUID(manifest.uuid)) != manifest.uuid:
        raise ValueError("its UUID is not in canonical form")
    if not manifest.version:
        raise ValueError("versions start at 1")
    for page in manifest.pages:
        if (
            not _PAGE.fullmatch(page.name)
            or not page.segments
            or (page.times is not None and page.times[0] > page.times[1])
        ):
            raise ValueError(f"its page {page.name[:64]!r} is invalid")
    if manifest.gaps is not None and not _PAGE.fullmatch(manifest.gaps.name):
        raise ValueError(f"its file of gaps, {manifest.gaps.name[:64]!r}, is invalid")
    _in_order(manifest.segments)
    entries: list[Segment | Page] = [*manifest.pages, *manifest.segments]
    _contiguous(entries)
    if entries and not entries[0].first <= manifest.first <= entries[0].end:
        raise ValueError(f"its history starts at {manifest.first}, outside its first entry")


def _in_order(segments: Sequence[Segment]) -> None:
    for each in segments:
        if not _FILE.fullmatch(each.name) or each.name != segment_file(each.first):
            raise ValueError(f"the segment {each.name[:64]!r} is not named after its first position")
        if each.rows > each.end - each.first or each.footer_bytes > each.size or each.raw_bytes > MAX_RAW_BYTES:
            raise ValueError(f"the sizes of {each.name} are impossible")
        if (each.times is None) != (not each.rows):
            raise ValueError(f"the times of {each.name} are impossible")
    _contiguous(segments)


def _contiguous(entries: Sequence[Segment | Page]) -> None:
    if any(each.end <= each.first for each in entries):
        raise ValueError("an entry has no positions")
    if any(after.first != before.end for before, after in pairwise(entries)):
        raise ValueError("its entries do not follow one another")


def _short_checksum(data: bytes) -> str:
    return xxhash.xxh3_64_hexdigest(data)


def _limited(data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise ValueError(f"longer than {MAX_BYTES} bytes")
    return data


def _damaged(name: str, what: str, error: Exception) -> JournalCorrupt:
    return JournalCorrupt(f"{name}: is not {what} ({error}); restore the file from a copy of this log")
