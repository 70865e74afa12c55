from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.values.decoder import Decoder
from weirpool.wire.river.encodings import encodings
from weirpool.wire.river.values import decode_value, encode_value, from_json, to_json

CODECS = {mime.rpartition("+")[2]: encoding for mime, encoding in encodings().items()}
BIG = 2**70


def decode(name: str, data: bytes, wanted: Any = Any) -> Any:
    return Decoder(CODECS[name][2], wanted).decode(data)


def encode(name: str, value: Any) -> bytes:
    return CODECS[name][1](value)


class Colour(Enum):
    RED = "red"


class Plain(msgspec.Struct):
    n: int
    text: str
    inner: Plain | None = None
    colours: list[Colour] = []
    ways: dict[str, Literal["a"]] = {}
    pair: tuple[int, float] = (1, 1.5)


class Octets(msgspec.Struct):
    data: bytes
    plain: Plain | None = None


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (Plain(1, "x", Plain(2, "y"), [Colour.RED], {"k": "a"}), Plain),
        (Plain(BIG, "x"), Plain),
        (Plain(-(2**53), "x"), Plain),
        (Plain(1, "1234567890123456"), Plain),
        (Octets(b"\xff\x00", Plain(BIG, "x")), Octets),
        ([b"a", BIG, None, True, 1.5, {"a": b""}], Any),
        (b"\xcf", bytes),
        (BIG, int),
    ],
)
def test_values_round_trip_in_the_reference_s_encoding(name: str, value: Any, wanted: Any) -> None:
    data = encode(name, value)
    assert decode(name, data, wanted) == value
    built = msgspec.to_builtins(value, builtin_types=(bytes,))
    assert data == encode_value(built, name)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.parametrize("name", CODECS)
@given(value=VALUES)
def test_decoder_agrees_with_the_codec(name: str, value: Any) -> None:
    data = encode_value(value, name)
    decoded = decode(name, data)
    assert decoded == decode_value(data, name)
    assert decode(name, encode(name, decoded)) == decoded


# Numbers of JavaScript, with the digits that it writes, and what they are in MessagePack.
NUMBERS = {
    b"9007199254740991": 9007199254740991,
    b"9007199254740992": 9007199254740992.0,
    b"-9007199254740992": -9007199254740992.0,
    b"9007199254740994": 9007199254740994.0,
    b"10000000000000000": 1e16,
    b"1152921504606847000": float(2**60),
    b"123456789012345680000": 1.2345678901234568e20,
    b"-123456789012345000000": -1.23456789012345e20,
    b"999999999999999900000": 9.999999999999999e20,
    b"0.1": 0.1,
    b"1.5": 1.5,
}
# Integers with other digits: no number of JavaScript.
INTEGERS = [2**53 + 1, 2**60, -(2**63), 2**64 - 1, 10**21, 2**70]


class Mixed(msgspec.Struct):
    id: int
    value: Any


@pytest.mark.parametrize("wanted", [Any, list, list[Any], object])
def test_numbers_of_javascript_stay_numbers(wanted: Any) -> None:
    data = b"[%s]" % b",".join(NUMBERS)
    found = decode("json", data, wanted)
    assert found == list(NUMBERS.values())
    assert [type(number) for number in found] == [type(number) for number in NUMBERS.values()]
    assert encode("json", found) == data == encode_value(found, "json")
    assert decode_value(data, "json") == found
    # MessagePack has floats, as the reference sends them.
    packed = encode("msgpack", found)
    assert packed == msgspec.msgpack.encode(found) == from_json(data, "msgpack")
    assert decode("msgpack", packed, wanted) == found
    assert json.loads(to_json(packed, "msgpack")) == json.loads(data)


@pytest.mark.parametrize("number", INTEGERS)
def test_big_integers_stay_integers(number: int) -> None:
    wrapped = b'{"n":{"$b":"%d"}}' % number
    for data in (wrapped, b'{"n":%d}' % number):
        found = decode("json", data)
        assert found == {"n": number} and type(found["n"]) is int
        assert encode("json", found) == wrapped
    assert decode_value(from_json(wrapped, "msgpack"), "msgpack") == {"n": number}


@pytest.mark.parametrize("digits", [b"9007199254740992", b"1152921504606847000", b"123456789012345680000"])
def test_integer_types_are_exact(digits: bytes) -> None:
    number = int(digits)
    found = decode("json", digits, int)
    assert found == number and type(found) is int
    mixed = decode("json", b'{"id":%s,"value":null}' % digits, Mixed)
    assert mixed.id == number and type(mixed.id) is int
    mixed = decode("json", b'{"id":%s,"value":[%s]}' % (digits, digits), Mixed)
    assert mixed.id == number and type(mixed.id) is int and type(mixed.value[0]) is float
    wrapped = decode("json", b'{"id":1,"value":[%s,{"$b":"%s"}]}' % (digits, digits), Mixed)
    assert [type(each) for each in wrapped.value] == [float, int]
    for other in (b"1e16", b"10000000000000000.0"):
        with pytest.raises(msgspec.ValidationError):
            decode("json", b'{"id":%s,"value":[%s]}' % (other, digits), Mixed)
    # Python's integers are exact, so they are sent as big ones.
    assert encode("json", number) == b'{"$b":"%s"}' % digits
    assert encode("json", float(number)) == digits


@pytest.mark.parametrize("data", [b"[9007199254740992", b"[09007199254740992]", b"[9007199254740992,NaN]"])
def test_malformed_data_with_large_numbers_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode("json", data)


def test_object_similar_to_a_wrapper_is_unchanged() -> None:
    for data in (b'{"$t":1}', b'{"$t":"*"}', b'{"$b":"x"}', b'{"$t":"","a":1}'):
        assert decode("json", data) == msgspec.json.decode(data)


@pytest.mark.parametrize(
    ("name", "data", "wanted"),
    [
        ("json", b'{"data":{"$t":"*"}}', Octets),
        ("json", b'{"n":{"$b":"1.5"},"text":""}', Plain),
        ("msgpack", msgspec.msgpack.encode({"data": "text"}), Octets),
        ("msgpack", msgspec.msgpack.encode(msgspec.msgpack.Ext(1, b"")), int),
        ("msgpack", msgspec.msgpack.encode(msgspec.msgpack.Ext(0, msgspec.msgpack.encode("x"))), int),
    ],
)
def test_values_of_other_types_are_refused(name: str, data: bytes, wanted: Any) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode(name, data, wanted)


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize(
    ("time", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), "2026-01-02T03:04:05.000006Z"),
        (datetime(1900, 1, 2, tzinfo=UTC), "1900-01-02T00:00:00Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=1))), "2026-01-02T03:04:05+01:00"),
    ],
)
def test_times_are_text_as_their_schema_says(name: str, time: datetime, text: str) -> None:
    # A JavaScript peer would get a Date for MessagePack's timestamps.
    data = encode(name, {"at": time})
    assert decode(name, data) == {"at": text}
    assert decode(name, data, dict[str, datetime]) == {"at": time}
