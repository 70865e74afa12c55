from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.values.decoder import Decoder
from penstock.wire.river.encodings import encodings
from penstock.wire.river.values import decode_value, encode_value

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
