from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import cbor2
import pyarrow as pa
import pytest

from penstock.decoding.cbor import cbor_decoder

from .decode import reasons, schema, values

MALFORMED = "malformed"
KEY = b"\xa1\x61a"
"""A map of one: the text "a", and what follows."""
OTHER = b"\xa1\x61z"


def only(kind: pa.DataType, *found: Any) -> list[Any]:
    return values(cbor_decoder(schema(a=kind), "s"), *map(cbor2.dumps, ({"a": value} for value in found)))


def test_values_have_their_own_types() -> None:
    time = datetime(2020, 1, 1, tzinfo=UTC)
    assert only(pa.int64(), 1, -(1 << 63), 1 << 63, 1.0, None) == [1, -(1 << 63), MALFORMED, MALFORMED, None]
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


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("empty", b""),
        ("not a map", b"\x01"),
        ("two values", b"\xa0\xa0"),
        ("incomplete", b"\xa1\x61a"),
        ("length that lies", KEY + b"\x9b\x10\x00\x00\x00\x00\x00\x00\x00"),
        ("text that lies", KEY + b"\x7b\x10\x00\x00\x00\x00\x00\x00\x00"),
        ("equal keys", b"\xa2\x61a\x01\x61a\x02"),
        ("keys that collide", b"\xa1\x01\x02"),
        ("deep", OTHER + b"\x81" * 100_000 + b"\x00"),
        ("bad text", OTHER + b"\x61\xff"),
        ("shared value that contains itself", OTHER + b"\xd8\x1c\x81\xd8\x1d\x00"),
        ("references to text", OTHER + b"\xd9\x01\x00\x82\x63aaa\xd8\x19\x00"),
        ("regular expression", OTHER + b"\xd8\x23\x64(a+)"),
        ("email", OTHER + b"\xd8\x24\x61a"),
        ("address", OTHER + b"\xd9\x01\x04\x44\x01\x02\x03\x04"),
        ("rational", OTHER + b"\xd8\x1e\x82\x01\x00"),
        ("huge binary fraction", OTHER + b"\xc5\x82\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("huge decimal fraction", OTHER + b"\xc4\x82\x1b\x7f\xff\xff\xff\xff\xff\xff\xff\x01"),
        ("decimal fraction of one", OTHER + b"\xc4\x81\x01"),
        ("huge number", OTHER + b"\xc2\x51" + b"\xff" * 17),
        ("unknown tag", OTHER + b"\xd9\xff\xf0\x00"),
        ("reserved", OTHER + b"\x1c"),
        ("break", b"\xff"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_items_are_malformed(name: str, item: bytes) -> None:
    # THREATS 104
    decoder = cbor_decoder(schema(a=pa.int8()), "s")
    assert values(decoder, item, cbor2.dumps({"a": 1})) == [MALFORMED, 1], name


def test_reasons_do_not_quote_the_item() -> None:
    items = [OTHER + b"\xd8\x23\x66secret", b"\xa1\x66secret", cbor2.dumps({"a": "secret"})]
    found = reasons(cbor_decoder(schema(a=pa.int8()), "s"), items)
    assert len(found) == 3 and "secret" not in str(found)
