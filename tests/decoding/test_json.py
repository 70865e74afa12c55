from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from weirpool.decoding.json import json_decoder

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
     b'{"a":1,}', b"\xef\xbb\xbf", b'{"z":"\n"}', b'{"z":\xff}', b'{"a":1', b"\x00"],
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


@pytest.mark.parametrize("name", ["NaN", "Infinity", "+Infinity", "-Infinity", "+INF", "-INF"])
def test_bare_names_of_numbers_are_numbers_unless_they_are_refused(name: str) -> None:
    item = f'{{"t":"NaN, Infinity","a":{name},"b":[{name},1.5],"n":5}}'.encode()
    fields = schema(a=pa.float64(), b=pa.list_(pa.float32()), t=pa.string(), n=pa.int8())
    [row], malformed = decode(json_decoder(fields, "s"), item)
    number = float(name.replace("INF", "Infinity"))
    assert not malformed and repr([*row.values()]) == repr([number, [number, 1.5], "NaN, Infinity", 5])
    strict = json_decoder(schema(n=pa.int8()), "s", named_numbers=False)
    assert values(strict, item, b'{"n":5}') == [MALFORMED, 5]
    assert values(json_decoder(schema(n=pa.int8()), "s"), item) == [5]


@pytest.mark.parametrize(
    "kind",
    [pa.int64(), pa.string(), pa.bool_(), pa.binary(), pa.date32(), UTC_TIME, pa.timestamp("us"), pa.decimal128(9, 2),
     pa.list_(pa.string()), pa.struct([("a", pa.float64())]), pa.map_(pa.string(), pa.float64()), pa.duration("us"),
     pa.time64("us")],
    ids=str,
)  # fmt: skip
def test_bare_names_of_numbers_are_floats_alone(kind: pa.DataType) -> None:
    assert only(kind, "NaN", "-Infinity") == [MALFORMED] * 2


def test_digits_are_kept_beside_bare_names() -> None:
    item = b'{"x":NaN,"a":12345678901234567890.123456789,"t":1735689599.999999900,"u":1735689599.5,"f":0.1,"g":1e400}'
    fields = schema(a=pa.decimal128(38, 9), t=UTC_TIME, u=pa.timestamp("us"), f=pa.float64())
    assert decode(json_decoder(fields, "s"), item) == (
        [
            {
                "a": Decimal("12345678901234567890.123456789"),
                "t": datetime(2024, 12, 31, 23, 59, 59, 999_999, UTC),
                "u": datetime(2024, 12, 31, 23, 59, 59, 500_000),
                "f": 0.1,
            }
        ],
        {},
    )
    assert values(json_decoder(schema(g=pa.float64()), "s"), item) == [MALFORMED]
    huge = b'{"x":NaN,"t":1e999999999}'
    assert values(json_decoder(schema(t=UTC_TIME), "s"), huge, huge.replace(b"NaN", b"1")) == [MALFORMED] * 2


def test_a_byte_order_mark_is_ignored() -> None:
    assert values(json_decoder(schema(a=pa.int8()), "s"), b'\xef\xbb\xbf{"a":5}', b"\xef\xbb\xbf") == [5, MALFORMED]


def test_lone_surrogates_cost_only_what_has_them() -> None:
    # THREATS 93
    item = b'{"a":5,"b":"\\ud800","\\udc00":1}'
    assert values(json_decoder(schema(a=pa.int8()), "s"), item) == [5]
    assert values(json_decoder(schema(b=pa.string()), "s"), item) == [MALFORMED]


LAST = datetime(2024, 12, 31, 23, 59, 59, 999_999, UTC)


def test_times_of_jackson_are_arrays_and_decimals() -> None:
    assert only(pa.date32(), "[2024,12,31]", "[2024,13,1]", "[2024,1]") == [date(2024, 12, 31), MALFORMED, MALFORMED]
    texts = ["[2024,12,31,23,59,59,999999999]", "1735689599.999999900", '"2024-12-31T23:59:59.999999900Z"']
    assert only(UTC_TIME, *texts) == [LAST] * 3
    assert only(pa.timestamp("us"), *texts[:2]) == [LAST.replace(tzinfo=None)] * 2
    assert only(UTC_TIME, "[2024,12,31,0,0]", "[2024,12,31]") == [datetime(2024, 12, 31, tzinfo=UTC), MALFORMED]
    assert only(pa.time64("us"), "[23,59]", '"23:59:59.9999999"') == [time(23, 59), time(23, 59, 59, 999_999)]


def test_numbers_that_are_times_lose_digits_too() -> None:
    assert only(UTC_TIME, "1735689599.9999999", "1735689599.9999990", "1735689599.99999949e0") == [LAST] * 3
    milliseconds = [b'{"a":1735689599999.9998}', b'{"a":1735689599999.999}', b'{"a":1735689599999.999999999}']
    assert values(json_decoder(schema(a=UTC_TIME), "ms"), *milliseconds) == [LAST] * 3


def test_offsets_have_other_forms() -> None:
    texts = ['"2024-12-31T23:59:59.9999999+00"', '"2025-01-01T00:59:59.9999999+01:00[Europe/Paris]"']
    assert only(UTC_TIME, *texts) == [LAST] * 2
    assert only(UTC_TIME, '"2024-12-31T23:59:59[Europe/Paris]"') == [MALFORMED]


def test_structs_are_arrays_if_they_are_declared_so() -> None:
    fields = schema(a=pa.int8(), b=pa.struct([("x", pa.string()), ("y", UTC_TIME)]), c=pa.float64())
    decoder = json_decoder(fields, "s", arrays=True)
    items = [b'[1,["x","2024-12-31T23:59:59.9999999Z"],NaN,"more"]', b"[2]", b"[]", b'{"a":1}', b"null"]
    rows, malformed = decode(decoder, *items)
    assert [row["a"] for row in rows] == [1, 2, None, None, None] and [*malformed] == [3, 4]
    assert rows[0]["b"] == {"x": "x", "y": LAST}
