from __future__ import annotations

from decimal import Decimal
from typing import Any

import cbor2
import pytest

from penstock.cbor import cbor_reader


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, "x", b"y", None, True]},
        "\x1bPenstock",
        1 << 70,
        -(1 << 70),
        Decimal("104.11"),
        Decimal(10**37 + 1) / 100,
        1.5,
    ],
    ids=repr,
)
def test_values_are_read(value: Any) -> None:
    assert cbor_reader(text_keys=True)(cbor2.dumps(value)) == value


def test_decimals_of_38_digits_are_exact() -> None:
    wanted = Decimal("123456789012345678901234567890123456.78")
    assert str(cbor_reader(text_keys=True)(cbor2.dumps(wanted))) == str(wanted)


def test_keys_are_texts_unless_others_are_allowed() -> None:
    data = cbor2.dumps({1: "x"})
    assert cbor_reader(text_keys=False)(data) == {1: "x"}
    with pytest.raises(ValueError, match="malformed"):
        cbor_reader(text_keys=True)(data)


@pytest.mark.parametrize("data", [b"", b"\xa1\x61a", b"\xd8\x23\x61a", b"\xd9\xff\xf0\x00", b"\xa2\x61a\x01\x61a\x02"])
def test_what_is_refused_is_a_value_error(data: bytes) -> None:
    # THREATS 104
    with pytest.raises(ValueError, match="malformed, or has a tag"):
        cbor_reader(text_keys=False)(data)


@pytest.mark.parametrize(
    "data", [b"\x01\x02", b"\x01\x1bPenstock", b"\x01\x1bPenstock\xff", b"\x01\xff", b"\x01\xd9\xd9\xf7"]
)
def test_data_after_the_value_is_refused(data: bytes) -> None:
    # Also a tag, whose content would be what marks the end.
    with pytest.raises(ValueError, match=r"trailing data|malformed"):
        cbor_reader(text_keys=False)(data)


@pytest.mark.parametrize(
    "data", [b"\xc1\xc1\x21", b"\xc1\x61\x31", b"\xc1\xf5", b"\xc0\xc1\x21", b"\xd9\x03\xec\xd9\x03\xec\x6a2026-01-31"]
)
def test_the_content_of_a_time_is_a_text_or_a_number(data: bytes) -> None:
    with pytest.raises(ValueError, match="malformed"):
        cbor_reader(text_keys=False)(data)
