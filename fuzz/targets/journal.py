"""Files of journals, with valid checksums where they have some. The first byte of an input selects the file."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Final

import msgspec
import pyarrow
from tests.builds import Build
from tests.hostile.test_journals import seal
from tests.journal.logs import items

from fuzz.outcomes import attempt

LINES: Final = True
ROWS: Final = 3
UUID: Final = "12345678-1234-4234-8234-123456789abc"
PREFIX: Final = struct.Struct("<II")


def seeds() -> Iterator[bytes]:
    """Yield a batch of rows, gaps, a mark and a position."""
    from tests.journal.arrow import encode, tabulate

    from weirpool.journal.format import Note

    batch = tabulate(items(0, ROWS), "numbers", 0, 0)
    made = encode(batch, Note.blank(prev="0" * 64, position=0, rows=ROWS, time=0, state=None))
    header = made.header[PREFIX.size :]
    yield b"\0" + len(header).to_bytes(2, "big") + header + made.body
    yield b'\1[0,0,"lost"]\n[5,9,"x",3,[1,2],"q",7]\n'
    yield b"\2%020d %020d %020d %020d %s " % (1, 0, 100, 3, b"a" * 64)
    from weirpool.journal import feedlog, identity, secret

    request = identity.Request("route", b"data", b"metadata", "rsocket+tcp://localhost:1").fingerprint(UUID)
    yield b"\3" + identity.encode(identity.Identity(UUID, datetime(2026, 1, 1, tzinfo=UTC), request))
    yield b"\3" + b'{"weirpool":2,"uuid":"%s","created":"2026-01-01T00:00:00Z"}' % UUID.encode()
    yield b"\4" + msgspec.json.encode(
        secret.Secret(owner=UUID, session=1, token=b"t", private=b"p", state=b"s", gap="g")
    )
    yield b"\5" + b'{"position":7,"query":"q","log":"%s"}' % UUID.encode()
    yield b"\6" + b'{"pid":1,"host":"h","since":"2026-01-01T00:00:00Z"}'
    yield b"\7" + msgspec.msgpack.encode(feedlog.State(b"checkpoint", True, False, 3, 9, True))


def _gaps(build: Build, data: bytes) -> object:
    sealed = hashlib.sha256(data).hexdigest().encode() + b"\n" + data
    return repr(attempt(build, build.module("weirpool.journal.gaps").decode, sealed, "gaps"))


def _mark(build: Build, data: bytes) -> object:
    mark = build.module("weirpool.journal.mark")
    return repr(mark.newest(data + mark._checksum(data) + b"\n"))


def _batch(build: Build, data: bytes) -> object:
    """Return a batch whose header and body are in `data`, after the length of the header."""
    form, rows = build.module("weirpool.journal.format"), build.module("weirpool.journal.rows")
    end = 2 + int.from_bytes(data[:2], "big")
    body = data[end:]
    header = seal(bytearray(data[2:end]), body, "0" * 64)
    content = PREFIX.pack(0xFFFFFFFF, len(header)) + header + body
    try:
        entry = form.entry_at(memoryview(content), 0, len(content), 0)
        if entry is None:
            return None
        message = pyarrow.py_buffer(content[: entry.end_offset])
        batch = rows.check(message, entry.header_bytes, entry.note.rows, entry.note.time, entry.checksum)
    except form.Malformed as error:
        return str(error)
    batch.validate(full=True)
    return repr(batch.to_pydict())


def _identity(build: Build, data: bytes) -> object:
    """Return an identity, which must be the same after it is written."""
    identity = build.module("weirpool.journal.identity")
    found = attempt(build, identity.decode, data, "identity")
    if not isinstance(found, tuple):
        assert identity.decode(identity.encode(found), "again") == found
    return repr(found)


def _in_folder(build: Build, name: str, data: bytes, read: Callable[[Path], object]) -> object:
    with TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(data)
        return repr(attempt(build, read, Path(folder))).replace(folder, "")


def _secret(build: Build, data: bytes) -> object:
    return _in_folder(build, "_secret", data, build.module("weirpool.journal.secret").load)


def _cursor(build: Build, data: bytes) -> object:
    read = build.module("weirpool.journal.retention")._read
    return _in_folder(build, "cursor", data, lambda folder: read(folder / "cursor"))


def _owner(build: Build, data: bytes) -> object:
    def read(folder: Path) -> object:
        return build.module("weirpool.journal.lock").owner_of(folder / "lock")

    return _in_folder(build, "lock", data, read)


def _state(build: Build, data: bytes) -> object:
    feedlog = build.module("weirpool.journal.feedlog")
    # What it needs of a log.
    log = SimpleNamespace(_folder="folder", _place=SimpleNamespace(source="source"))
    state = attempt(build, feedlog.FeedLog._decoded, log, data)
    fits = (
        not isinstance(state, tuple) and state.checkpoint is not None and attempt(build, feedlog.fits, state.checkpoint)
    )
    return repr(state), fits


FILES: Final = (_batch, _gaps, _mark, _identity, _secret, _cursor, _owner, _state)


def outcome(build: Build, data: bytes) -> object:
    """Return what is in the file."""
    return FILES[data[0] % len(FILES) if data else 0](build, data[1:])
