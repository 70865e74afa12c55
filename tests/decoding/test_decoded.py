from __future__ import annotations

import pyarrow as pa

from weirpool.decoding.decoded import MAX_BLOCK_BYTES, MAX_BLOCK_ROWS, MAX_REASON, blocks, reason


def test_blocks_are_consecutive_and_bounded() -> None:
    items = pa.array([b"%d" % index for index in range(3 * MAX_BLOCK_ROWS)], pa.binary())
    parts = list(blocks(items))
    assert pa.concat_arrays(parts).equals(items)
    assert len(parts) == 4 and max(map(len, parts)) <= MAX_BLOCK_ROWS


def test_large_items_come_alone() -> None:
    items = pa.array([bytes(MAX_BLOCK_BYTES)] * 3, pa.binary())
    assert [len(part) for part in blocks(items)] == [1, 1, 1]


def test_no_items_are_one_empty_block() -> None:
    assert [len(part) for part in blocks(pa.array([], pa.binary()))] == [0]


def test_a_reason_is_one_short_line() -> None:
    assert reason(ValueError("a\n  b")) == "a b"
    assert reason(EOFError()) == "EOFError"
    assert len(reason(ValueError("x" * 1000))) == MAX_REASON
