from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from penstock import LocalError
from penstock.decoding.shapes import Shape

from .decode import schema


def test_names_need_not_be_identifiers() -> None:
    shape = Shape(schema(**{"user-id": pa.int32(), "class": pa.string(), "": pa.bool_()}), "s")
    row = msgspec.json.decode(b'{"user-id":1,"class":"c","":true}', type=shape.row)
    assert shape.columns.build([row]).to_pylist() == [{"user-id": 1, "class": "c", "": True}]


def test_a_blank_row_is_all_null() -> None:
    shape = Shape(schema(a=pa.struct([("b", pa.int8())]), c=pa.list_(pa.string())), "s")
    assert shape.columns.build([shape.row()]).to_pylist() == [{"a": None, "c": None}]


@pytest.mark.parametrize(
    "kind",
    [pa.month_day_nano_interval(), pa.null(), pa.map_(pa.float64(), pa.int32()), pa.list_(pa.duration("us"))],
    ids=str,
)
def test_types_without_an_equivalent_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(LocalError, match=r"field 'a' is of type .*; declare another type"):
        Shape(schema(a=kind), "s")
