from __future__ import annotations

import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from weirpool.decoding.msgpack import msgpack_decoder

from .decode import decode, reasons, schema, values

MALFORMED = "malformed"
UTC_TIME = pa.timestamp("us", tz="UTC")
encode = msgspec.msgpack.encode


def only(kind: pa.DataType, *found: Any, unit: str = "s") -> list[Any]:
    return values(msgpack_decoder(schema(a=kind), unit), *[encode({"a": value, "z": [1]}) for value in found])


def test_values_have_their_own_types() -> None:
    assert only(pa.binary(), b"\x00\xff", "text") == [b"\x00\xff", MALFORMED]
    assert only(pa.int16(), 1, 1 << 15, "1", None) == [1, MALFORMED, MALFORMED, None]
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


def test_floats_without_a_fraction_are_integers() -> None:
    assert only(pa.int64(), 1795810805447.0, -5.0, 2.0**53, -(2.0**53), 2.0**53 + 2, 2.0**60, 1.5) == [
        1795810805447, -5, 2**53, -(2**53), MALFORMED, MALFORMED, MALFORMED,
    ]  # fmt: skip
    assert only(pa.int8(), 127.0, -128.0, 128.0, -129.0, float("nan"), -0.0) == [
        127, -128, MALFORMED, MALFORMED, MALFORMED, 0,
    ]  # fmt: skip
    assert only(pa.uint8(), 255.0, 256.0, -1.0) == [255, MALFORMED, MALFORMED]
    assert only(pa.uint64(), 2.0**53, 2.0**54, 2**64 - 1) == [2**53, MALFORMED, 2**64 - 1]
    assert only(pa.list_(pa.struct([("n", pa.int32())])), [{"n": 5.0}, None, {"n": None}]) == [
        [{"n": 5}, None, {"n": None}]
    ]
    assert only(pa.map_(pa.int64(), pa.int16()), {1.0: 2.0}, {1.5: 2}) == [[(1, 2)], MALFORMED]
    assert only(pa.decimal128(9, 1), 5.0, 5.5) == [Decimal("5.0"), Decimal("5.5")]
    assert only(pa.string(), 5.0) == only(pa.bool_(), 1.0) == [MALFORMED]
    assert [type(value) for value in only(pa.float64(), 5.0, 5)] == [float, float]


def test_reasons_name_the_types_of_columns() -> None:
    decoder = msgpack_decoder(schema(a=pa.int8()), "s")
    assert (
        reasons(decoder, [encode({"a": 1.5}), encode({"a": 2.0**60})])
        == ["Expected `int | null`, got `float` - at `$.a`"] * 2
    )


def test_undefined_is_null() -> None:
    undefined = b"\xd4\x00\x00"
    inner = pa.struct([("x", pa.int8())])
    decoder = msgpack_decoder(schema(a=inner, b=pa.list_(pa.string()), c=UTC_TIME), "s")
    item = b"\x84\xa1a" + undefined + b"\xa1b\x92" + undefined + b"\xa1x\xa1c" + undefined + b"\xa1z\xd4\x01\x00"
    assert decode(decoder, item) == ([{"a": None, "b": [None, "x"], "c": None}], {})
    assert only(pa.binary(), undefined) == [undefined]


def test_timestamps_lose_nanoseconds() -> None:
    last = datetime(2024, 12, 31, 23, 59, 59, 999_999, UTC)
    before = datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)
    items = [
        b"\x81\xa1a\xd7\xff" + (999_999_900 << 34 | 1735689599).to_bytes(8, "big"),
        b"\x81\xa1a\xc7\x0c\xff" + struct.pack(">Iq", 999_999_999, 1735689599),
        b"\x81\xa1a\xc7\x0c\xff" + struct.pack(">Iq", 999_999_999, -1),
        b"\x81\xa1a\xc7\x0c\xff" + struct.pack(">Iq", 999_999_999, 253402300799),
        b"\x81\xa1a\xc7\x0c\xff" + struct.pack(">Iq", 0, 253402300800),
        b"\x81\xa1a\xd4\xff\xff",
    ]
    found = values(msgpack_decoder(schema(a=UTC_TIME), "s"), *items)
    assert found == [last, last, before, last.replace(year=9999), MALFORMED, MALFORMED]


def test_structs_are_arrays_if_they_are_declared_so() -> None:
    # As MessagePack-CSharp and rmp-serde write them.
    fields = schema(a=pa.int64(), b=pa.struct([("x", pa.string())]))
    decoder = msgpack_decoder(fields, "s", arrays=True)
    assert decode(decoder, encode([1795810805447.0, ["x"]]), encode([None]), encode({"a": 1})) == (
        [{"a": 1795810805447, "b": {"x": "x"}}, {"a": None, "b": None}, {"a": None, "b": None}],
        {2: "Expected `array`, got `object`"},
    )
    assert values(msgpack_decoder(fields, "s"), encode([1, ["x"]])) == [MALFORMED]
