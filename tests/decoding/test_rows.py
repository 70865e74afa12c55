from __future__ import annotations

import pyarrow as pa

from weirpool.decoding.columns import Columns, Elements
from weirpool.decoding.decoded import MAX_BLOCK_ROWS
from weirpool.decoding.rows import RowDecoder

from .decode import decode, schema


def number(item: bytes) -> list[int]:
    return [int(item)]


DECODER = RowDecoder(number, [None], Columns(schema(a=pa.int8()), Elements()))


def test_malformed_items_are_found_wherever_they_are() -> None:
    for bad in (0, 1, 5, 98, 99):
        items = [b"x" if index == bad else b"%d" % index for index in range(100)]
        rows, malformed = decode(DECODER, *items)
        assert [row["a"] for row in rows] == [None if index == bad else index for index in range(100)]
        assert malformed.keys() == {bad}


def test_items_that_do_not_fit_the_schema_are_found_too() -> None:
    rows, malformed = decode(DECODER, b"1", b"128", b"x", b"-129", b"2")
    assert [row["a"] for row in rows] == [1, None, None, None, 2]
    assert malformed[1] == malformed[3] == "a value does not fit its type"
    assert "invalid literal" in malformed[2]


def test_all_items_may_be_malformed() -> None:
    assert len(decode(DECODER, *[b"x"] * 100)[1]) == 100
    assert len(decode(DECODER, *[b"1000"] * 100)[1]) == 100


def test_an_item_that_is_null_is_malformed() -> None:
    assert decode(DECODER, b"1", None)[1].keys() == {1}


def test_no_items_have_no_rows() -> None:
    assert decode(DECODER) == ([], {})


def test_blocks_keep_their_order() -> None:
    items = [b"%d" % (index % 100) for index in range(2 * MAX_BLOCK_ROWS + 1)]
    rows, malformed = decode(DECODER, *items)
    assert [row["a"] for row in rows] == [int(item) for item in items] and not malformed


def test_items_that_are_nested_too_deep_are_not_loaded() -> None:
    loaded = []

    def load(item: bytes) -> list[int]:
        loaded.append(item)
        return number(item)

    decoder = RowDecoder(load, [None], Columns(schema(a=pa.int8()), Elements()), lambda item: item.find(b"["))
    rows, malformed = decode(decoder, b"1", b"5[", b"2")
    assert [row["a"] for row in rows] == [1, None, 2]
    assert malformed == {1: "nested too deep (byte 1)"}
    assert b"5[" not in loaded
