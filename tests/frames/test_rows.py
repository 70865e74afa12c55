from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import msgspec
import pandas
import polars
import pyarrow as pa
import pytest

import weirpool
from weirpool import Items, LocalError, Payload, Service, rows
from weirpool.schema.formats import CBOR

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})
FRAMES: dict[str, Callable[[], Any]] = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "polars": lambda: polars.DataFrame(TABLE),
    "lazy": lambda: polars.DataFrame(TABLE).lazy(),
    "pandas": TABLE.to_pandas,
    "filtered pandas": lambda: pandas.concat([TABLE.to_pandas(), TABLE.to_pandas()]).iloc[3:],
    "duckdb": lambda: duckdb.from_arrow(TABLE),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_each_row_is_an_item(frame: str) -> None:
    items = [msgspec.json.decode(item.data) for item in rows(FRAMES[frame]())]
    assert items == TABLE.to_pylist()


@pytest.mark.parametrize("frame", FRAMES)
def test_arrow_items_have_several_rows(frame: str) -> None:
    items = list(rows(FRAMES[frame](), "arrow", rows_per_item=2))
    assert len(items) == 2
    tables = [pa.ipc.open_stream(item.data).read_all() for item in items]
    assert [row for table in tables for row in table.to_pylist()] == TABLE.to_pylist()


def test_types_are_those_that_values_are_decoded_from() -> None:
    at = datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    frame = pa.table(
        {
            "at": pa.array([at], pa.timestamp("ns", "UTC")),
            "span": pa.array([timedelta(seconds=1)], pa.duration("ns")),
            "price": pa.array([Decimal("1.5")], pa.decimal128(10, 2)),
            "raw": [b"\x00"],
            "kind": pa.array(["k"]).dictionary_encode(),
            "map": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())),
            "times": pa.array([[at]], pa.list_(pa.timestamp("ns", "UTC"))),
            "inner": pa.array([{"at": at}], pa.struct([("at", pa.timestamp("ns", "UTC"))])),
        }
    )
    [item] = rows(frame)
    text = "2024-01-02T03:04:05.000006Z"
    assert msgspec.json.decode(item.data) == {
        "at": text, "span": "PT1S", "price": "1.50", "raw": "AA==", "kind": "k", "map": {"k": 1}, "times": [text],
        "inner": {"at": text},
    }  # fmt: skip
    [packed] = rows(frame.select(["raw", "at"]), "msgpack")
    assert msgspec.msgpack.decode(packed.data) == {"raw": b"\x00", "at": at}


def test_named_index_of_pandas_is_a_column() -> None:
    frame = pandas.DataFrame({"a": [1]}, index=pandas.Index(["k"], name="key"))
    assert [msgspec.json.decode(item.data) for item in rows(frame)] == [{"a": 1, "key": "k"}]


def test_large_items_are_made_smaller() -> None:
    frame = pa.table({"a": ["x" * 100_000] * 40})
    sizes = [len(item.data) for item in rows(frame, "arrow")]
    assert len(sizes) > 2 and max(sizes) < 1.2e6


def test_rows_are_converted_when_they_are_sent() -> None:
    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for number in range(10):
            read += 1
            yield pa.record_batch({"a": [number]})

    reader = pa.RecordBatchReader.from_batches(pa.schema([("a", pa.int64())]), batches())
    items = rows(reader)
    assert read == 0
    next(items)
    assert read == 1


async def test_frames_are_uploaded_and_streamed() -> None:
    service = Service()

    @service.upload("up")
    async def up(request: Payload, items: Items) -> bytes:
        return b"%d" % (await items.to_polars(encoding="arrow"))["a"].sum()

    @service.stream("down")
    def down(request: Payload) -> Iterator[Payload]:
        return rows(TABLE, request.data.decode())

    async with weirpool.serve(service, "rsocket+memory://rows"), weirpool.connect("rsocket+memory://rows") as peer:
        assert (await peer.upload("up", b"", rows(TABLE, "arrow"))).data == b"6"
        assert (await peer.stream("down", b"arrow").to_arrow(encoding="arrow")).equals(TABLE)
        assert (await peer.stream("down", b"json").to_arrow(schema=TABLE.schema, encoding="json")).equals(TABLE)


@pytest.mark.parametrize("kind", [polars.Categorical, polars.Enum(["buy", "sell"])])
@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
def test_categories_of_polars_are_texts(kind: Any, encoding: str) -> None:
    sides = polars.Series(["buy", "sell", None], dtype=kind)
    frame = polars.DataFrame({"side": sides, "both": [sides, sides, sides]})
    texts = frame.cast({"side": polars.String, "both": polars.List(polars.String)})
    assert list(rows(frame, encoding)) == list(rows(texts, encoding))


@pytest.mark.parametrize("shape", [polars.List, lambda kind: polars.Array(kind, 1)])
def test_times_within_lists_have_microseconds(shape: Any) -> None:
    at = datetime(2024, 1, 2, 3, 4, 5, 6)
    frame = polars.DataFrame({"at": polars.Series([[at]], dtype=shape(polars.Datetime("ns")))})
    assert [item.data for item in rows(frame)] == [b'{"at":["2024-01-02T03:04:05.000006"]}']


async def test_a_frame_without_rows_keeps_its_columns() -> None:
    service, empty = Service(), polars.DataFrame({"a": [1], "b": ["x"]}).clear()
    service.stream("down")(lambda request: rows(empty, "arrow"))
    async with weirpool.serve(service, "rsocket+memory://empty"), weirpool.connect("rsocket+memory://empty") as peer:
        assert (await peer.stream("down").to_polars(encoding="arrow")).equals(empty)
    assert list(rows(empty)) == []


def test_mistakes_are_explained() -> None:
    with pytest.raises(LocalError, match="a Series has no columns"):
        rows(polars.Series([1]))
    with pytest.raises(LocalError, match="a list is not a data frame"):
        rows([1])
    with pytest.raises(LocalError, match="the encoding is 'xml'"):
        rows(TABLE, "xml")
    with pytest.raises(LocalError, match="rows_per_item is 0"):
        rows(TABLE, "arrow", rows_per_item=0)
    with pytest.raises(LocalError, match="a row cannot be encoded"):
        next(rows(pa.table({"a": pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64()))})))


def test_rows_are_written_as_cbor() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    table = pa.table({"raw": [b"\xff"], "at": [at], "amount": [Decimal("1.50")], "parts": [{"x": 1}]})
    [item] = rows(table, "cbor")
    assert CBOR.decoder().decode(item.data) == {
        "raw": b"\xff",
        "at": "2026-01-02T00:00:00Z",
        "amount": "1.50",
        "parts": {"x": 1},
    }
