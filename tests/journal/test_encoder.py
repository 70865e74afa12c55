from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Callable

import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from tests.journal import arrow
from tests.journal.logs import items
from weirpool import LocalError, Payload
from weirpool.journal import encoder
from weirpool.journal.encoder import FEW_ROWS, JOINED_BYTES, encode, rows_in
from weirpool.journal.format import ITEMS, NO_ITEMS, Note, genesis, preamble
from weirpool.journal.rows import check
from weirpool.wire.columns import ColumnBuilder, batch_of

LOG = "5d9a9f0e-0d4e-4c57-9d0a-6d2c38b7f3a1"
TIME = 1_700_000_000_000_001

maybe = st.none() | st.binary(max_size=20)


def note_of(rows: int, position: int = 0, **fields: object) -> Note:
    return Note.blank(prev=genesis(LOG), position=position, rows=rows, time=TIME, **fields)


def of(data: list[bytes | None], metadata: list[bytes | None]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(data, pa.binary()), pa.array(metadata, pa.binary())], schema=ITEMS)


def message(batch: pa.RecordBatch, stream: str = "numbers", position: int = 0, **fields: object) -> bytes:
    encoded = encode(batch, stream, note_of(batch.num_rows, position, **fields))
    content = b"".join(encoded.chunks)
    assert len(content) == encoded.size
    return content


def compare(
    batch: pa.RecordBatch, stream: str = "numbers", position: int = 0, whole: bool = True, **fields: object
) -> None:
    """Check that a batch is read back in two ways, and if it is a `whole` one, written as pyarrow writes it."""
    rows = arrow.tabulate(batch, stream, position, TIME)
    content = message(batch, stream, position, **fields)
    header, body = arrow.split(content)
    assert len(header) % 8 == len(body) % 8 == 0
    expected = arrow.encode(rows, note_of(batch.num_rows, position, **fields))
    if whole and batch.num_rows:
        assert body == expected.body
    with pa.ipc.open_stream(io.BytesIO(preamble(LOG) + content)) as stream_of_batches:
        found, metadata = stream_of_batches.read_next_batch_with_custom_metadata()
    found.validate(full=True)
    assert found.equals(rows)
    assert [column.null_count for column in found.columns] == [column.null_count for column in rows.columns]
    theirs, ours = pa.ipc.read_message(expected.header + expected.body), pa.ipc.read_message(content)
    assert (ours.type, ours.metadata_version) == (theirs.type, theirs.metadata_version)
    assert list(metadata) == [b"weirpool"]
    note = json.loads(metadata[b"weirpool"])
    assert bytes.fromhex(note["body"]) == xxhash.xxh3_128_digest(body)
    check(pa.py_buffer(content), len(header), batch.num_rows, TIME, bytes.fromhex(note["body"]))


@pytest.mark.parametrize("count", [*range(1, 18), 100, FEW_ROWS - 1, FEW_ROWS, FEW_ROWS + 1, 1_024, 70_000])
@pytest.mark.parametrize("stream", ["numbers", "", "zahlen ü"])
def test_bodies_are_those_that_pyarrow_writes(count: int, stream: str) -> None:
    compare(items(7, count), stream, position=7)


@given(st.lists(st.tuples(st.binary(max_size=20), maybe), max_size=40), st.text(max_size=20), st.binary(max_size=50))
def test_any_items_come_back(pairs: list[tuple[bytes, bytes | None]], stream: str, state: bytes) -> None:
    batch = of([data for data, _ in pairs], [metadata for _, metadata in pairs])
    compare(batch, stream, position=1 << 40, state=state)


@pytest.mark.parametrize(
    "metadata", [[None] * 9, [b""] * 9, [b"m"] * 9, [None] * 8 + [b""], [b"", *[None] * 8]], ids=repr
)
def test_nulls_and_empty_values_differ(metadata: list[bytes | None]) -> None:
    compare(of([b"", b"x" * 9, b""] * 3, metadata))


def test_data_may_be_null() -> None:
    compare(of([None, b"a", None], [None] * 3))


@pytest.mark.parametrize("start", [0, 1, 4, 8])
@pytest.mark.parametrize("count", [0, 1, 3, 8])
def test_a_slice_is_written_as_the_rows_it_shows(start: int, count: int) -> None:
    # pyarrow writes the validity of a slice even if no value is null.
    compare(items(0, 20).slice(start, count), whole=False)


def test_values_need_not_begin_at_the_start_of_their_buffer() -> None:
    ends = pa.py_buffer(struct.pack("<3i", 2, 3, 5))
    column = pa.Array.from_buffers(pa.binary(), 2, [None, ends, pa.py_buffer(b"..abc..")])
    compare(pa.record_batch([column, pa.nulls(2, pa.binary())], schema=ITEMS), whole=False)


def test_items_of_a_stream_are_written_as_they_are() -> None:
    builder = ColumnBuilder()
    for number in range(200):
        builder.append_payload(Payload(b"%d" % number, None if number % 3 else b"m"))
    compare(builder.finish())


@pytest.mark.parametrize(
    "metadata", [lambda number: None, lambda number: b"m", lambda number: b"m" if number % 3 else None]
)
@pytest.mark.parametrize("count", [0, 1, 9, 200, 2_000])
@pytest.mark.parametrize("equal", [True, False])
def test_buffers_are_written_like_their_batch(count: int, equal: bool, metadata: Callable[[int], bytes | None]) -> None:
    builder = ColumnBuilder()
    for number in range(count):
        builder.append_payload(Payload(b"%04d" % number if equal else b"%d" % number, metadata(number)))
    taken = builder.take()
    assert rows_in(taken) == count
    found = encode(taken, "numbers", note_of(count))
    expected = encode(batch_of(taken), "numbers", note_of(count))
    assert b"".join(found.chunks) == b"".join(expected.chunks)
    assert found[1:] == expected[1:]


def test_a_batch_without_rows() -> None:
    compare(NO_ITEMS, "")
    compare(items(0, 0), "numbers", 5, state=b"state", gap='lost {"weirpool":2,"header":"0000000000000000" ü')


def test_the_length_of_the_note_does_not_matter() -> None:
    for size in range(20):
        compare(items(0, 2), state=b"s" * size)
    compare(items(0, 2), state=b"s" * 65_536)


def test_small_batches_are_one_piece_and_large_ones_are_not_copied() -> None:
    small = encode(items(0, 100), "numbers", note_of(100))
    assert len(small.chunks) == 1
    assert small.size < JOINED_BYTES
    batch = items(0, 100, width=2_000)
    values = batch.column(0).buffers()[2]
    large = encode(batch, "numbers", note_of(100))
    assert any(
        isinstance(chunk, memoryview) and pa.py_buffer(chunk).address == values.address for chunk in large.chunks
    )
    compare(batch)


def test_the_digest_is_that_of_the_header() -> None:
    encoded = encode(items(0, 3), "numbers", note_of(3))
    header, _ = arrow.split(b"".join(encoded.chunks))
    assert encoded.digest == hashlib.sha256(header[8:]).hexdigest()


def test_other_columns_are_refused() -> None:
    with pytest.raises(LocalError, match="columns data and metadata"):
        encode(pa.record_batch({"data": [b""]}), "numbers", note_of(1))


def test_a_column_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "MAX_COLUMN_BYTES", 20)
    compare(items(0, 2), "x" * 10)
    with pytest.raises(LocalError, match="3 rows are too many for a stream whose name has 7 bytes"):
        encode(items(0, 3), "numbers", note_of(3))
