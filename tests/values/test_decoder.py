from __future__ import annotations

import enum
import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import cbor2
import msgspec
import pytest

from tests.values import written
from weirpool.errors import Mismatch
from weirpool.schema.converter import Converter
from weirpool.schema.formats import CBOR, JSON, MSGPACK, Format, format_of

RIVER_JSON = format_of("application/vnd.river+json")
RIVER = format_of("application/vnd.river+msgpack")
assert RIVER_JSON is not None and RIVER is not None
BINARY = [MSGPACK, CBOR, RIVER]
TEXT = [JSON, RIVER_JSON]
ENCODE: dict[Format, Callable[[Any], bytes]] = {
    MSGPACK: msgspec.msgpack.encode,
    RIVER: msgspec.msgpack.encode,
    CBOR: cbor2.dumps,
    JSON: msgspec.json.encode,
    RIVER_JSON: msgspec.json.encode,
}
TS = 1795810805447
LAST = "2024-12-31T23:59:59.9999999Z"
DAY = datetime(2024, 12, 31, 23, 59, 59, 999999, UTC)


def read(form: Format, wanted: Any, value: Any) -> Any:
    return Converter(wanted).decode(form, ENCODE[form](value))


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Inner(msgspec.Struct):
    ts: int
    at: datetime | None = None


class Point(NamedTuple):
    x: int
    y: float


class Typed(TypedDict, total=False):
    ts: int


class Tick(msgspec.Struct, rename="camel"):
    event_time: int
    inner: Inner | None = None
    many: list[Inner] = []
    by_id: dict[int, int] = {}
    level: Level = Level.LOW
    kind: Literal[1, 2, "a"] = 1
    points: tuple[Point, ...] = ()
    typed: Typed = {}
    either: int | float = 0
    text: int | str | None = None
    price: Decimal = Decimal(0)
    limited: Annotated[int, msgspec.Meta(ge=0, le=10)] = 0


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    lives: float


class Row(msgspec.Struct, array_like=True, tag=7):
    ts: int
    next: Row | None = None


@pytest.mark.parametrize("form", BINARY)
@pytest.mark.parametrize("number", [float(TS), -float(TS), 0.0, -0.0, 2.0**53, -(2.0**53), 5.0])
def test_floats_without_a_fraction_are_integers(form: Format, number: float) -> None:
    found = read(form, int, number)
    assert found == number and type(found) is int
    assert read(form, list[int | None], [number, None, 1]) == [int(number), None, 1]
    assert read(form, Tick, {"eventTime": number}).event_time == number


@pytest.mark.parametrize("form", BINARY)
@pytest.mark.parametrize("number", [1.5, -0.5, math.nan, math.inf, -math.inf, 2.0**60, 2.0**53 + 2])
def test_other_floats_are_no_integers(form: Format, number: float) -> None:
    with pytest.raises(Mismatch, match="Expected `int`, got `float`"):
        read(form, int, number)
    with pytest.raises(Mismatch) as caught:
        read(form, Tick, {"eventTime": 3.0, "many": [{"ts": number}]})
    assert caught.value.problems == [("/many/0/ts", "Expected `int`, got `float`")]


@pytest.mark.parametrize("form", BINARY)
def test_whole_floats_are_integers_wherever_a_type_has_some(form: Format) -> None:
    found = read(
        form,
        Tick,
        {
            "eventTime": 1.0,
            "inner": {"ts": 2.0, "more": 3.0},
            "many": [{"ts": 4.0}],
            "byId": {5.0: 6.0},
            "level": 2.0,
            "kind": 2.0,
            "points": [[7.0, 8.0]],
            "typed": {"ts": 9.0},
            "either": 10.0,
            "text": 11.0,
            "price": 12.5,
            "limited": 10.0,
        },
    )
    assert found == Tick(
        1, Inner(2), [Inner(4)], {5: 6}, Level.HIGH, 2, (Point(7, 8.0),), {"ts": 9}, 10.0, 11, Decimal("12.5"), 10
    )
    assert type(found.either) is float and type(found.points[0].y) is float and type(found.kind) is int
    with pytest.raises(Mismatch, match="<= 10"):
        read(form, Tick, {"eventTime": 1.0, "limited": 11.0})


@pytest.mark.parametrize("form", BINARY)
def test_unions_and_recursive_types_have_whole_floats(form: Format) -> None:
    assert read(form, list[Cat | Dog], [{"type": "cat", "lives": 9.0}, {"type": "dog", "lives": 1.0}]) == [
        Cat(9),
        Dog(1.0),
    ]
    assert read(form, Row, [7, 1.0, [7, 2.0, None]]) == Row(1, Row(2))
    assert read(form, dict[str, int] | list[int] | None, {"a": 1.0}) == {"a": 1}
    assert read(form, dict[str, int] | list[int] | None, [1.0]) == [1]


@pytest.mark.parametrize("form", BINARY)
def test_an_open_type_keeps_floats(form: Format) -> None:
    assert type(read(form, Any, 3.0)) is float
    assert repr(read(form, dict[str, Any], {"a": [3.0]})) == "{'a': [3.0]}"


@pytest.mark.parametrize("form", TEXT)
@pytest.mark.parametrize("text", [b"3.0", b"1e3"])
def test_json_tells_integers_from_other_numbers(form: Format, text: bytes) -> None:
    with pytest.raises(Mismatch, match="Expected `int`, got `float`"):
        Converter(int).decode(form, text)


@pytest.mark.parametrize("form", [*BINARY, *TEXT])
def test_texts_are_no_numbers(form: Format) -> None:
    for wanted, value in ((int, "1"), (float, "NaN"), (int, "1.0"), (bool, 1.0), (str, 1.0)):
        with pytest.raises(Mismatch):
            read(form, wanted, value)


@pytest.mark.parametrize("form", [*BINARY, *TEXT])
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (LAST, DAY),
        ("2024-12-31T23:59:59.99999949Z", DAY),
        ("2024-12-31T23:59:59.999999999999999999+00:00", DAY),
        ("9999-12-31T23:59:59.9999999Z", datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
        ("1969-12-31T23:59:59.9999999Z", datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
        ("2024-12-31T23:59:59.9999999", DAY.replace(tzinfo=None)),
        ("2024-12-31T23:59:59.5+00", datetime(2024, 12, 31, 23, 59, 59, 500000, UTC)),
        ("2024-12-31 23:59:59+05", datetime(2024, 12, 31, 18, 59, 59, 0, UTC)),
        ("2024-12-31T23:59:59.9999999+01:00[Europe/Paris]", DAY - timedelta(hours=1)),
        ("2024-12-31T23:59:59Z[UTC]", DAY.replace(microsecond=0)),
    ],
)
def test_times_lose_digits_beyond_the_microsecond(form: Format, text: str, wanted: datetime) -> None:
    assert read(form, datetime, text) == wanted
    assert read(form, Inner, {"ts": 1, "at": text}).at == wanted
    # A text that looks like a time is not changed.
    assert read(form, tuple[datetime, str], [text, text]) == (wanted, text)


@pytest.mark.parametrize("form", [*BINARY, *TEXT])
@pytest.mark.parametrize("text", ["2024-12-31T23:59:59[Europe/Paris]", "2024-12-31T23:59Z", "2024-13-31T00:00:00Z", ""])
def test_other_texts_are_no_times(form: Format, text: str) -> None:
    # A zone without an offset does not say which of two instants it is.
    with pytest.raises(Mismatch):
        read(form, datetime, text)


@pytest.mark.parametrize("form", [*BINARY, *TEXT])
def test_times_of_day_and_durations_lose_digits_too(form: Format) -> None:
    assert read(form, time, "23:59:59.9999999") == time(23, 59, 59, 999999)
    assert read(form, timedelta, "PT1.9999999S") == timedelta(seconds=1, microseconds=999999)
    assert read(form, timedelta, "-PT0.9999999S") == -timedelta(microseconds=999999)


@pytest.mark.parametrize("form", [*BINARY, *TEXT])
def test_times_of_jackson_are_arrays(form: Format) -> None:
    assert read(form, date, [2024, 12, 31]) == date(2024, 12, 31)
    assert read(form, datetime, [2024, 12, 31, 23, 59]) == datetime(2024, 12, 31, 23, 59)
    assert read(form, datetime | None, [2024, 12, 31, 23, 59, 59, 999999999]) == DAY.replace(tzinfo=None)
    assert read(form, time, [23, 59, 59, 999999999]) == time(23, 59, 59, 999999)
    assert read(form, datetime | list[int], [2024, 12, 31, 23, 59]) == [2024, 12, 31, 23, 59]
    for wanted, value in (
        (date, [2024, 13, 1]),
        (date, [2024, 1]),
        (datetime, [2024, 1, 1]),
        (datetime, [2024, 1, 1, 0, 0, 0, 0, 0]),
        (time, [True, 1]),
        (datetime, [2024, 1, 1, 0, 1 << 62]),
    ):
        with pytest.raises(Mismatch):
            read(form, wanted, value)


def timestamp(seconds: int, nanoseconds: int) -> bytes:
    return b"\xc7\x0c\xff" + struct.pack(">Iq", nanoseconds, seconds)


@pytest.mark.parametrize("form", [MSGPACK, RIVER])
@pytest.mark.parametrize("wanted", [datetime, Any])
def test_timestamps_of_messagepack_lose_nanoseconds(form: Format, wanted: Any) -> None:
    decode = Converter(wanted).decode
    short = b"\xd7\xff" + (999_999_999 << 34 | 1735689599).to_bytes(8, "big")
    for data, expected in (
        (short, DAY),
        (timestamp(1735689599, 999_999_999), DAY),
        (timestamp(253402300799, 999_999_999), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)),
        (timestamp(-1, 999_999_999), datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)),
    ):
        assert decode(form, data) == expected
    for data in (timestamp(253402300800, 1), timestamp(-(1 << 63), 0), timestamp(0, 1_000_000_000), b"\xd4\xff\xff"):
        with pytest.raises(Mismatch):
            decode(form, data)


@pytest.mark.parametrize("form", [*BINARY, *TEXT])
def test_fields_that_no_type_has_are_not_checked_when_data_is_read_again(form: Format) -> None:
    again: Any = {"at": LAST, "more": None}
    if form in TEXT:
        data = ENCODE[form](again).replace(b"null", b'["\xff", 1e999, "\\ud800"]')
    elif form is CBOR:
        # Bad text, a regular expression, a shared value that contains itself, and a key that is an array.
        data = ENCODE[form](again).replace(b"\xf6", b"\x84\x61\xff\xd8\x23\x61a\xd8\x1c\x81\xd8\x1d\x00\xa1\x80\x01")
    else:
        data = ENCODE[form](again).replace(b"\xc0", b"\x93\xa1\xff\xd4\x01\x01\x81\x90\x01")
    assert Converter(TypedDict("Only", {"at": datetime})).decode(form, data) == {"at": DAY}


@pytest.mark.parametrize("form", [MSGPACK, CBOR])
def test_undefined_is_null(form: Format) -> None:
    data = {MSGPACK: b"\x82\xa1a\xd4\x00\x00\xa1b\x92\xd4\x00\x00\x01", CBOR: b"\xa2\x61a\xf7\x61b\x82\xf7\x01"}[form]
    assert Converter(Any).decode(form, data) == {"a": None, "b": [None, 1]}
    assert Converter(dict[str, list[int | None] | Inner | None]).decode(form, data) == {"a": None, "b": [None, 1]}
    with pytest.raises(Mismatch, match="Expected `int`, got `null`"):
        Converter(TypedDict("Only", {"a": int})).decode(form, data)


def test_extensions_that_a_type_asks_for_stay_as_they_are() -> None:
    ext = msgspec.msgpack.Ext(0, b"\x00")
    assert Converter(dict[str, msgspec.msgpack.Ext | int]).decode(
        MSGPACK, msgspec.msgpack.encode({"a": ext, "b": 1.0})
    ) == {"a": ext, "b": 1}
    assert Converter(Any).decode(MSGPACK, msgspec.msgpack.encode(msgspec.msgpack.Ext(5, b"x"))).code == 5


def test_river_has_integers_in_extension_0() -> None:
    assert RIVER is not None
    assert Converter(int | None).decode(RIVER, b"\xd4\x00\x00") == 0
    big = RIVER.encode({"a": 2**70, "b": 3})
    assert Converter(dict[str, int]).decode(RIVER, big) == {"a": 2**70, "b": 3}


NULL = object()
EXPECTED = {
    "whole": (int, TS),
    "negative": (int, -TS),
    "largest": (int, 2**53 - 1),
    "negative zero": (int, 0),
    "bytes": (bytes, b"\x01\x02\x03"),
    "clamped bytes": (bytes, b"\x01\x02"),
    "undefined": (str | None, None),
    "date": (datetime, datetime(2024, 12, 31, 23, 59, 59, 999000, UTC)),
    "date before 1970": (datetime, datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)),
    "set": (set[int], {1, 2}),
    "URL": (str, "http://a.b/c"),
    "Int8Array": (list[int], [-1, 2]),
    "Uint16Array": (list[int], [1, 258]),
    "Float64Array": (list[float], [1.5]),
    "BigInt64Array": (list[int], [-5]),
    "2^65": (int, 2**65),
}
REFUSED = {
    "fraction": int,
    "too large": int,
    "NaN": int,
    "lone surrogate": str,
    "invalid date": datetime,
    "map with an object as key": dict[str, int],
    "regular expression": str,
}
WRITTEN = [
    pytest.param(form, name, bytes.fromhex(data), id=f"{library}: {name}")
    for form, libraries in ((MSGPACK, written.MSGPACK), (CBOR, written.CBOR))
    for library, items in libraries.items()
    for name, data in items.items()
]


@pytest.mark.parametrize(("form", "name", "data"), WRITTEN)
def test_data_of_other_libraries_is_read(form: Format, name: str, data: bytes) -> None:
    if name in EXPECTED:
        wanted, value = EXPECTED[name]
        assert Converter(dict[str, wanted]).decode(form, data) == {"v": value}  # type: ignore[valid-type]
    elif name == "nested":
        found = Converter(dict[str, Inner]).decode(form, data)
        assert found == {"v": Inner(TS)}
    else:
        with pytest.raises(Mismatch):
            Converter(dict[str, REFUSED[name]]).decode(form, data)  # type: ignore[misc]
    # Whatever it is, it costs nothing where nobody asks for it.
    assert Converter(Typed).decode(form, data) == {}


def test_identifiers_of_python_are_what_a_type_wants() -> None:
    value = UUID("123e4567-e89b-12d3-a456-426614174000")
    data = cbor2.dumps({"v": value})
    for wanted, expected in ((UUID, value), (bytes, value.bytes), (str, str(value)), (Any, value)):
        assert Converter(dict[str, wanted]).decode(CBOR, data) == {"v": expected}  # type: ignore[valid-type]
