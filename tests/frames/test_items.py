from __future__ import annotations

from typing import Any

import cbor2
import msgspec
import pyarrow as pa
import pytest

from weirpool import LocalError, Mismatch, rows
from weirpool.frames.items import ItemColumns, encoding_of

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.string()))])
VALUES = [{"a": 1, "b": ["x"]}, {"a": None}, {"a": 3, "b": [], "other": 1}]
TABLE = {"a": [1, None, 3], "b": [["x"], None, []]}


def batch(items: list[bytes]) -> pa.RecordBatch:
    return pa.record_batch({"data": pa.array(items, pa.binary()), "metadata": pa.nulls(len(items), pa.binary())})


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [("json", msgspec.json.encode), ("msgpack", msgspec.msgpack.encode), ("cbor", cbor2.dumps)],
)
def test_items_become_columns_of_the_schema(encoding: str, encode: Any) -> None:
    columns = ItemColumns(encoding, SCHEMA)
    found = list(columns.convert(batch(list(map(encode, VALUES)))))
    assert pa.Table.from_batches(found).to_pydict() == TABLE
    assert columns.schema == SCHEMA and list(columns.convert(batch([]))) == []


def test_malformed_item_is_reported_with_its_number() -> None:
    columns = ItemColumns("json", SCHEMA)
    list(columns.convert(batch([b"{}", b"{}"])))
    with pytest.raises(Mismatch, match="item 3 is not the json of the schema: Expected `int"):
        list(columns.convert(batch([b"{}", b'{"a": "x"}'])))


def test_arrow_items_have_the_columns_of_the_first() -> None:
    table = pa.table({"t": pa.array([1, 2, 3], pa.timestamp("ns", "UTC")), "d": pa.array([1, 2, 3], pa.duration("s"))})
    items = [item.data for item in rows(table, "arrow", rows_per_item=2)]
    columns = ItemColumns("arrow")
    assert columns.schema is None
    assert pa.Table.from_batches(columns.convert(batch(items))).equals(table)
    assert columns.schema == table.schema
    other = next(rows(pa.table({"t": ["x"]}), "arrow")).data
    with pytest.raises(Mismatch, match="item 2 is not the arrow of the schema: column 't'"):
        list(columns.convert(batch([other])))
    with pytest.raises(Mismatch, match="item 0 is not an Arrow IPC stream"):
        list(ItemColumns("arrow").convert(batch([b"nonsense"])))


@pytest.mark.parametrize(
    ("mime", "encoding"),
    [
        ("application/json; charset=utf-8", "json"),
        ("application/problem+json", "json"),
        ("application/x-msgpack", "msgpack"),
        ("application/vnd.river+msgpack", "msgpack"),
        ("application/cbor", "cbor"),
        ("application/vnd.apache.arrow.stream", "arrow"),
    ],
)
def test_mime_type_names_the_encoding(mime: str, encoding: str) -> None:
    assert encoding_of(mime) == encoding


def test_mistakes_are_explained() -> None:
    with pytest.raises(LocalError, match=r"items of type 'text/plain' cannot be decoded; pass encoding="):
        encoding_of("text/plain")
    with pytest.raises(LocalError, match="items of json need a schema"):
        ItemColumns("json")
    with pytest.raises(LocalError, match="the encoding is 'xml'; use one of json"):
        ItemColumns("xml", SCHEMA)
    with pytest.raises(LocalError, match="which items cannot be decoded to"):
        ItemColumns("json", pa.schema([("a", pa.month_day_nano_interval())]))
