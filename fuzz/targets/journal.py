"""Files of journals, with valid checksums. The first byte of an input selects the file."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Final

import pyarrow
from tests.builds import Build
from tests.hostile.test_journals import seal
from tests.journal.logs import items

from fuzz.outcomes import attempt

LINES: Final = True
ROWS: Final = 3
PREFIX: Final = struct.Struct("<II")


def seeds() -> Iterator[bytes]:
    """Yield a batch of rows, gaps, a mark and a position."""
    from penstock.journal import rows
    from penstock.journal.format import Note, encode

    batch = rows.tabulate(items(0, ROWS), "numbers", 0, 0)
    made = encode(batch, Note.blank(prev="0" * 64, position=0, rows=ROWS, time=0, state=None))
    header = made.header[PREFIX.size :]
    yield b"\0" + len(header).to_bytes(2, "big") + header + made.body.to_pybytes()
    yield b'\1[0,0,"lost"]\n[5,9,"x",3,[1,2],"q",7]\n'
    yield b"\2%020d %020d %020d %020d %s " % (1, 0, 100, 3, b"a" * 64)


def _gaps(build: Build, data: bytes) -> object:
    sealed = hashlib.sha256(data).hexdigest().encode() + b"\n" + data
    return repr(attempt(build, build.module("penstock.journal.gaps").decode, sealed, "gaps"))


def _mark(build: Build, data: bytes) -> object:
    mark = build.module("penstock.journal.mark")
    return repr(mark.newest(data + mark._checksum(data) + b"\n"))


def _batch(build: Build, data: bytes) -> object:
    """Return a batch whose header and body are in `data`, after the length of the header."""
    form, rows = build.module("penstock.journal.format"), build.module("penstock.journal.rows")
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


FILES: Final = (_batch, _gaps, _mark)


def outcome(build: Build, data: bytes) -> object:
    """Return what is in the file."""
    return FILES[data[0] % len(FILES) if data else 0](build, data[1:])
