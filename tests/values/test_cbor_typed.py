from __future__ import annotations

import enum
import tracemalloc
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import cbor2
import msgspec
import pytest

from weirpool.errors import LocalError, Mismatch
from weirpool.schema.converter import Converter
from weirpool.schema.formats import CBOR
from weirpool.values import cbor

SPRING = (
    "bf62696450123e4567e89b12d3a456426614174000626174781e323032362d30312d33315431323a30303a30302e3633323236363934365a"
    "636461796a323032362d30312d333164746f6f6b665054312e3553657072696365c482211928ab63626967c24d018ee90ff6c373e0ee4e3f"
    "0ad263726177430102ff6166fa3fc000006164fb4002000000000000616c05616dbf016178ff6165614163746167"
    "9f6161ffff"
)
"""A record as the Jackson of Spring Boot 3.4 writes it."""


class Level(enum.Enum):
    A = "A"


class Record(msgspec.Struct):
    id: UUID
    at: datetime
    day: date
    took: timedelta
    price: Decimal
    big: int
    raw: bytes
    f: float
    d: float
    l: int  # noqa: E741
    m: dict[int, str]
    e: Level
    tag: list[str]


RECORD = Record(
    UUID("123e4567-e89b-12d3-a456-426614174000"),
    datetime(2026, 1, 31, 12, 0, 0, 632266, UTC),
    date(2026, 1, 31),
    timedelta(seconds=1.5),
    Decimal("104.11"),
    123456789012345678901234567890,
    b"\x01\x02\xff",
    1.5,
    2.25,
    5,
    {1: "x"},
    Level.A,
    ["a"],
)


def test_a_record_of_spring_is_read() -> None:
    assert Converter(Record).decode(CBOR, bytes.fromhex(SPRING)) == RECORD


def test_values_round_trip() -> None:
    assert Converter(Record).decode(CBOR, CBOR.encode(RECORD)) == RECORD


def test_written_are_bytes_and_texts() -> None:
    written = cbor2.loads(CBOR.encode(RECORD))
    assert (written["raw"], written["id"], written["price"]) == (b"\x01\x02\xff", str(RECORD.id), "104.11")
    assert (written["at"], written["m"]) == ("2026-01-31T12:00:00.632266Z", {"1": "x"})


def test_other_values_are_mismatches_with_their_place() -> None:
    with pytest.raises(Mismatch) as caught:
        Converter(dict[str, list[int]]).decode(CBOR, cbor2.dumps({"a": [1, "2"]}))
    assert "Expected `int`, got `str`" in str(caught.value)


def test_hooks_convert_other_types() -> None:
    assert CBOR.decoder(complex, lambda _, value: complex(*value)).decode(CBOR.encode([1, 2])) == 1 + 2j


def test_types_that_cannot_be_decoded_are_refused_at_once() -> None:
    with pytest.raises(TypeError):
        CBOR.decoder(list[int] | dict[str, int] | Record | tuple[int])


LIE = b"\x7f\xff\xff\xff\xff\xff\xff\xff"


# THREATS 104
@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x81" * 100_000 + b"\x00", "more than 128 levels"),
        (b"\x9f" * 100_000, "more than 128 levels"),
        (b"\xd9\xd9\xf7" * 100_000, "more than 128 levels"),
        (b"\xa1" * 100_000, "more than 128 levels"),
        (b"\xa1\x81\x01\x02", "a key that is not supported"),
        (b"\xbf\xc2\x41\x01\x02\xff", "a key that is not supported"),
        (b"\x9b" + LIE, "malformed"),
        (b"\xbb" + LIE, "malformed"),
        (b"\x5b" + LIE, "malformed"),
        (b"\x7b" + LIE, "malformed"),
        (b"\x9f\x9b" + LIE + b"\xff", "malformed"),
        (b"\xd8\x1c\x81\xd8\x1d\x00", "tag or a key that is not supported"),
        (b"\xc2\x58\x64" + b"\xff" * 100, "tag or a key that is not supported"),
        (b"\xa2\x61a\x01\x61a\x02", "malformed"),
        (b"\xa2\x01\x01\x01\x02", "malformed"),
        (b"\x01\x01", "trailing data"),
        (b"\xff", "malformed"),
    ],
)
def test_hostile_data_is_a_mismatch(data: bytes, why: str) -> None:
    converter = Converter(Any)
    tracemalloc.start()
    try:
        with pytest.raises(Mismatch, match=why):
            converter.decode(CBOR, data)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    cbor._reader.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "cbor2", None)
    with pytest.raises(LocalError, match=r"pip install 'weirpool\[cbor\]'"):
        Converter.encode(CBOR, 1)
    with pytest.raises(Mismatch, match="cannot read CBOR; send JSON"):
        Converter(int).decode(CBOR, b"\x01")
    assert "weirpool[cbor]" in caplog.text
