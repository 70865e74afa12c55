from __future__ import annotations

from datetime import time, timedelta

import cbor2
import msgspec
import polars
import pyarrow as pa
import pytest

from weirpool import LocalError, Mismatch, rows
from weirpool.decoding.shapes import Shape
from weirpool.frames.items import ItemColumns

from .decode import schema

TOO_LARGE = {"large": 2**64}
BAD = {
    "json": msgspec.json.encode(TOO_LARGE),
    "msgpack": msgspec.msgpack.encode({"small": 256}),
    "cbor": cbor2.dumps({"small": 256}),
}


def test_names_need_not_be_identifiers() -> None:
    shape = Shape(schema(**{"user-id": pa.int32(), "class": pa.string(), "": pa.bool_()}), "s")
    row = msgspec.json.decode(b'{"user-id":1,"class":"c","":true}', type=shape.row)
    assert shape.columns.build([row]).to_pylist() == [{"user-id": 1, "class": "c", "": True}]


def test_a_blank_row_is_all_null() -> None:
    shape = Shape(schema(a=pa.struct([("b", pa.int8())]), c=pa.list_(pa.string())), "s")
    assert shape.columns.build([shape.row()]).to_pylist() == [{"a": None, "c": None}]


@pytest.mark.parametrize("encoding", ["json", "msgpack", "cbor"])
def test_the_schema_of_a_frame_fits_its_rows(encoding: str) -> None:
    frame = polars.DataFrame(
        {
            "text": ["a", None],
            "bytes": [b"x", b""],
            "small": polars.Series([1, 255], dtype=polars.UInt8),
            "large": polars.Series([1, 2**64 - 1], dtype=polars.UInt64),
            "span": [timedelta(seconds=1, microseconds=1), None],
            "time": [time(1, 2, 3, 4), None],
            "texts": [["a"], ["b", None]],
            "inner": [{"a": 1, "n": ["x"]}, {"a": 2, "n": []}],
        }
    )
    wanted = frame.to_arrow().schema
    decoded = ItemColumns(encoding, wanted)
    items = pa.RecordBatch.from_pydict({"data": [item.data for item in rows(frame, encoding)]})
    table = pa.Table.from_batches(decoded.convert(items))
    assert table.schema == wanted and polars.DataFrame(table).equals(frame)
    with pytest.raises(Mismatch):
        list(decoded.convert(pa.RecordBatch.from_pydict({"data": [BAD[encoding]]})))


def test_views_and_nanoseconds_are_types_of_columns() -> None:
    wanted = schema(text=pa.string_view(), data=pa.binary_view(), at=pa.time64("ns"), span=pa.duration("ns"))
    item = b'{"text":"x","data":"eA==","at":"01:02:03.000004","span":"PT1.5S"}'
    [batch] = ItemColumns("json", wanted).convert(pa.RecordBatch.from_pydict({"data": [item]}))
    assert batch.schema == wanted
    assert batch.column("text").to_pylist() == ["x"] and batch.column("data").to_pylist() == [b"x"]
    assert batch.column("at").to_pylist() == [time(1, 2, 3, 4)]
    assert batch.column("span").cast(pa.duration("us")).to_pylist() == [timedelta(seconds=1.5)]


@pytest.mark.parametrize(
    "kind",
    [pa.month_day_nano_interval(), pa.null(), pa.map_(pa.float64(), pa.int32()), pa.list_(pa.null())],
    ids=str,
)
def test_types_without_an_equivalent_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(LocalError, match=r"field 'a' is of type .*; declare another type"):
        Shape(schema(a=kind), "s")


def test_both_attempts_have_the_same_fields() -> None:
    fields = schema(**{"user-id": pa.int32(), "at": pa.timestamp("us"), "inner": pa.struct([("n", pa.uint64())])})
    first, second = (Shape(fields, "s", whole_floats=whole).row for whole in (True, False))
    item = msgspec.msgpack.encode({"user-id": 5, "inner": {"n": 2**63}})
    for row in (first, second):
        assert Shape(fields, "s").columns.build([msgspec.msgpack.decode(item, type=row)]).to_pylist() == [
            {"user-id": 5, "at": None, "inner": {"n": 2**63}}
        ]
