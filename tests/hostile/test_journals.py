"""Hostile journals: all checksums and the chain are valid, but their content is not."""

from __future__ import annotations

import hashlib
import json
import random
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
import xxhash

from tests.journal.arrow import encode, tabulate
from tests.journal.logs import SOURCE, entries, items, segment, uuid, write
from weirpool import DataLost, JournalCorrupt, JournalError
from weirpool.journal import SCHEMA, Journal, JournalReader, JournalWriter
from weirpool.journal.format import Note, genesis, preamble
from weirpool.journal.gaps import encode as encode_gaps
from weirpool.journal.layout import COMMITTED, DURABLE, GAPS, IDENTITY
from weirpool.journal.mark import Mark

SEEDS = range(400)
NUMBERS = (0, 1, 7, 255, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 62, (1 << 63) - 1, (1 << 64) - 1)


def seal(header: bytearray, body: bytes, prev: str) -> bytes:
    """Return a randomly changed header with valid checksums, if it still has fields for them."""
    for key, value in ((b'"body":"', xxhash.xxh3_128_hexdigest(body)), (b'"prev":"', prev)):
        at = header.find(key)
        if at >= 0:
            header[at + len(key) : at + len(key) + len(value)] = value.encode()
    at = header.find(b'"header":"')
    if at >= 0:
        header[at + 10 : at + 26] = b"0" * 16
        header[at + 10 : at + 26] = xxhash.xxh3_64_hexdigest(bytes(header)).encode()
    return bytes(header)


def mutated(chance: random.Random, data: bytearray) -> None:
    """Change some of the bytes, as a fuzzer does."""
    for _ in range(chance.randint(1, 4)):
        width = chance.choice((1, 2, 4, 8))
        if len(data) < width:
            return
        at = chance.randrange(len(data) - width + 1)
        number = chance.choice(NUMBERS) if chance.random() < 0.7 else chance.getrandbits(8 * width)
        data[at : at + width] = struct.pack("<Q", number)[:width]


def rebuild(folder: Path, change: Callable[[int, bytearray, bytearray], None]) -> None:
    """Change headers (except the note's text) and bodies of a log, and make all checksums, the chain and mark valid."""
    prev, end = genesis(uuid(folder)), 0
    chunks = [preamble(uuid(folder))]
    old = segment(folder).read_bytes()
    for number, (_, entry) in enumerate(entries(folder)):
        start = entry.offset + entry.header_bytes
        header, body = bytearray(old[entry.offset + 8 : start]), bytearray(old[start : entry.end_offset])
        change(number, header, body)
        sealed = seal(header, bytes(body), prev)
        prev = hashlib.sha256(sealed).hexdigest()
        chunks += [old[entry.offset : entry.offset + 8], sealed, bytes(body)]
        end = entry.end
    content = b"".join(chunks)
    segment(folder).write_bytes(content)
    (folder / DURABLE).write_bytes(Mark(0, len(content), end, prev).encode(1))


def try_everything(path: Path) -> None:
    """Use a log in every way. The only valid results are `JournalCorrupt` and rows."""
    reports = Journal(path).verify()
    assert isinstance(reports[SOURCE].sound, bool)
    try:
        reader = JournalReader(path, SOURCE)
        reader.gaps()
        reader.damage()
        reader.split(reader.first, reader.end, max_rows=7)
        reader.bytes_between(0, reader.end)
        for batch in reader.read(reader.first, reader.end):
            batch.validate(full=True)
            batch.to_pydict()
    except JournalCorrupt:
        pass
    except (OverflowError, UnicodeDecodeError) as error:
        raise AssertionError("rows that cannot be looked at") from error
    try:
        JournalWriter.open(path, SOURCE, fsync=False).close()
    except JournalCorrupt:
        pass


@pytest.mark.parametrize("part", ["header", "body", "both"])
def test_batches_with_sound_checksums(tmp_path_factory: pytest.TempPathFactory, part: str) -> None:
    # THREATS 98
    refused = 0
    for seed in SEEDS:
        chance = random.Random(f"{part} {seed}")
        path = tmp_path_factory.mktemp("hostile")
        folder = write(path, 5, 40, 3)
        victim = chance.randrange(3)

        def change(
            number: int, header: bytearray, body: bytearray, victim: int = victim, chance: random.Random = chance
        ) -> None:
            if number == victim and part != "body":
                # The note stays readable; otherwise the batch is only damaged.
                note = header.find(b'{"weirpool"')
                end = header.index(b"\0", note)
                before, behind = bytearray(header[:note]), bytearray(header[end:])
                mutated(chance, chance.choice((before, before, behind)))
                header[:note], header[end:] = before, behind
            if number == victim and part != "header":
                mutated(chance, body)

        rebuild(folder, change)
        refused += not Journal(path).verify()[SOURCE].sound
        try_everything(path)
    assert refused > len(SEEDS) // 10


NOTES = {
    "rows": [-1, 0, 1, 4, 6, 1 << 31, 1 << 62, 1 << 63, 10**30, 1.5, "5", None],
    "position": [-1, 1, 5, 1 << 62, 1 << 63, 10**30, "0", None],
    "time": [-1, 1 << 62, 1 << 63, 10**30, -(10**18), None],
    "state": ["not base64!", "AAAA", 7],
    "gap": ["", "x" * 10_000, 7],
    "previous": [-1, 1 << 63, "x"],
    "body": ["", "zz", "00" * 17],
    "weirpool": [1, 3, "2"],
}


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in NOTES.items() for value in values])
def test_notes_that_lie(tmp_path: Path, key: str, value: object) -> None:
    # THREATS 98
    folder = write(tmp_path, 5)
    rows = tabulate(items(0, 5), "numbers", 0, 0)
    plain = Note.blank(prev=genesis(uuid(folder)), position=0, rows=5, time=0, state=None)
    fields = {
        field: getattr(plain, field) for field in ("weirpool", "header", "body", "prev", "position", "rows", "time")
    }
    body = encode(rows, plain).body
    fields |= {"body": xxhash.xxh3_128_hexdigest(body)} | {key: value}
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(rows, custom_metadata={"weirpool": json.dumps(fields, separators=(",", ":"))})
    message = sink.getvalue().to_pybytes()[len(SCHEMA.serialize()) : -8]
    header_bytes = 8 + struct.unpack_from("<I", message, 4)[0]
    header = bytearray(message[8:header_bytes])
    at = header.index(b'"header":"') + 10
    header[at : at + 16] = xxhash.xxh3_64_hexdigest(bytes(header)).encode()
    content = preamble(uuid(folder)) + message[:8] + bytes(header) + message[header_bytes:]
    segment(folder).write_bytes(content)
    mark = Mark(0, len(content), 5, hashlib.sha256(header).hexdigest())
    (folder / DURABLE).write_bytes(mark.encode(1))
    try_everything(tmp_path)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_batch_that_is_compressed(tmp_path: Path, codec: str) -> None:
    # THREATS 98: 64 MiB of zeros take a few KiB; they must not be decompressed.
    folder = write(tmp_path, 1)
    note = Note.blank(prev=genesis(uuid(folder)), position=0, rows=1, time=0, state=None)
    bomb = pa.record_batch(
        [pa.array([bytes(1 << 26)], pa.binary()), pa.nulls(1, pa.binary())], names=["data", "metadata"]
    )
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_stream(sink, SCHEMA, options=options) as stream:
        text = note_text(note)
        stream.write_batch(tabulate(bomb, "numbers", 0, 0), custom_metadata={"weirpool": text})
    message = sink.getvalue().to_pybytes()[len(SCHEMA.serialize()) : -8]
    header_bytes = 8 + struct.unpack_from("<I", message, 4)[0]
    body = message[header_bytes:]
    header = seal(bytearray(message[8:header_bytes]), body, genesis(uuid(folder)))
    content = preamble(uuid(folder)) + message[:8] + header + body
    segment(folder).write_bytes(content)
    (folder / DURABLE).write_bytes(Mark(0, len(content), 1, hashlib.sha256(header).hexdigest()).encode(1))
    before = pa.total_allocated_bytes()
    with pytest.raises(JournalCorrupt, match="positions 0 to 0 are damaged"):
        list(JournalReader(tmp_path, SOURCE).read(0, 1))
    assert pa.total_allocated_bytes() - before < 1 << 20


def note_text(note: Note) -> bytes:
    import msgspec

    return msgspec.json.encode(note)


SMALL_FILES = {
    IDENTITY: [b"", b"{}", b"[" * 100_000, b"null", b'{"weirpool":2}', b'{"weirpool":3}', b'{"weirpool":1e999}',
               b'{"weirpool":2,"uuid":"x","created":"2026-01-01T00:00:00Z"}', b"\xff" * 100, bytes(100)],
    DURABLE: [b"", b"x" * 166, b"9" * 166, bytes(5_000), b"\xff" * 10_000],
    GAPS: [b"", b"x" * 64 + b"\n", b"\xff" * 200, bytes(100), hashlib.sha256(b"[").hexdigest().encode() + b"\n["],
    f"{COMMITTED}/reader": [b"", b"x", b"9" * 10_000, b"-1", b"\xff\xfe", b"1e9", "²".encode(), b"[" * 100_000, b"{}"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "number"), [(name, at) for name, all in SMALL_FILES.items() for at in range(len(all))]
)
def test_small_files(tmp_path: Path, name: str, number: int) -> None:
    # THREATS 98
    folder = write(tmp_path, 5, 3)
    (folder / COMMITTED).mkdir(exist_ok=True)
    (folder / name).write_bytes(SMALL_FILES[name][number])
    try_everything(tmp_path)
    for use in (
        lambda: Journal(tmp_path).trim(SOURCE, 1, retain_bytes=0),
        lambda: JournalReader(tmp_path, SOURCE).gaps(),
    ):
        try:
            use()
        except JournalCorrupt:
            pass
    found = Journal(tmp_path).verify()[SOURCE]
    if name in (IDENTITY, DURABLE, GAPS):
        assert not found.sound


def test_small_files_with_any_bytes(tmp_path: Path) -> None:
    # THREATS 98
    for seed in range(200):
        chance = random.Random(seed)
        path = tmp_path / str(seed)
        folder = write(path, 5, 3)
        Journal(path).trim(SOURCE, 2, reader="reader")
        (folder / GAPS).write_bytes(encode_gaps([]))
        name = chance.choice(list(SMALL_FILES))
        data = bytearray((folder / name).read_bytes())
        mutated(chance, data)
        (folder / name).write_bytes(data)
        try_everything(path)


def test_marks_that_lie(tmp_path: Path) -> None:
    # THREATS 98
    for number, lie in enumerate(
        Mark(first, offset, end, head)
        for first in (0, 3, 1 << 62)
        for offset in (0, 1, 500, 1 << 62)
        for end in (first, 8, 1 << 62)
        for head in ("00" * 32, None)
        if first <= end
    ):
        path = tmp_path / str(number)
        folder = write(path, 5, 3)
        head = lie.head or entries(folder)[-1][1].digest
        (folder / DURABLE).write_bytes(Mark(lie.segment, lie.offset, lie.end, head).encode(1))
        try:
            try_everything(path)
        except DataLost:
            raise AssertionError(f"{lie} loses data silently") from None
        except JournalError as error:
            assert isinstance(error, JournalCorrupt), error


def test_segment_of_batch_starts_is_read_in_linear_time(tmp_path: Path) -> None:
    # THREATS 98: every four bytes look like the start of a batch of 1 MiB.
    folder = write(tmp_path, 5)
    start = b"\xff\xff\xff\xff" + struct.pack("<I", 1 << 20)
    content = preamble(uuid(folder)) + start * (1 << 19)
    segment(folder).write_bytes(content)
    (folder / DURABLE).write_bytes(Mark(0, len(content), 5, "ab" * 32).encode(1))
    script = (
        "import resource, sys; from weirpool.journal import Journal; "
        "base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        f"assert not Journal({str(tmp_path)!r}).verify()['s'].sound; "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base)"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert int(result.stdout) * 1024 < 4 * len(content) + (1 << 25)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0
