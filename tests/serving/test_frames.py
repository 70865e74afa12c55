"""Frames: put together again wherever they are cut."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.errors import JournalError
from weirpool.serving.frames import HEAD_BYTES, Assembler, Form, Head, decode_rows, encode_rows, pieces

BATCH = pa.record_batch([pa.array([1, 2, 3])], ["position"])


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 100))
def test_frames_are_put_together_wherever_they_are_cut(bodies: list[bytes], step: int) -> None:
    heads = [Head(at, at, at + 1, len(body), Form.STORED) for at, body in enumerate(bodies)]
    sent = b"".join(head.encode() + body for head, body in zip(heads, bodies, strict=True))
    assembler = Assembler()
    found = [
        (head, body.to_pybytes())
        for at in range(0, len(sent), step)
        for head, body in assembler.feed(memoryview(sent[at : at + step]))
    ]
    assert found == list(zip(heads, bodies, strict=True))
    assert assembler.missing == HEAD_BYTES


@pytest.mark.parametrize(
    "head", [Head(5, 4, 9, 0, 0), Head(0, 4, 3, 0, 0), Head(0, 0, 1, 1 << 40, 0), Head(0, 0, 1, 0, 9)]
)
def test_what_is_not_a_frame_is_refused(head: Head) -> None:
    with pytest.raises(JournalError, match="not a frame"):
        list(Assembler().feed(memoryview(head.encode())))


def test_rows_that_are_encoded_again_are_checked() -> None:
    body = encode_rows(BATCH)
    assert decode_rows(body).equals(BATCH)
    for at in (0, 100, body.size - 1):
        bad = bytearray(body.to_pybytes())
        bad[at] ^= 1
        with pytest.raises(ValueError, match="checksum"):
            decode_rows(pa.py_buffer(bytes(bad)))
    with pytest.raises(ValueError, match="checksum"):
        decode_rows(pa.py_buffer(b""))


def test_bytes_become_items_without_a_copy() -> None:
    content = pa.py_buffer(bytes(200_000))
    items = pieces(content).column("data")
    assert [len(item.as_py()) for item in items] == [65_536, 65_536, 65_536, 200_000 - 3 * 65_536]
    assert items.buffers()[2].address == content.address
