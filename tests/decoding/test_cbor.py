from __future__ import annotations

import ipaddress
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import cbor2
import pyarrow as pa
import pytest
from cbor2 import CBORTag, undefined

from weirpool.decoding.cbor import cbor_decoder

from .decode import decode, reasons, schema, values

MALFORMED = "malformed"
KEY = b"\xa1\x61a"
"""A map of one: the text "a", and what follows."""
OTHER = b"\xa1\x61z"


def only(kind: pa.DataType, *found: Any) -> list[Any]:
    return values(cbor_decoder(schema(a=kind), "s"), *map(cbor2.dumps, ({"a": value} for value in found)))


def test_values_have_their_own_types() -> None:
    time = datetime(2020, 1, 1, tzinfo=UTC)
    assert only(pa.int64(), 1, -(1 << 63), 1 << 63, 1.0, None) == [1, -(1 << 63), MALFORMED, 1, None]
    assert only(pa.timestamp("us", tz="UTC"), time, 1577836800, "2020-01-01T00:00:00Z") == [time] * 3
    assert only(pa.date32(), date(2020, 2, 29)) == [date(2020, 2, 29)]
    assert only(pa.decimal128(38, 2), Decimal("1.5"), 1 << 70) == [Decimal("1.50"), Decimal(1 << 70)]
    assert only(pa.binary(), b"x", "x", "AAAA") == [b"x", MALFORMED, MALFORMED]
    assert only(pa.list_(pa.map_(pa.string(), pa.int8())), [{"k": 1}, None]) == [[[("k", 1)], None]]


@pytest.mark.parametrize(
    "item",
    [b"\xd9\xd9\xf7" + KEY + b"\x07", b"\xbf\x61a\x07\xff", KEY + b"\x19\x00\x07", b"\xa2\x61z\x9f\x01\xff\x61a\x07"],
    ids=["self-described", "indefinite", "not shortest", "indefinite array"],
)
def test_other_spellings_are_decoded(item: bytes) -> None:
    assert values(cbor_decoder(schema(a=pa.int8()), "s"), item) == [7]


def test_epoch_times_are_tagged_numbers() -> None:
    items = [KEY + b"\xc1\x05", KEY + b"\xc1\xf9\x3c\x00", KEY + b"\xc1\xf9\x7e\x00"]
    found = values(cbor_decoder(schema(a=pa.timestamp("us", tz="UTC")), "s"), *items)
    assert found == [datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC) for second in (5, 1)] + [MALFORMED]


MALFORMED_ITEMS = {
    "empty": b"",
    "not a map": b"\x01",
    "two values": b"\xa0\xa0",
    "incomplete": b"\xa1\x61a",
    "length that lies": KEY + b"\x9b\x10\x00\x00\x00\x00\x00\x00\x00",
    "text that lies": KEY + b"\x7b\x10\x00\x00\x00\x00\x00\x00\x00",
    "text that lies, in another field": OTHER + b"\x7b\x10\x00\x00\x00\x00\x00\x00\x00",
    "equal keys": b"\xa2\x61a\x01\x61a\x02",
    "keys that are no texts": b"\xa1\x01\x02",
    "deep": OTHER + b"\x81" * 100_000 + b"\x00",
    "reserved": OTHER + b"\x1c",
    "a simple value with a longer form": OTHER + b"\xf8\x18",
    "half a pair": b"\xa1\x61z\xbf\x61y\xff",
    "break": b"\xff",
}
REFUSED = {
    "bad text": b"\x61\xff",
    "shared value that contains itself": b"\xd8\x1c\x81\xd8\x1d\x00",
    "references to text": b"\xd9\x01\x00\x82\x63aaa\xd8\x19\x00",
    "regular expression": b"\xd8\x23\x64(a+)",
    "rational without a denominator": b"\xd8\x1e\x82\x01\x00",
    "huge binary fraction": b"\xc5\x82\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x01",
    "huge decimal fraction": b"\xc4\x82\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x01",
    "decimal fraction of one": b"\xc4\x81\x01",
    "huge number": b"\xc2\x51" + b"\xff" * 17,
    "keys that collide": b"\xa1\x82\x01\x02\x03",
    "equal keys": b"\xa2\x61a\x01\x61a\x02",
    "invalid date": b"\xc1\xf9\x7e\x00",
    "half a number": b"\xd8\x45\x41\x00",
}
"""What no column can have."""


@pytest.mark.parametrize("name", MALFORMED_ITEMS)
def test_hostile_items_are_malformed(name: str) -> None:
    # THREATS 104
    decoder = cbor_decoder(schema(a=pa.int8()), "s")
    assert values(decoder, MALFORMED_ITEMS[name], cbor2.dumps({"a": 1})) == [MALFORMED, 1]


@pytest.mark.parametrize("name", REFUSED)
def test_refused_values_cost_the_rows_that_have_them(name: str) -> None:
    # THREATS 118
    item = b"\xa2\x61a\x01\x61z" + REFUSED[name]
    assert values(cbor_decoder(schema(a=pa.int8()), "s"), item) == [1]
    inner = pa.struct([("a", pa.int8())])
    nested = b"\xa1\x61v\x82" + item + b"\xf6"
    assert values(cbor_decoder(schema(v=pa.list_(inner)), "s"), nested) == [[{"a": 1}, None]]
    for kind in (pa.string(), pa.binary(), pa.int64(), pa.timestamp("us"), pa.list_(pa.int8()), inner):
        assert values(cbor_decoder(schema(z=kind), "s"), item) == [MALFORMED]


def test_reasons_do_not_quote_the_item() -> None:
    items = [KEY + b"\xd8\x23\x66secret", b"\xa1\x66secret", cbor2.dumps({"a": "secret"})]
    found = reasons(cbor_decoder(schema(a=pa.int8()), "s"), items)
    assert len(found) == 3 and "secret" not in str(found)


def test_values_of_javascript_and_python() -> None:
    identifier, whole = UUID(int=5), 1795810805447
    assert only(pa.int64(), float(whole), 2.0**60, 1.5) == [whole, MALFORMED, MALFORMED]
    assert only(pa.binary(), identifier, ipaddress.ip_address("1.2.3.4"), CBORTag(64, b"x"), CBORTag(68, b"y")) == [
        identifier.bytes, b"\x01\x02\x03\x04", b"x", b"y",
    ]  # fmt: skip
    assert only(pa.string(), identifier, CBORTag(32, "http://a")) == [str(identifier), "http://a"]
    assert only(pa.list_(pa.int32()), {1}, CBORTag(70, b"\x01\0\0\0\x02\0\0\0")) == [[1], [1, 2]]
    assert only(pa.list_(pa.float64()), CBORTag(86, b"\0" * 6 + b"\xf8\x3f")) == [[1.5]]
    assert only(pa.string(), undefined, "x") == only(pa.string(), None, "x")
    assert only(pa.float64(), Fraction(1, 4), Decimal("0.5")) == [0.25, 0.5]
    assert only(pa.map_(pa.int64(), pa.string()), {1: "x"}, {"1": "y"}, {1.0: "z"}) == [
        [(1, "x")],
        [(1, "y")],
        [(1, "z")],
    ]


def test_times_lose_digits() -> None:
    last = datetime(2024, 12, 31, 23, 59, 59, 999_999, UTC)
    kind = pa.timestamp("us", tz="UTC")
    text = "2024-12-31T23:59:59.9999999Z"
    # How Jackson writes an instant: as a decimal fraction.
    assert only(kind, text, CBORTag(0, text), Decimal("1735689599.999999900"), 1735689599.9999998) == [last] * 4
    assert only(pa.timestamp("us"), Decimal("1735689599.999999900")) == [last.replace(tzinfo=None)]
    assert (
        only(pa.date32(), CBORTag(100, 20088), CBORTag(1004, "2024-12-31"), [2024, 12, 31]) == [date(2024, 12, 31)] * 3
    )


def test_structs_are_arrays_if_they_are_declared_so() -> None:
    decoder = cbor_decoder(schema(a=pa.int64(), b=pa.string()), "s", arrays=True)
    assert decode(decoder, cbor2.dumps([5.0, "x", 1]), cbor2.dumps([undefined])) == (
        [{"a": 5, "b": "x"}, {"a": None, "b": None}],
        {},
    )
