"""Files of cold storage, with valid checksums. The first byte of an input selects the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from tests.builds import Build

from fuzz.outcomes import attempt

LINES: Final = True
UUID: Final = "12345678-1234-4234-8234-123456789abc"
WORDS: Final = (b'"first"', b'"end"', b'"rows"', b'"name"', b"../", b"4611686018427387904", b"-1", b"null", b".parquet")


def _entry(first: int, end: int, **changes: Any) -> dict[str, Any]:
    fields = {
        "first": first, "end": end, "name": f"{first:020d}.parquet", "rows": end - first, "size": 1_000,
        "raw_bytes": 4_000, "times": [first, end], "head": "a" * 64, "checksum": "b" * 32, "chunks": "A" * 56,
        "footer_bytes": 100, "footer": "c" * 32,
    }  # fmt: skip
    return {**fields, **changes}


def _page(first: int, end: int) -> dict[str, Any]:
    return {
        "first": first, "end": end, "name": f"{1:020d}-{'0' * 16}.json", "segments": 2, "rows": end - first,
        "size": 2_000, "raw_bytes": 8_000, "times": [first, end], "checksum": "d" * 32,
    }  # fmt: skip


def seeds() -> Iterator[bytes]:
    """Yield manifests, pages, and what a log's folder says about its cold storage."""
    manifest = {"weirpool": 1, "uuid": UUID, "version": 7, "writer": "w", "first": 0, "segments": [], "pages": []}
    gaps = {"name": f"{1:020d}-{'0' * 16}.gaps", "checksum": "d" * 32}
    entries = [_entry(10, 20), _entry(20, 30, rows=0, times=None)]
    for changes in (
        {},
        {"segments": entries, "first": 10},
        {"segments": entries, "pages": [_page(0, 10)], "gaps": gaps},
    ):
        yield b"\0" + msgspec.json.encode({**manifest, **changes})
    yield b"\1" + b"\n".join(msgspec.json.encode(each) for each in (_entry(0, 5), _entry(5, 10)))
    yield b"\2" + msgspec.json.encode({"log": UUID, "first": 0, "end": 10, "raw_bytes": 100, "stored": True})


def _manifest(build: Build, data: bytes) -> object:
    """Return a manifest, which must be the same after it is written, and what a reader would read of it."""
    module = build.module("weirpool.archive.manifest")
    try:
        found = msgspec.json.decode(data, type=module.Manifest)
    except (ValueError, RecursionError):
        # Without a valid checksum, which is computed from the fields.
        return attempt(build, module.decode, data, "manifest")
    decoded = attempt(build, module.decode, module.encode(found), "manifest")
    if isinstance(decoded, tuple):
        return decoded
    assert decoded == found and module.decode(module.encode(decoded), "again") == decoded
    return repr(decoded), [_parts(build, each) for each in decoded.segments], [page.name for page in decoded.pages]


def _parts(build: Build, segment: Any) -> object:
    """Return the name of a file, which must be in the log's folder, and how it is divided."""
    name = build.module("weirpool.archive.catalog").Catalog(None, "s").name(segment)
    assert name.startswith("source=s/") and ".." not in name and name.count("/") == 1, name
    parts = list(build.module("weirpool.archive.cold").ColdFiles(None).parts(segment, 131_072))
    assert [parts[0][0], parts[-1][1]] == [segment.first, segment.end]
    return len(parts)


def _entries(build: Build, data: bytes) -> object:
    """Return the entries of a page."""
    module = build.module("weirpool.archive.manifest")
    page = msgspec.convert({**_page(0, 10), "checksum": module.checksum(data)}, module.Page)
    return repr(attempt(build, module.decode_page, data, page, "page"))


def _sealed(build: Build, data: bytes) -> object:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    module = build.module("weirpool.journal.sealed")
    try:
        state = msgspec.json.decode(data, type=module.SealedState)
        data = msgspec.json.encode({"weirpool": 1, **msgspec.to_builtins(state), "checksum": module._checksum(state)})
    except (ValueError, RecursionError):
        pass
    with TemporaryDirectory() as folder:
        Path(folder, "_sealed").write_bytes(data)
        return repr(attempt(build, module.load_sealed, Path(folder), UUID)).replace(folder, "")


FILES: Final = (_manifest, _entries, _sealed)


def outcome(build: Build, data: bytes) -> object:
    """Return what is in the file."""
    return FILES[data[0] % len(FILES) if data else 0](build, data[1:])
