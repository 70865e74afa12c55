from __future__ import annotations

import ipaddress
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import cbor2
import msgspec
import pytest

from weirpool.values.cbor import CborReader
from weirpool.values.decoder import Decoder

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
IDENTIFIER = UUID("123e4567-e89b-12d3-a456-426614174000")


def read(data: bytes, wanted: Any = Any) -> Any:
    return Decoder(CborReader(), wanted).decode(data)


def tagged(tag: int, content: Any) -> bytes:
    return cbor2.dumps(cbor2.CBORTag(tag, content))


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ({1, 2}, [1, 2]),
        (ipaddress.ip_address("1.2.3.4"), b"\x01\x02\x03\x04"),
        (ipaddress.ip_address("::1"), b"\0" * 15 + b"\x01"),
        (ipaddress.ip_network("10.0.0.0/8"), [8, b"\x0a"]),
        (IDENTIFIER, IDENTIFIER),
        (Fraction(1, 4), 0.25),
        (Decimal("104.11"), Decimal("104.11")),
        (1 << 100, 1 << 100),
        (date(2020, 2, 29), date(2020, 2, 29)),
        (EPOCH, EPOCH),
        (1 + 2j, [1.0, 2.0]),
    ],
    ids=repr,
)
def test_values_of_python_are_read_as_what_they_mean(value: Any, content: Any) -> None:
    assert read(cbor2.dumps(value)) == content


@pytest.mark.parametrize("tag", [6, 21, 22, 23, 24, 32, 33, 34, 36, 40, 41, 63, 64, 68, 83, 103, 259, 261, 3000, 55799])
def test_an_unknown_tag_gives_its_content(tag: int) -> None:
    for content in (1, "x", b"x", [1, {"a": None}], None):
        assert read(tagged(tag, content)) == content
        assert read(cbor2.dumps({"a": [cbor2.CBORTag(tag, content)]})) == {"a": [content]}
    assert read(tagged(tag, 5), int) == 5


@pytest.mark.parametrize("tag", [5, 25, 28, 29, 35, 256])
def test_dangerous_tags_are_refused_where_they_are_read(tag: int) -> None:
    # THREATS 118
    for content in ("(a+)+", [1, 2], 0, b"x"):
        with pytest.raises(ValueError, match="tag or a key that is not supported"):
            read(tagged(tag, content))
        data = cbor2.dumps({"a": 5, "z": [cbor2.CBORTag(tag, content)]})
        assert read(data, Only) == Only(5)


class Only(msgspec.Struct):
    """A record with one field."""

    a: int


ARRAYS = {
    65: ">H", 66: ">I", 67: ">Q", 69: "<H", 70: "<I", 71: "<Q", 72: "b", 73: ">h", 74: ">i", 75: ">q", 77: "<h",
    78: "<i", 79: "<q", 80: ">e", 81: ">f", 82: ">d", 84: "<e", 85: "<f", 86: "<d",
}  # fmt: skip


@pytest.mark.parametrize("tag", ARRAYS)
def test_typed_arrays_are_lists_of_numbers(tag: int) -> None:
    # RFC 8746, Types of Numbers.
    form = ARRAYS[tag]
    numbers = [0, 1, 100, *((-1, -100) if form[-1] not in "HIQ" else ())]
    wanted: list[Any] = [float(number) if form[-1] in "efd" else number for number in numbers]
    data = tagged(tag, b"".join(struct.pack(form, number) for number in numbers))
    assert repr(read(data)) == repr(wanted)
    assert read(data, list[int]) == numbers and read(data, list[float]) == numbers
    assert read(tagged(tag, b"")) == []
    for wrong in ("x", [1], b"x" * (struct.calcsize(form) * 2 - 1) if struct.calcsize(form) > 1 else 1):
        with pytest.raises(ValueError, match="tag or a key that is not supported"):
            read(tagged(tag, wrong))


@pytest.mark.parametrize(
    ("seconds", "wanted"),
    [
        (0, EPOCH),
        (-1, EPOCH - timedelta(seconds=1)),
        (1735689599.999, datetime(2024, 12, 31, 23, 59, 59, 999000, UTC)),
        (1735689599.9999998, datetime(2024, 12, 31, 23, 59, 59, 999999, UTC)),
        (-0.001, EPOCH - timedelta(milliseconds=1)),
        (-1e-7, EPOCH - timedelta(microseconds=1)),
        (1e-7, EPOCH),
        (253402300799.999, datetime(9999, 12, 31, 23, 59, 59, 999000, UTC)),
        (-62135596800, datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_epoch_times_lose_digits_beyond_the_microsecond(seconds: float, wanted: datetime) -> None:
    assert read(tagged(1, seconds)) == read(tagged(1, seconds), datetime) == wanted


@pytest.mark.parametrize(
    ("tag", "content"),
    [
        (0, 5), (0, "yesterday"), (0, None), (1, "5"), (1, None), (1, float("nan")), (1, float("inf")), (1, 1 << 62),
        (1, 253402300800), (1, True), (2, 5), (2, b"x" * 17), (3, "x"), (4, [1]), (4, [1 << 40, 1]), (4, [65, 1]),
        (4, [1.0, 1]), (4, 5), (30, [1, 0]), (30, [1.0, 2]), (30, 5), (100, 1 << 40), (100, "x"), (100, 1.0),
        (1004, "2020-02-30"), (1004, 5),
    ],
)  # fmt: skip
def test_content_that_does_not_fit_is_refused_where_it_is_read(tag: int, content: Any) -> None:
    with pytest.raises(ValueError, match="malformed, or has a tag"):
        read(tagged(tag, content))
    assert read(cbor2.dumps({"a": 5, "z": cbor2.CBORTag(tag, content)}), Only) == Only(5)


def test_days_are_dates() -> None:
    assert read(tagged(100, 20088)) == date(2024, 12, 31) == read(tagged(100, 20088), date)
    assert read(tagged(100, -1)) == date(1969, 12, 31)


def test_texts_of_times_lose_digits() -> None:
    assert read(tagged(0, "2024-12-31T23:59:59.9999999Z")) == datetime(2024, 12, 31, 23, 59, 59, 999999, UTC)
    assert read(tagged(0, "2024-12-31T23:59:59.5+00")) == datetime(2024, 12, 31, 23, 59, 59, 500000, UTC)


def test_an_identifier_of_another_length_is_its_content() -> None:
    assert read(tagged(37, b"x")) == b"x" and read(tagged(37, "x")) == "x"
