from __future__ import annotations

import hashlib
import io
import json

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from tests.journal.arrow import split, tabulate
from tests.journal.logs import items
from weirpool.journal import rows
from weirpool.journal.encoder import Encoded, encode
from weirpool.journal.format import (
    SCHEMA,
    Entry,
    Malformed,
    Note,
    body_is_sound,
    genesis,
    preamble,
    preamble_bytes,
    scan,
)

LOG = "5d9a9f0e-0d4e-4c57-9d0a-6d2c38b7f3a1"
PREAMBLE = preamble(LOG)
GENESIS = genesis(LOG)


def segment_of(*batches: Encoded) -> pa.Buffer:
    return pa.py_buffer(PREAMBLE + b"".join(chunk for batch in batches for chunk in batch.chunks))


def batch_of(
    position: int, count: int, *, prev: str = GENESIS, state: bytes | None = None, gap: str | None = None
) -> Encoded:
    note = Note.blank(prev=prev, position=position, rows=count, time=1_000_000, state=state, gap=gap)
    return encode(items(position, count), "numbers", note)


def decode(content: pa.Buffer, entry: Entry) -> pa.RecordBatch:
    return rows.decode(content.slice(entry.offset, entry.header_bytes + entry.body_bytes))


def chain(*counts: int) -> pa.Buffer:
    """Return a segment with batches of so many rows, each written after the one before it."""
    batches: list[Encoded] = []
    for at, count in enumerate(counts):
        batches.append(batch_of(sum(counts[:at]), count, prev=batches[-1].digest if batches else GENESIS))
    return segment_of(*batches)


def entries(content: pa.Buffer, limit: int | None = None) -> list[Entry]:
    return list(scan(content, preamble_bytes(content, LOG), content.size if limit is None else limit, 0, None))


def test_columns_are_what_spark_takes() -> None:
    assert [(field.name, str(field.type), field.nullable) for field in SCHEMA] == [
        ("position", "int64", True),
        ("time", "timestamp[us, tz=UTC]", True),
        ("stream", "string", True),
        ("data", "binary", True),
        ("metadata", "binary", True),
    ]


def test_rows_come_back_without_a_copy() -> None:
    content = chain(3, 2)
    first, second = entries(content)
    assert (first.position, first.end, second.position, second.end) == (0, 3, 3, 5)
    batch = decode(content, second)
    assert batch.schema.equals(SCHEMA)
    assert batch["position"].to_pylist() == [3, 4]
    assert batch["data"].to_pylist() == [b"3", b"4"]
    assert batch["metadata"].to_pylist() == [None, b"m4"]
    assert batch["stream"].to_pylist() == ["numbers"] * 2
    assert [time.timestamp() for time in batch["time"].to_pylist()] == [1.0, 1.0]
    data = batch.column(3).buffers()[2]
    assert content.address <= data.address < content.address + content.size


def test_any_arrow_reader_can_read_it() -> None:
    content = segment_of(batch_of(0, 3, state=b"\xff\0"))
    with pa.ipc.open_stream(io.BytesIO(content.to_pybytes())) as stream:
        batch, metadata = stream.read_next_batch_with_custom_metadata()
    note = json.loads(metadata[b"weirpool"])
    assert batch.num_rows == note["rows"] == 3
    assert (note["weirpool"], note["position"], note["time"], note["state"]) == (2, 0, 1_000_000, "/wA=")


def test_checksums_are_those_the_document_tells() -> None:
    batch = batch_of(0, 3)
    header, body = split(b"".join(batch.chunks))
    start = header.index(b'{"weirpool":2,')
    note = json.loads(header[start : header.index(b"\0", start)])
    blank = header[8:].replace(note["header"].encode(), b"0" * 16, 1)
    assert note["header"] == xxhash.xxh3_64_hexdigest(blank)
    assert note["body"] == xxhash.xxh3_128_hexdigest(body)
    assert note["prev"] == hashlib.sha256(LOG.encode()).hexdigest()
    assert batch.digest == hashlib.sha256(header[8:]).hexdigest()


def test_state_and_gap_come_back() -> None:
    # The reason looks like a note; as JSON inside JSON it does not.
    reason = 'lost {"weirpool":2,"header":"0000000000000000" ü'
    content = segment_of(batch_of(0, 0, state=b"\xff\0token", gap=reason))
    (entry,) = entries(content)
    assert (entry.note.state, entry.note.gap, entry.end) == (b"\xff\0token", reason, 0)
    assert body_is_sound(content, entry)


def test_a_segment_begins_with_the_schema() -> None:
    assert preamble_bytes(pa.py_buffer(PREAMBLE), LOG) == len(PREAMBLE)
    other = pa.schema([("position", pa.int32())]).serialize()
    for start in (
        b"",
        b"\xff\xff",
        PREAMBLE[:-1],
        b"\0" * 64,
        other.to_pybytes(),
        b"\xff\xff\xff\xff\x08\0\0\0" + b"x" * 8,
    ):
        with pytest.raises(Malformed):
            preamble_bytes(pa.py_buffer(start), LOG)


def test_what_is_cut_anywhere_ends_the_scan() -> None:
    whole = chain(2)
    content = chain(2, 2)
    for limit in range(whole.size, content.size):
        assert [entry.end for entry in entries(content, limit)] == [2]
        assert [entry.end for entry in entries(content.slice(0, limit))] == [2]


def test_every_flipped_bit_is_found() -> None:
    # THREATS 80
    start = len(PREAMBLE)
    clean = chain(2, 1).to_pybytes()
    (first, second) = entries(pa.py_buffer(clean))
    header_end = first.offset + first.header_bytes
    for offset in range(start, first.end_offset):
        for bit in (0, 7):
            damaged = bytearray(clean)
            damaged[offset] ^= 1 << bit
            content = pa.py_buffer(bytes(damaged))
            if offset >= header_end:
                found = entries(content)
                assert len(found) == 2
                assert not body_is_sound(content, found[0])
                assert body_is_sound(content, found[1])
                continue
            # A flipped length may say that the batch is longer than what is there.
            try:
                assert entries(content) == []
            except Malformed as bad:
                assert (bad.offset, bad.position) == (start, 0)
    assert second.end == 3


@given(st.binary(max_size=300))
def test_junk_is_no_batch(junk: bytes) -> None:
    content = pa.py_buffer(PREAMBLE + junk)
    try:
        assert entries(content) == []
    except Malformed as bad:
        assert bad.offset == len(PREAMBLE)


def test_a_batch_of_another_position_is_refused() -> None:
    with pytest.raises(Malformed, match="position 7"):
        entries(segment_of(batch_of(0, 2), batch_of(7, 2)))


def test_a_batch_that_was_written_after_another_one_is_refused() -> None:
    # THREATS 97
    with pytest.raises(Malformed, match="written after a different batch") as caught:
        entries(segment_of(batch_of(0, 2), batch_of(2, 2)))
    assert caught.value.position == 2
    content = chain(2, 2)
    with pytest.raises(Malformed, match="a different batch"):
        list(scan(content, len(PREAMBLE), content.size, 0, "ab" * 32))
    assert [entry.end for entry in scan(content, len(PREAMBLE), content.size, 0, GENESIS)] == [2, 4]


def test_a_segment_of_another_log_is_refused() -> None:
    # THREATS 97
    other = "0c0ffee0-0d4e-4c57-9d0a-6d2c38b7f3a1"
    with pytest.raises(Malformed, match=f"belongs to another log, '{other}'"):
        preamble_bytes(pa.py_buffer(preamble(other)), LOG)
    with pytest.raises(Malformed, match="has format 1"):
        preamble_bytes(pa.py_buffer(SCHEMA.serialize().to_pybytes()), LOG)
    for note in (b"junk", b"[" * 100_000, b'{"weirpool":2}', b'{"weirpool":2,"log":7}'):
        schema = SCHEMA.with_metadata({b"weirpool": note}).serialize().to_pybytes()
        with pytest.raises(Malformed):
            preamble_bytes(pa.py_buffer(schema), LOG)


def test_the_schema_may_be_written_in_other_bytes() -> None:
    schema = SCHEMA.with_metadata({b"z": b"", b"weirpool": b'{"log": "%s", "weirpool": 2}' % LOG.encode()})
    encoded = schema.serialize().to_pybytes()
    assert encoded != PREAMBLE
    assert preamble_bytes(pa.py_buffer(encoded), LOG) == len(encoded)


def test_another_format_is_refused() -> None:
    rows = tabulate(items(0, 1), "numbers", 0, 0)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(rows, custom_metadata={"weirpool": '{"weirpool":3}'})
    with pytest.raises(Malformed, match="the log has format 2"):
        entries(sink.getvalue())
