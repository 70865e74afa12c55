from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from penstock.decoding.msgpack import msgpack_decoder

from .decode import schema, values

MALFORMED = "malformed"
encode = msgspec.msgpack.encode


def only(kind: pa.DataType, *found: Any, unit: str = "s") -> list[Any]:
    return values(msgpack_decoder(schema(a=kind), unit), *[encode({"a": value, "z": [1]}) for value in found])


def test_values_have_their_own_types() -> None:
    assert only(pa.binary(), b"\x00\xff", "text") == [b"\x00\xff", MALFORMED]
    assert only(pa.int16(), 1, 1 << 15, 1.0, None) == [1, MALFORMED, MALFORMED, None]
    time = datetime(2020, 1, 1, tzinfo=UTC)
    assert only(pa.timestamp("us", tz="UTC"), time, 1577836800, "2020-01-01T00:00:00Z") == [time] * 3
    assert only(pa.map_(pa.int64(), pa.string()), {1: "x"}, {"1": "x"}) == [[(1, "x")], MALFORMED]
    assert only(pa.timestamp("us", tz="UTC"), float("nan"), float("inf")) == [MALFORMED] * 2


@pytest.mark.parametrize(
    "item",
    [b"", b"\xc0", b"\x90", b"\x81", b"\x81\xa1a\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\x80\x80",
     b"\x81\xa1z\xc1", b"\x81\x01\x02", b"\x81\xa1a\xdb\xff\xff\xff\xff", b"\x81\xa1z" + b"\x91" * 100_000 + b"\x00"],
)  # fmt: skip
def test_what_is_not_one_map_is_malformed(item: bytes) -> None:
    assert values(msgpack_decoder(schema(a=pa.int8()), "s"), item, encode({"a": 1})) == [MALFORMED, 1]
