from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict

import msgspec
import pytest

from penstock.errors import LocalError, Mismatch
from penstock.schema.converter import Converter
from penstock.schema.formats import JSON, MSGPACK, format_of
from penstock.schema.river import RIVER, _plain_enough
from penstock.wire.river_values import decode_value, encode_value

FORMS = {form.name: form for form in RIVER.values()}
BIG = 2**63


class Blob(msgspec.Struct):
    data: bytes
    n: int = 0
    more: list[bytes] = []


class Plain(msgspec.Struct):
    name: str
    ratio: float = 1.5
    inner: Plain | None = None


@dataclass
class Data:
    data: bytes


class Row(NamedTuple):
    n: int
    names: dict[str, tuple[int, ...]]


class Words(TypedDict):
    words: list[str]


class Colour(enum.Enum):
    RED = "red"


@pytest.mark.parametrize("codec", FORMS)
@pytest.mark.parametrize(
    "value",
    [
        Blob(b"\x00\x01\xfe\xff"), Blob(b"", 5), Blob(b"x", BIG), Blob(b"x", -(2**70), [b"y"]), Data(b"z"),
        Plain("é", 2.5, Plain("x")), Row(2**53, {"a": (1, 2)}), Row(2**53 - 1, {}), {"words": ["a"]}, Colour.RED,
    ],
)  # fmt: skip
def test_values_come_back(codec: str, value: Any) -> None:
    form = FORMS[codec]
    wanted = Words if isinstance(value, dict) else type(value)
    data = Converter.encode(form, value)
    assert Converter(wanted).decode(form, data) == value
    # And everybody else's River says the same.
    assert encode_value(decode_value(data, codec), codec) == data


def test_bytes_and_large_integers_are_written_as_the_reference_does() -> None:
    assert Converter.encode(FORMS["json"], Blob(b"\x00\x01\xfe\xff", BIG)) == (
        b'{"data":{"$t":"AAH+/w=="},"n":{"$b":"9223372036854775808"},"more":[]}'
    )
    packed = Converter.encode(FORMS["msgpack"], {"n": 2**53})
    assert packed == encode_value({"n": 2**53}, "msgpack") and b"\xcf" not in packed


def test_what_holds_none_of_them_is_written_as_ever() -> None:
    value = Plain("x", 0.1234567890123456789)
    assert Converter.encode(FORMS["json"], value) == Converter.encode(JSON, value)
    assert Converter.encode(FORMS["msgpack"], value) == Converter.encode(MSGPACK, value)


@pytest.mark.parametrize("codec", FORMS)
def test_what_is_wrong_is_told_by_its_place(codec: str) -> None:
    form = FORMS[codec]
    with pytest.raises(Mismatch) as wrong:
        Converter(Blob).decode(form, encode_value({"data": b"x", "n": "5"}, codec))
    assert wrong.value.problems[0][0] == "/n"
    with pytest.raises(Mismatch):
        Converter(Blob).decode(form, b"")
    with pytest.raises(Mismatch, match="deeper"):
        Converter(Any).decode(form, (b"[" if codec == "json" else b"\x91") * 1_000)
    with pytest.raises(LocalError):
        Converter.encode(form, object())


def test_a_wrapper_that_is_none_is_an_object() -> None:
    with pytest.raises(Mismatch):
        Converter(Blob).decode(FORMS["json"], b'{"data":{"$t":"!"}}')
    assert Converter(dict[str, str]).decode(FORMS["json"], b'{"$t":"!"}') == {"$t": "!"}
    assert Converter({"type": "object"}).decode(FORMS["json"], b'{"$t":"AA=="}') == {"$t": "AA=="}
    with pytest.raises(Mismatch):
        # Extension types that nobody knows.
        Converter(Blob).decode(FORMS["msgpack"], msgspec.msgpack.encode({"data": msgspec.msgpack.Ext(7, b"x")}))


def test_they_are_found_by_name() -> None:
    for mime, form in RIVER.items():
        assert format_of(mime) is form
    assert format_of("application/vnd.river+xml") is None


def test_types_that_may_hold_bytes_are_known() -> None:
    for plain in (Plain, Row, Colour, int, str):
        assert _plain_enough(plain)
    for other in (Blob, Data, bytes, dict, list, object):
        assert not _plain_enough(other)
