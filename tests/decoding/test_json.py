from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from penstock.decoding.json import json_decoder

from .decode import decode, schema, values

UTC_TIME = pa.timestamp("us", tz="UTC")
MALFORMED = "malformed"


def only(kind: pa.DataType, *texts: str, unit: str = "s") -> list[Any]:
    """Return the values of a field in objects."""
    return values(json_decoder(schema(a=kind), unit), *[f'{{"a":{text}}}'.encode() for text in texts])


def test_fields_may_be_missing_null_or_unknown() -> None:
    decoder = json_decoder(schema(a=pa.int32(), b=pa.string()), "s")
    rows, malformed = decode(decoder, b'{"b":"x","z":[{}]}', b'{"a":null}', b" {} \n", b'{"A":1}')
    assert [tuple(row.values()) for row in rows] == [(None, "x"), (None, None), (None, None), (None, None)]
    assert not malformed


@pytest.mark.parametrize(
    "item",
    [b"", b"null", b"[]", b'[{"a":1}]', b"1", b"{", b'{"a":1}{}', b'{"a":1}x', b"{'a':1}", b'{"a":NaN}', b'{"a":01}',
     b'{"a":1,}', b"\xef\xbb\xbf{}", b'{"z":"\n"}', b'{"z":\xff}', b'{"a":1', b"\x00"],
)  # fmt: skip
def test_what_is_not_one_object_is_malformed(item: bytes) -> None:
    assert values(json_decoder(schema(a=pa.int32()), "s"), item, b'{"a":1}') == [MALFORMED, 1]


def test_two_halves_never_make_one_item() -> None:
    decoder = json_decoder(schema(a=pa.string()), "s")
    assert values(decoder, b'{"a":"', b'"}', b'{"a":"x"}{"a":"y"}') == [MALFORMED] * 3


def test_integers_never_wrap_and_are_never_rounded() -> None:
    assert only(pa.int8(), "127", "-128", "128", "-129", "1.0", '"1"', "true", "1e0") == [127, -128] + [MALFORMED] * 6
    largest = (1 << 63) - 1
    assert only(pa.int64(), str(largest), str(-largest - 1), str(largest + 1), "1" * 400) == [
        largest,
        -largest - 1,
        MALFORMED,
        MALFORMED,
    ]


def test_floats_never_become_infinite() -> None:
    assert only(pa.float64(), "1", "1.5", "1e400", '"NaN"') == [1.0, 1.5, MALFORMED, MALFORMED]
    assert only(pa.float32(), "1.5", "1e39", "-1e39") == [1.5, MALFORMED, MALFORMED]


def test_text_is_not_made_of_other_values() -> None:
    assert only(pa.string(), '"a\\u00e9"', "1", "{}", '"\\ud800"') == ["aé", MALFORMED, MALFORMED, MALFORMED]
    assert values(json_decoder(schema(a=pa.string()), "s"), b'{"a":"\xff"}') == [MALFORMED]


def test_other_types() -> None:
    assert only(pa.bool_(), "true", "false", "0") == [True, False, MALFORMED]
    assert only(pa.binary(), '"aGk="', '"?"') == [b"hi", MALFORMED]
    assert only(pa.date32(), '"2020-02-29"', '"2021-02-29"', "5") == [date(2020, 2, 29), MALFORMED, MALFORMED]
    assert only(pa.decimal128(4, 1), "1.25", '"1.2"', "1000", '"NaN"', '"x"') == [
        Decimal("1.3"),
        Decimal("1.2"),
        MALFORMED,
        MALFORMED,
        MALFORMED,
    ]


def test_times_have_an_offset_or_are_utc() -> None:
    time = datetime(2020, 1, 1, tzinfo=UTC)
    texts = ['"2020-01-01T00:00:00Z"', '"2020-01-01T01:00:00+01:00"', '"2020-01-01 00:00:00"', "1577836800"]
    assert only(UTC_TIME, *texts) == [time] * 4
    assert only(UTC_TIME, "1577836800000", unit="ms") == [time]
    assert only(UTC_TIME, '"2020-13-01T00:00:00Z"', "1e300", "-1e300", "1577836800000", '"x"') == [MALFORMED] * 5


def test_local_times_have_no_offset() -> None:
    texts = ['"2020-01-01T00:00:00"', '"2020-01-01T00:00:00Z"']
    assert only(pa.timestamp("us"), *texts) == [datetime(2020, 1, 1), MALFORMED]


def test_nested_values_are_checked_too() -> None:
    kind = pa.list_(pa.struct([("x", pa.map_(pa.string(), pa.int8()))]))
    assert only(kind, '[{"x":{"k":1}},null,{}]', '[{"x":{"k":1000}}]', "{}") == [
        [{"x": [("k", 1)]}, None, {"x": None}],
        MALFORMED,
        MALFORMED,
    ]


def test_the_last_of_equal_names_counts() -> None:
    assert only(pa.int8(), '1,"a":2') == [2]


def test_deep_data_is_malformed_where_nobody_reads_it() -> None:
    # THREATS 64
    deep = b'{"z":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert values(json_decoder(schema(a=pa.int8()), "s"), deep, b'{"a":1}') == [MALFORMED, 1]
