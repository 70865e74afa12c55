from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypedDict

import cbor2
import msgspec
import pytest

from weirpool.values.cbor import CborReader, encode
from weirpool.values.decoder import Decoder

read = Decoder(CborReader()).decode
TIME = datetime(2013, 3, 21, 20, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, "x", b"y", None, True]},
        "\x1bWeirpool",
        1 << 70,
        -(1 << 70),
        Decimal("104.11"),
        Decimal(10**37 + 1) / 100,
        1.5,
    ],
    ids=repr,
)
def test_values_are_read(value: Any) -> None:
    assert read(cbor2.dumps(value)) == value


def test_decimals_of_38_digits_are_exact() -> None:
    wanted = Decimal("123456789012345678901234567890123456.78")
    assert str(read(cbor2.dumps(wanted))) == str(wanted)


@pytest.mark.parametrize("data", [b"", b"\xa1\x61a", b"\xd8\x23\x61a", b"\xf8\x18", b"\xa2\x61a\x01\x61a\x02"])
def test_what_is_refused_is_a_value_error(data: bytes) -> None:
    # THREATS 104
    with pytest.raises(ValueError, match="malformed, or has a tag"):
        read(data)


@pytest.mark.parametrize(
    "data", [b"\x01\x02", b"\x01\x1bWeirpool", b"\x01\x1bWeirpool\xff", b"\x01\xff", b"\x01\xd9\xd9\xf7"]
)
def test_data_after_the_value_is_refused(data: bytes) -> None:
    # Also a tag, whose content would be what marks the end.
    with pytest.raises(ValueError, match=r"trailing data|malformed"):
        read(data)


@pytest.mark.parametrize(
    "data", [b"\xc1\xc1\x21", b"\xc1\x61\x31", b"\xc1\xf5", b"\xc0\xc1\x21", b"\xd9\x03\xec\xd9\x03\xec\x6a2026-01-31"]
)
def test_the_content_of_a_time_is_a_text_or_a_number(data: bytes) -> None:
    with pytest.raises(ValueError, match="malformed"):
        read(data)


KEYS = {
    "text": (b"\x61k", "k"),
    "bytes": (b"\x41k", b"k"),
    "integer": (b"\x05", 5),
    "negative": (b"\x24", -5),
    "float": (b"\xf9\x3c\x00", 1.0),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_texts_bytes_and_numbers(name: str) -> None:
    raw, key = KEYS[name]
    assert read(b"\xa1" + raw + b"\x01") == {key: 1}


def test_keys_fit_the_type_of_a_map() -> None:
    data = cbor2.dumps({1: "a"})
    assert Decoder(CborReader(), dict[int, str]).decode(data) == {1: "a"}
    # Jackson writes all keys as texts.
    assert Decoder(CborReader(), dict[int, str]).decode(cbor2.dumps({"1": "a"})) == {1: "a"}
    assert Decoder(CborReader(), dict[int, int]).decode(cbor2.dumps({1.0: 2.0})) == {1: 2}
    with pytest.raises(msgspec.ValidationError):
        Decoder(CborReader(), dict[str, str]).decode(data)


@pytest.mark.parametrize("key", [b"\x81\x01", b"\xa0", b"\xc2\x41\x01", b"\xd8\x25\x50" + b"\0" * 16])
def test_keys_that_may_collide_are_refused_where_they_are_read(key: bytes) -> None:
    # THREATS 104
    data = b"\xa2\x61a\x01\x61m\xa1" + key + b"\x02"
    assert Decoder(CborReader(), Only).decode(data) == {"a": 1}
    with pytest.raises(ValueError, match="a key that is not supported"):
        read(data)


class Only(TypedDict):
    a: int


@pytest.mark.parametrize("data", [b"\xf0", b"\xf8\xff", b"\xe0", b"\xf8\x20"])
def test_simple_values_without_a_meaning_fit_an_open_type_alone(data: bytes) -> None:
    assert read(data) == cbor2.CBORSimpleValue(data[-1] & 31 if len(data) == 1 else data[-1])
    assert Decoder(CborReader(), Only).decode(b"\xa2\x61a\x01\x61b" + data) == {"a": 1}
    for wanted in (int, str, None, bool):
        with pytest.raises(msgspec.ValidationError):
            Decoder(CborReader(), wanted).decode(data)


def test_undefined_is_null_at_every_depth() -> None:
    assert read(b"\xf7") is None
    assert read(b"\xa2\x61a\xf7\x61b\x83\xf7\xa1\x61c\xf7\x01") == {"a": None, "b": [None, {"c": None}, 1]}
    # A byte of a number or a text is not `undefined`.
    assert read(cbor2.dumps(["\u1ff7\uff7f", 0xF7F7])) == ["\u1ff7\uff7f", 0xF7F7]


TO_25 = "0102030405060708090a0b0c0d0e0f101112131415161718181819"
# RFC 8949, Examples of Encoded CBOR Data Items.
EXAMPLES = {
    "00": 0, "17": 23, "1818": 24, "1903e8": 1000, "1bffffffffffffffff": 18446744073709551615,
    "c249010000000000000000": 18446744073709551616, "3bffffffffffffffff": -18446744073709551616,
    "c349010000000000000000": -18446744073709551617, "20": -1, "3903e7": -1000, "f90000": 0.0, "f93c00": 1.0,
    "fb3ff199999999999a": 1.1, "f93e00": 1.5, "f97bff": 65504.0, "fa47c35000": 100000.0,
    "f90001": 5.960464477539063e-08, "f9c400": -4.0, "f97c00": math.inf, "f9fc00": -math.inf,
    "fa7f800000": math.inf, "fbfff0000000000000": -math.inf,
    "f4": False, "f5": True, "f6": None, "f7": None, "c074323031332d30332d32315432303a30343a30305a": TIME,
    "c11a514b67b0": TIME, "c1fb41d452d9ec200000": TIME.replace(microsecond=500_000),
    "d74401020304": b"\x01\x02\x03\x04", "d818456449455446": b"dIETF",
    "d82076687474703a2f2f7777772e6578616d706c652e636f6d": "http://www.example.com",
    "40": b"", "4401020304": b"\x01\x02\x03\x04", "60": "", "6449455446": "IETF", "62225c": "\"\\", "62c3bc": "\u00fc",
    "63e6b0b4": "\u6c34", "64f0908591": "\U00010151", "80": [], "8301820203820405": [1, [2, 3], [4, 5]], "a0": {},
    "a201020304": {1: 2, 3: 4}, "a26161016162820203": {"a": 1, "b": [2, 3]}, "826161a161626163": ["a", {"b": "c"}],
    "5f42010243030405ff": b"\x01\x02\x03\x04\x05", "7f657374726561646d696e67ff": "streaming", "9fff": [],
    "9f018202039f0405ffff": [1, [2, 3], [4, 5]], "83019f0203ff820405": [1, [2, 3], [4, 5]],
    "bf61610161629f0203ffff": {"a": 1, "b": [2, 3]}, "bf6346756ef563416d7421ff": {"Fun": True, "Amt": -2},
    "01": 1, "0a": 10, "1819": 25, "1864": 100, "1a000f4240": 1000000, "1b000000e8d4a51000": 1000000000000, "29": -10,
    "3863": -100, "f98000": -0.0, "fa7f7fffff": 3.4028234663852886e38, "fb7e37e43c8800759c": 1e300,
    "f90400": 6.103515625e-05, "fbc010666666666666": -4.1, "f97e00": math.nan, "fa7fc00000": math.nan,
    "faff800000": -math.inf, "fb7ff0000000000000": math.inf, "fb7ff8000000000000": math.nan,
    "f0": cbor2.CBORSimpleValue(16), "f8ff": cbor2.CBORSimpleValue(255), "6161": "a", "83010203": [1, 2, 3],
    f"9819{TO_25}": [*range(1, 26)], f"9f{TO_25}ff": [*range(1, 26)], "9f01820203820405ff": [1, [2, 3], [4, 5]],
    "83018202039f0405ff": [1, [2, 3], [4, 5]], "826161bf61626163ff": ["a", {"b": "c"}],
    "a56161614161626142616361436164614461656145": {"a": "A", "b": "B", "c": "C", "d": "D", "e": "E"},
}  # fmt: skip


@pytest.mark.parametrize("data", EXAMPLES)
def test_examples_of_the_standard_are_read(data: str) -> None:
    assert repr(read(bytes.fromhex(data))) == repr(EXAMPLES[data])
    # It costs nothing where nobody asks for it.
    assert Decoder(CborReader(), Only).decode(b"\xa2\x61a\x05\x61z" + bytes.fromhex(data)) == {"a": 5}


# RFC 8949, Well-Formedness Errors and Examples.
MALFORMED = (
    "00 00", "18", "19", "1a", "1b", "1901", "1a0102", "1b01020304050607", "38", "58", "78", "98", "9a01ff00",
    "b8", "d8", "f8", "f900", "fa0000", "fb000000", "41", "61", "5affffffff00", "5bffffffffffffffff010203",
    "7affffffff00", "7b7fffffffffffffff010203", "81", "818181818181818181", "8200", "a1", "a20102", "a100",
    "a2000000", "c0", "5f4100", "7f6100", "9f", "9f0102", "bf", "bf01020102", "819f", "9f8000",
    "9f9f9f9f9fffffffff", "9f819f819f9fffffff", "1c", "1d", "1e", "3c", "5c", "7d", "9e", "bc", "dd", "fe",
    "f800", "f801", "f818", "f81f", "5f00ff", "5f21ff", "5f6100ff", "5f80ff", "5fa0ff", "5fc000ff", "5fe0ff",
    "7f4100ff", "5f5f4100ffff", "7f7f6100ffff", "ff", "81ff", "8200ff", "a1ff", "a1ff00", "a100ff", "a20000ff",
    "9f81ff", "9f829f819f9fffffffff", "bf00ff", "bf000000ff", "1f", "3f", "df",
)  # fmt: skip


@pytest.mark.parametrize("data", MALFORMED)
def test_malformed_examples_of_the_standard_are_refused(data: str) -> None:
    with pytest.raises(ValueError, match="CBOR"):
        read(bytes.fromhex(data))


def test_written_values_are_those_of_json() -> None:
    with pytest.raises(TypeError):
        encode(object())
    assert cbor2.loads(encode({"a": b"x", 1: TIME})) == {"a": b"x", "1": "2013-03-21T20:04:00Z"}
