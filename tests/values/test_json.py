from __future__ import annotations

import math
from datetime import datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypedDict

import msgspec
import pytest

from weirpool.values.decoder import Decoder
from weirpool.values.forms import TIME_FORMS
from weirpool.values.json import JsonReader, without_lone_surrogates

NAMED = JsonReader(named_numbers=True)
LAST = "2024-12-31T23:59:59.9999999Z"


class Row(TypedDict, total=False):
    a: float
    text: str
    price: Decimal
    count: int
    texts: dict[str, str]
    at: datetime


class Pair(NamedTuple):
    at: datetime
    price: Decimal


def decode(text: str, reader: JsonReader = NAMED) -> Any:
    return Decoder(reader, Row).decode(text.encode())


@pytest.mark.parametrize(
    ("name", "number"),
    [("NaN", math.nan), ("Infinity", math.inf), ("+Infinity", math.inf), ("-Infinity", -math.inf),
     ("+INF", math.inf), ("-INF", -math.inf)],
)  # fmt: skip
def test_named_numbers_are_floats(name: str, number: float) -> None:
    for text in (f'{{"a":{name}}}', f'{{"a": {name}\n, "x":[{name}, {{"y":{name}}}]}}', f'{{"x":{name},"a":{name}}}'):
        assert repr(decode(text)) == repr({"a": number})
    assert decode(f'{{"x":{name},"count":5}}') == {"count": 5}
    for field in ("count", "price", "text"):
        with pytest.raises(msgspec.ValidationError):
            decode(f'{{"{field}":{name}}}')
    with pytest.raises(msgspec.DecodeError):
        decode(f'{{"a":{name}}}', JsonReader())


@pytest.mark.parametrize(
    "text",
    ['{"a":INF}', '{"a":nan}', '{"a":-NaN}', '{"a":NaNa}', '{"a":1NaN}', '{"a":Infinity1}', "{NaN:1}", '{"a" NaN}',
     '{"a":+1}', '{"a":"NaN"}', '{"a":"Infinity"}', '{"a":NaN', '{"a":NaN}}', '{"a":NaN NaN}', '{"a":- Infinity}',
     '{"a":"x\\"NaN}'],
)  # fmt: skip
def test_other_names_are_no_numbers(text: str) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(text)


def test_texts_with_names_of_numbers_stay_texts() -> None:
    text = 'NaN, Infinity] "NaN" -INF'
    data = msgspec.json.encode({"text": text, "texts": {"NaN": "NaN"}}).decode()
    assert decode(data[:-1] + ',"a":NaN}') | {"a": 0} == {"text": text, "texts": {"NaN": "NaN"}, "a": 0}


def test_digits_of_decimals_are_kept_when_data_is_read_again() -> None:
    digits = "12345678901234567890.123456789012345678"
    assert decode(f'{{"a":NaN,"price":{digits}}}')["price"] == Decimal(digits)
    for wanted in (tuple[datetime, Decimal], tuple[datetime, Decimal | int], Pair):
        found = Decoder(JsonReader(), wanted).decode(f'["{LAST}",{digits}]'.encode())
        assert tuple(found)[1] == Decimal(digits)


def test_other_numbers_are_the_same_when_data_is_read_again() -> None:
    found = Decoder(JsonReader(), tuple[datetime, Any, int, float, float | None]).decode(
        f'["{LAST}",[1.5,{{"a":-1e3}},2],7,0.1,1e-7]'.encode()
    )
    assert repr(found[1:]) == "([1.5, {'a': -1000.0}, 2], 7, 0.1, 1e-07)"


def test_numbers_that_are_too_large_are_never_infinite() -> None:
    for text in ('{"a":1e400}', '{"a":1e400,"x":NaN}', '{"a":-1e400,"x":"12:00:00.1234567"}'):
        with pytest.raises(msgspec.ValidationError, match="out of range"):
            decode(text)


def test_a_byte_order_mark_is_ignored() -> None:
    assert decode('\ufeff{"count":5}') == {"count": 5}
    for text in ("\ufeff", '\ufeff\ufeff{"count":5}', '{"count":5}\ufeff', ' \ufeff{"count":5}'):
        with pytest.raises(msgspec.DecodeError):
            decode(text)


@pytest.mark.parametrize("text", ["\\ud800", "a\\udc00b", "\\ud83d\\ud83d\\ude00", "\\\\\\ud800"])
def test_lone_surrogates_count_only_where_they_are_read(text: str) -> None:
    # THREATS 93
    assert decode(f'{{"x":"{text}","{text}":1,"count":5}}') == {"count": 5}
    with pytest.raises(ValueError, match=r"."):
        decode(f'{{"text":"{text}"}}')


def test_escapes_that_are_no_lone_surrogates_stay() -> None:
    for data in (b'"\\ud83d\\ude00"', b'"\\\\ud800"', b'"\\u00e9"', b'"x"'):
        assert without_lone_surrogates(data, b"?") == data
    assert without_lone_surrogates(b'"\\ud800\\udfff\\ud800"', b"?") == b'"\\ud800\\udfff?"'


def test_forms_are_those_that_are_given() -> None:
    reader = JsonReader({**TIME_FORMS})
    assert Decoder(reader, datetime).decode(f'"{LAST}"'.encode()).microsecond == 999_999


def test_broken_data_takes_linear_time() -> None:
    # If the search began again at each quote, this would take hours.
    for text in ('{"a":NaN,"' + '\\"' * 1_000_000, '{"a":' + "NaN " * 500_000, '{"x":"' + "\\ud800" * 200_000):
        with pytest.raises(msgspec.DecodeError):
            decode(text)
