from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from weirpool.decoding.arrow import MAX_ITEM_BYTES, MAX_ITEM_MESSAGES, MAX_ITEM_ROWS, ArrowDecoder

from .decode import decode, reasons, schema, values
from .messages import stream


def only(kind: pa.DataType, *columns: pa.Array) -> list[Any]:
    return values(ArrowDecoder(schema(a=kind)), *[stream(pa.table({"a": column})) for column in columns])


def test_an_item_has_any_number_of_rows() -> None:
    items = [stream(pa.table({"a": pa.array(range(count))})) for count in (2, 0, 3)]
    decoder = ArrowDecoder(schema(a=pa.int64()))
    (decoded,) = decoder.decode(pa.array(items, pa.binary()))
    assert decoded.fields.column(0).to_pylist() == [0, 1, 0, 1, 2]
    assert decoded.items is not None and decoded.items.to_pylist() == [0, 0, 2, 2, 2]


def test_a_malformed_item_is_one_row_without_any_of_its_rows() -> None:
    sound = pa.table({"a": [1, 2]})
    two_batches = pa.concat_tables([sound, pa.table({"a": [1 << 40]})])
    rows, malformed = decode(ArrowDecoder(schema(a=pa.int32())), stream(sound), stream(two_batches), stream(sound))
    assert [row["a"] for row in rows] == [1, 2, None, 1, 2]
    assert malformed == {2: "a value of column 'a' does not fit int32"}


def test_columns_are_found_by_name() -> None:
    table = pa.table({"b": ["x"], "a": [1], "z": [b""]})
    rows, _ = decode(ArrowDecoder(schema(a=pa.int64(), b=pa.string(), c=pa.float64())), stream(table))
    assert rows == [{"a": 1, "b": "x", "c": None}]
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    assert values(ArrowDecoder(schema(a=pa.int64())), stream(twice)) == ["malformed"]


def test_widths_are_converted_and_meanings_are_not() -> None:
    assert only(pa.int32(), pa.array([1], pa.uint64()), pa.array([1 << 40])) == [1, "malformed"]
    assert only(pa.int64(), pa.array(["1"]), pa.array([1.0]), pa.array([True]), pa.nulls(1)) == ["malformed"] * 3 + [
        None
    ]
    assert only(pa.string(), pa.array(["x"], pa.large_string()), pa.array([b"x"])) == ["x", "malformed"]
    assert only(pa.string(), pa.array(["x"]).dictionary_encode()) == ["x"]
    assert only(pa.binary(), pa.array([b"xy"], pa.binary(2))) == [b"xy"]
    assert only(pa.float64(), pa.array([1]), pa.array([1.5], pa.float32())) == [1.0, 1.5]
    time = datetime(2020, 1, 1, tzinfo=UTC)
    nanoseconds = pa.array([time.timestamp() * 10**9 + 1], pa.float64()).cast(pa.int64()).cast(pa.timestamp("ns"))
    assert only(pa.timestamp("us", tz="UTC"), nanoseconds) == [time]
    inner = pa.struct([("y", pa.int32()), ("new", pa.string())])
    assert only(pa.list_(inner), pa.array([[{"x": 1, "y": 2}]]), pa.array([[{"y": "2"}]])) == [
        [{"y": 2, "new": None}],
        "malformed",
    ]


def test_a_record_batch_may_come_without_its_schema() -> None:
    batch = pa.record_batch({"a": [1, 2]}).serialize().to_pybytes()
    rows, _ = decode(ArrowDecoder(schema(a=pa.int64())), batch)
    assert [row["a"] for row in rows] == [1, 2]
    assert values(ArrowDecoder(schema(a=pa.int64(), b=pa.string())), batch) == ["malformed"]


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compressed_items_are_bounded(codec: str) -> None:
    decoder = ArrowDecoder(schema(a=pa.int64()))
    good, bomb = (stream(pa.table({"a": pa.array([0] * count)}), compression=codec) for count in (10, 9 << 20))
    rows, malformed = decode(decoder, good, bomb)
    assert len(rows) == 11 and "at most" in malformed[10]


def test_rows_without_bytes_are_bounded() -> None:
    bomb = stream(pa.table({"a": pa.nulls(MAX_ITEM_ROWS + 1)}))
    assert len(bomb) < 1000
    assert values(ArrowDecoder(schema(a=pa.int64())), bomb) == ["malformed"]


def test_batches_are_bounded() -> None:
    table = pa.concat_tables([pa.table({"a": [1]})] * MAX_ITEM_MESSAGES)
    assert values(ArrowDecoder(schema(a=pa.int64())), stream(table)) == ["malformed"]


def test_dictionaries_are_bounded() -> None:
    rows = MAX_ITEM_BYTES // 1000 + 1
    column = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * 1000]))
    assert values(ArrowDecoder(schema(a=pa.string())), stream(pa.table({"a": column}))) == ["malformed"]


@pytest.mark.parametrize(
    "item", [b"", b"junk", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\xff\xff\xff\x7f", b"ARROW1\x00\x00"]
)
def test_what_is_not_a_stream_is_malformed(item: bytes) -> None:
    sound = stream(pa.table({"a": [1]}))
    assert values(ArrowDecoder(schema(a=pa.int64())), item, sound, sound + b"x") == ["malformed", 1, "malformed"]


def test_reasons_do_not_quote_values() -> None:
    items = [stream(pa.table({"a": [123456789]})), stream(pa.table({"a": ["123456789"]}))]
    assert "123456789" not in str(reasons(ArrowDecoder(schema(a=pa.int8())), items))


def test_large_items_come_in_several_blocks() -> None:
    item = stream(pa.table({"a": pa.array(range(100_000))}))
    blocks = list(ArrowDecoder(schema(a=pa.int64())).decode(pa.array([item] * 3, pa.binary())))
    assert [(block.count, block.fields.num_rows) for block in blocks] == [(1, 100_000)] * 3


def test_only_columns_that_are_read_are_validated() -> None:
    # Offsets that lead outside, a text that is not UTF-8, and a date that is not at midnight.
    offsets = pa.array([0, 50, 1], pa.int32()).buffers()[1]
    outside = pa.ListArray.from_buffers(pa.list_(pa.int8()), 2, [None, offsets], children=[pa.array([1], pa.int8())])
    wrong = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b""], pa.binary()).buffers())
    late = pa.array([1, 2], pa.int64()).view(pa.date64())
    item = stream(pa.table({"a": [1, 2], "outside": outside, "wrong": wrong, "late": late}))
    assert values(ArrowDecoder(schema(a=pa.int64())), item) == [1, 2]
    for name, kind in (("outside", pa.list_(pa.int8())), ("wrong", pa.string()), ("late", pa.date32())):
        assert values(ArrowDecoder(pa.schema([(name, kind)])), item) == ["malformed"], name
    inner = pa.StructArray.from_arrays([pa.array([1, 2]), wrong], ["a", "wrong"])
    nested = stream(pa.table({"s": inner}))
    assert values(ArrowDecoder(schema(s=pa.struct([("a", pa.int64())]))), nested) == [{"a": 1}, {"a": 2}]
    assert values(ArrowDecoder(schema(s=pa.struct([("wrong", pa.string())]))), nested) == ["malformed"]
    for many in (
        pa.ListArray.from_arrays([0, 1, 2], inner),
        pa.LargeListArray.from_arrays([0, 1, 2], inner),
        pa.FixedSizeListArray.from_arrays(inner, 1),
    ):
        nested = stream(pa.table({"m": many}))
        kind = pa.list_(pa.struct([("a", pa.int64())]))
        assert values(ArrowDecoder(schema(m=kind)), nested) == [[{"a": 1}], [{"a": 2}]]
        assert values(ArrowDecoder(schema(m=pa.list_(pa.struct([("wrong", pa.string())])))), nested) == ["malformed"]


def test_nanoseconds_are_dropped_towards_the_past() -> None:
    nanoseconds = pa.array([-1, None, 1735689599_999999900, -(1 << 63)], pa.int64()).cast(pa.timestamp("ns", "UTC"))
    last = datetime(2024, 12, 31, 23, 59, 59, 999_999, UTC)
    before = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    kind = pa.timestamp("us", tz="UTC")
    found = decode(ArrowDecoder(schema(a=kind)), stream(pa.table({"a": nanoseconds})))[0]
    assert [row["a"] for row in found[:3]] == [before, None, last] and found[3]["a"].year == 1677
    columns = {
        pa.list_(kind): pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), nanoseconds[:3]),
        pa.large_list(kind): pa.LargeListArray.from_arrays(pa.array([0, 3], pa.int64()), nanoseconds[:3]),
        pa.struct([("x", kind)]): pa.StructArray.from_arrays([nanoseconds[:1]], ["x"]),
        pa.map_(pa.string(), kind): pa.MapArray.from_arrays([0, 1], ["k"], nanoseconds[:1]),
    }
    found = [values(ArrowDecoder(schema(a=each)), stream(pa.table({"a": columns[each]})))[0] for each in columns]
    assert found == [[before, None, last], [before, None, last], {"x": before}, [("k", before)]]
    kept = decode(ArrowDecoder(schema(a=pa.timestamp("ns", "UTC"))), stream(pa.table({"a": nanoseconds[:1]})))[0]
    assert kept[0]["a"].value == -1
