from __future__ import annotations

from enum import Enum
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.wire.river.encodings import RiverJson, RiverMsgpack
from penstock.wire.river.values import decode_value, encode_value

CODECS = {"json": RiverJson, "msgpack": RiverMsgpack}
BIG = 2**70


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
    codec = CODECS[name]
    data = codec.Encoder().encode(value)
    assert codec.Decoder(wanted).decode(data) == value
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
    decoded = CODECS[name].Decoder(Any).decode(data)
    assert decoded == decode_value(data, name)
    assert CODECS[name].Decoder(Any).decode(CODECS[name].Encoder().encode(decoded)) == decoded


def test_object_similar_to_a_wrapper_is_unchanged() -> None:
    decode = RiverJson.Decoder(Any).decode
    for data in (b'{"$t":1}', b'{"$t":"*"}', b'{"$b":"x"}', b'{"$t":"","a":1}'):
        assert decode(data) == msgspec.json.decode(data)


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
        CODECS[name].Decoder(wanted).decode(data)
