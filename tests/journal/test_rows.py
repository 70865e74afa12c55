from __future__ import annotations

import pyarrow as pa
import pytest

from tests.journal.arrow import encode, tabulate
from tests.journal.logs import items
from weirpool.journal.format import ITEMS, SCHEMA, Malformed, Note, genesis
from weirpool.journal.rows import check, decode

TIME = 1_000_000


def message_of(rows: pa.RecordBatch, time: int = TIME) -> tuple[pa.Buffer, int, bytes]:
    """Return a batch of these rows, how long its header is, and the checksum of its body."""
    note = Note.blank(prev=genesis("log"), position=0, rows=rows.num_rows, time=time, state=None)
    header, body, _ = encode(rows, note)
    import xxhash

    return pa.py_buffer(header + body), len(header), xxhash.xxh3_128_digest(body)


@pytest.mark.parametrize("count", [0, 1, 1_024, 1_025, 5_000])
@pytest.mark.parametrize("stream", ["numbers", "zahlen ü"])
def test_sound_rows_pass(count: int, stream: str) -> None:
    rows = tabulate(items(0, count), stream, 0, TIME)
    message, header_bytes, checksum = message_of(rows)
    assert check(message, header_bytes, count, TIME, checksum).equals(rows)
    assert decode(message).equals(rows)


def test_nothing_is_copied() -> None:
    message, header_bytes, checksum = message_of(tabulate(items(0, 5_000), "numbers", 0, TIME))
    allocated = pa.total_allocated_bytes()
    batch = check(message, header_bytes, 5_000, TIME, checksum)
    assert pa.total_allocated_bytes() - allocated < 10_000
    assert message.address <= batch.column(3).buffers()[2].address < message.address + message.size


@pytest.mark.parametrize("count", [10, 5_000])
def test_what_the_note_does_not_tell_is_refused(count: int) -> None:
    # THREATS 98
    message, header_bytes, checksum = message_of(tabulate(items(0, count), "numbers", 0, TIME))
    with pytest.raises(Malformed, match="the checksum of its body does not match"):
        check(message, header_bytes, count, TIME, bytes(16))
    with pytest.raises(Malformed, match=f"it has {count} rows, not {count + 1}"):
        check(message, header_bytes, count + 1, TIME, checksum)
    with pytest.raises(Malformed, match="its rows have a different time"):
        check(message, header_bytes, count, TIME + 1, checksum)


@pytest.mark.parametrize("count", [10, 5_000])
@pytest.mark.parametrize("column", ["stream", "data", "metadata"])
def test_offsets_that_lead_elsewhere_are_refused(count: int, column: str) -> None:
    # THREATS 98
    rows = tabulate(items(0, count), "numbers", 0, TIME)
    at = SCHEMA.get_field_index(column)
    validity, offsets, data = rows.column(at).buffers()
    wrong = bytearray(offsets.to_pybytes())
    wrong[8:12] = (1 << 30).to_bytes(4, "little")
    arrays = list(rows.columns)
    arrays[at] = pa.Array.from_buffers(SCHEMA.field(at).type, count, [validity, pa.py_buffer(bytes(wrong)), data])
    message, header_bytes, checksum = message_of(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    with pytest.raises(Malformed, match="its columns are invalid"):
        check(message, header_bytes, count, TIME, checksum)


@pytest.mark.parametrize("count", [10, 5_000])
def test_text_that_is_none_is_refused(count: int) -> None:
    # THREATS 98
    rows = tabulate(items(0, count), "numbers", 0, TIME)
    arrays = list(rows.columns)
    arrays[2] = pa.array([b"\xff\xfe"] * count, pa.binary()).view(pa.string())
    message, header_bytes, checksum = message_of(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
    with pytest.raises(Malformed, match="its columns are invalid"):
        check(message, header_bytes, count, TIME, checksum)


def test_other_columns_are_refused() -> None:
    assert ITEMS.names == ["data", "metadata"]
    with pytest.raises(Malformed, match="Arrow cannot read it"):
        decode(pa.py_buffer(b"\xff\xff\xff\xff\x08\0\0\0" + bytes(8)))
