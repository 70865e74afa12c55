from __future__ import annotations

from array import array
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire
from tests.wire.strategies import items

Items = list[tuple[bytes, bytes | None]]
SCHEMA = pa.schema([("data", pa.binary()), ("metadata", pa.binary())])


def batch_of(items: Items) -> pa.RecordBatch:
    return pa.record_batch([[data for data, _ in items], [metadata for _, metadata in items]], schema=SCHEMA)


@given(parts=st.lists(items, max_size=5), more=items)
def test_batch_contains_the_added_items(wire: Wire, parts: list[Items], more: Items) -> None:
    builder = wire.columns.ColumnBuilder()
    for part in parts:
        builder.append(wire.run(part))
    added = [item for part in parts for item in part]
    assert len(builder) == len(added)
    for expected in (added, more, []):
        batch = builder.finish()
        batch.validate(full=True)
        assert batch.schema == SCHEMA
        assert batch.equals(batch_of(expected))
        for payload in more:
            builder.append_payload(wire.payload.Payload(*payload))
        more = []


@given(parts=st.lists(items, max_size=4))
def test_both_builds_make_the_same_batch(wires: dict[str, Wire], parts: list[Items]) -> None:
    batches = []
    for wire in wires.values():
        builder = wire.columns.ColumnBuilder()
        for part in parts:
            builder.append(wire.run(part))
        batches.append(builder.finish())
    assert all(batch.equals(batches[0]) for batch in batches)


def test_batch_outlives_its_builder_unchanged(wire: Wire) -> None:
    builder = wire.columns.ColumnBuilder()
    builder.append(wire.run([(b"a", b"m")] * 100))
    first = builder.finish()
    builder.append(wire.run([(b"zz", None)] * 100))
    second = builder.finish()
    del builder
    assert first.equals(batch_of([(b"a", b"m")] * 100))
    assert second.equals(batch_of([(b"zz", None)] * 100))


@given(before=items, items=items, after=items)
def test_rows_make_a_run(wire: Wire, before: Items, items: Items, after: Items) -> None:
    batch = batch_of([*before, *items, *after])
    stop = len(before) + len(items)
    assert wire.items(wire.columns.rows_of(batch).run(len(before), stop)) == items
    # A slice of a batch shares its buffers, and begins within them.
    assert wire.items(wire.columns.rows_of(batch.slice(len(before), len(items))).run()) == items
    assert wire.items(wire.columns.rows_of(batch).run()) == [*before, *items, *after]


@given(items=items, limit=st.integers(0, 60), overhead=st.integers(0, 20))
def test_rows_make_runs_of_limited_size(wire: Wire, items: Items, limit: int, overhead: int) -> None:
    rows = wire.columns.rows_of(batch_of(items))
    cut: Items = []
    while len(cut) < len(rows):
        part = wire.items(rows.run(len(cut), None, limit, overhead))
        costs = [len(data) + len(metadata or b"") + overhead for data, metadata in items[len(cut) :]]
        # As many rows as fit, and at least one.
        assert len(part) == 1 or sum(costs[: len(part)]) <= limit
        assert sum(costs[: len(part) + 1]) > limit or len(part) == len(costs)
        cut += part
    assert cut == items


@given(parts=st.lists(items, max_size=4))
def test_batch_of_runs_becomes_an_equal_run(wire: Wire, parts: list[Items]) -> None:
    builder = wire.columns.ColumnBuilder()
    for part in parts:
        builder.append(wire.run(part))
    assert wire.items(wire.columns.rows_of(builder.finish()).run()) == [item for part in parts for item in part]


@pytest.mark.parametrize(
    "type",
    [
        pa.binary(),
        pa.string(),
        pa.large_binary(),
        pa.large_string(),
        pa.binary(2),
        pa.binary_view(),
        pa.string_view(),
    ],
    ids=str,
)
def test_data_may_have_any_type_of_bytes(wire: Wire, type: pa.DataType) -> None:
    column = pa.array([b"ab", b"cd", b"ef"], pa.binary()).cast(type)
    batch = pa.record_batch([column, column], ["data", "metadata"])
    expected = [(b"cd", b"cd"), (b"ef", b"ef")]
    assert wire.items(wire.columns.rows_of(batch).run(1)) == expected


def test_single_column_of_bytes_is_the_data(wire: Wire) -> None:
    batch = pa.record_batch([["a", "b"], [1, 2], ["m", None]], ["text", "number", "metadata"])
    assert wire.items(wire.columns.rows_of(batch).run()) == [(b"a", b"m"), (b"b", None)]


@pytest.mark.parametrize(
    ("values", "type", "first"),
    [
        ([1, -2, 3], pa.int64(), b"\1\0\0\0\0\0\0\0"),
        ([1, 2, 3], pa.uint8(), b"\1"),
        ([1.0, 2.0, 3.0], pa.float32(), b"\0\0\x80?"),
        ([1, 2, 3], pa.timestamp("us"), b"\1\0\0\0\0\0\0\0"),
        ([b"abc", b"def", b"ghi"], pa.binary(3), b"abc"),
    ],
    ids=str,
)
def test_numbers_are_rows_of_one_width(wire: Wire, values: list[Any], type: pa.DataType, first: bytes) -> None:
    column = pa.array(values, type)
    raw = bytes(column.buffers()[1])
    width = len(first)
    expected = [(raw[at : at + width], None) for at in range(0, len(raw), width)]
    assert expected[0][0] == first
    for many in (column, pa.record_batch([column], ["data"]), pa.record_batch([column], ["numbers"])):
        rows = wire.columns.rows_of(many)
        run = rows.run()
        assert (run.width, len(run), wire.items(run)) == (width, 3, expected)
    sliced = wire.columns.rows_of(pa.record_batch([column], ["data"]).slice(1, 2))
    assert wire.items(sliced.run()) == expected[1:]
    # With metadata they are ordinary rows.
    batch = pa.record_batch([column, pa.array([b"m", None, b""])], ["data", "metadata"])
    annotated = [(data, more) for (data, _), more in zip(expected, (b"m", None, b""), strict=True)]
    assert wire.items(wire.columns.rows_of(batch).run()) == annotated


def test_empty_column_makes_an_empty_run(wire: Wire) -> None:
    rows = wire.columns.rows_of(pa.array([], pa.int64()))
    assert (len(rows), len(rows.run())) == (0, 0)


def test_batches_of_one_width_share_their_offsets(wire: Wire) -> None:
    builder = wire.columns.ColumnBuilder()
    batches = []
    for number in range(2):
        builder.append(wire.payload.PayloadRun.fixed(bytes((number,)) * 800, 8))
        batches.append(builder.finish())
    for number, batch in enumerate(batches):
        batch.validate(full=True)
        assert batch.equals(batch_of([(bytes((number,)) * 8, None)] * 100))
    ends = [batch.column("data").buffers()[1].address for batch in batches]
    nulls = [batch.column("metadata").buffers()[0].address for batch in batches]
    assert len(set(ends)) == len(set(nulls)) == 1


def test_metadata_with_only_nulls_is_none(wire: Wire) -> None:
    for column in (pa.nulls(2), pa.nulls(2, pa.string())):
        batch = pa.record_batch([[b"a", b"b"], column], ["data", "metadata"])
        assert wire.items(wire.columns.rows_of(batch).run()) == [(b"a", None), (b"b", None)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"data": [True]}, "column data has type bool; convert it to binary or string"),
        ({"data": pa.array([1, None])}, "1 rows have null as data"),
        ({"data": [b"a"], "metadata": [1]}, "column metadata has type int64"),
        ({"data": [b"a", None, None]}, "2 rows have null as data"),
        ({"data": pa.nulls(2)}, "2 rows have null as data"),
        ({"a": [True], "metadata": [b"m"]}, "no single column for the data.*a: bool, metadata: binary"),
        ({"a": [1], "b": [2]}, "no single column for the data.*a: int64, b: int64"),
        ({"a": [b"a"], "b": ["b"]}, "no single column for the data.*a: binary, b: string"),
        ({}, "no single column for the data.*none"),
    ],
)
def test_batch_without_data_is_refused(wire: Wire, columns: dict[str, Any], message: str) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(column) for column in columns.values()], list(columns))
    with pytest.raises(wire.errors.LocalError, match=message):
        wire.columns.rows_of(batch).run()


def test_duplicate_column_names_are_refused(wire: Wire) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([b"a"]), pa.array([b"b"])], ["data", "data"])
    with pytest.raises(wire.errors.LocalError, match="2 columns named data"):
        wire.columns.rows_of(batch).run()


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (0, 3), (2, 1), (3, None)])
def test_rows_outside_of_a_batch_are_refused(wire: Wire, start: int, stop: int | None) -> None:
    with pytest.raises(wire.errors.LocalError, match="record batch of 2"):
        wire.columns.rows_of(batch_of([(b"a", None), (b"b", None)])).run(start, stop)


def test_damaged_array_is_refused(wire: Wire) -> None:
    # pyarrow only checks the last offset when it makes an array.
    buffers = [None, pa.py_buffer(array("i", (0, 2**31 - 1, 3)).tobytes()), pa.py_buffer(b"abc")]
    damaged = pa.Array.from_buffers(pa.binary(), 2, buffers)
    with pytest.raises(wire.errors.LocalError, match="the Arrow array is damaged"):
        wire.columns.rows_of(pa.RecordBatch.from_arrays([damaged], ["data"])).run()
    batch = pa.RecordBatch.from_arrays([pa.array([b"a", b"b"]), damaged], ["data", "metadata"])
    with pytest.raises(wire.errors.LocalError, match="the Arrow array is damaged"):
        wire.columns.rows_of(batch).run()
