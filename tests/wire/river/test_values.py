from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.errors import FrameError, LocalError
from weirpool.wire.river.codec import CODECS
from weirpool.wire.river.grammar import BODY_DEPTH
from weirpool.wire.river.values import (
    check_wrappers,
    decode_value,
    encode_value,
    from_json,
    json_body,
    json_to_send,
    msgpack_body,
    shown_value,
    to_json,
)

KEYS = st.text("abcdé", max_size=4)
LEAVES = st.none() | st.booleans() | st.integers(-(2**90), 2**90) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    LEAVES | st.text("aé\0😀") | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize("codec", CODECS)
@given(value=VALUES)
def test_values_round_trip(codec: str, value: Any) -> None:
    assert decode_value(encode_value(value, codec), codec) == value


@pytest.mark.parametrize(
    "body",
    [b'{"$t":"not base64!"}', b'{"$t":5}', b'{"$b":"1.5"}', b'{"$b":""}', b'{"$t":"","x":1}', b'{"$b":7}', b'{"$x":1}'],
)
def test_object_that_is_not_a_wrapper_is_unchanged(body: bytes) -> None:
    assert isinstance(decode_value(body, "json"), dict)


def test_integers_have_the_forms_of_the_reference() -> None:
    assert encode_value({"d": b"\0\1\xfe\xff"}, "json") == b'{"d":{"$t":"AAH+/w=="}}'
    assert encode_value(2**63, "json") == b'{"$b":"9223372036854775808"}'
    assert encode_value(2**63, "msgpack").hex() == "c71400b3" + b"9223372036854775808".hex()
    assert decode_value(bytes.fromhex("d40005"), "msgpack") == 5
    assert decode_value(b'{"$b":"5"}', "json") == 5


@pytest.mark.parametrize("body", [b"\xd4\x01\x05", b"\xd4\x00\xc0", b"\xc7\x02\x00\xa1x", b"\x91" * 500 + b"\xc0", b""])
def test_invalid_msgpack_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError):
        decode_value(body, "msgpack")


@pytest.mark.parametrize("body", [b"NaN", b"Infinity", b"{", b"[" * 500 + b"]" * 500, b"\xff", b"1" * 5_000, b""])
def test_invalid_json_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError):
        decode_value(body, "json")
    with pytest.raises(LocalError, match="River carries JSON values"):
        from_json(body, "msgpack")


def test_values_that_cannot_be_sent_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for codec in CODECS:
        for value in ({1: 2}, object(), endless):
            with pytest.raises(LocalError):
                encode_value(value, codec)


def test_values_are_converted_to_json_and_back() -> None:
    packed = from_json(b'{"n": 3, "b": {"$t": "AAE="}}', "msgpack")
    assert decode_value(packed, "msgpack") == {"n": 3, "b": b"\0\1"}
    assert to_json(packed, "msgpack") == b'{"n":3,"b":{"$t":"AAE="}}'
    assert to_json(b"[1]", "json") == b"[1]"


@pytest.mark.parametrize("key", ["$t", "$b"])
def test_dict_that_looks_like_a_wrapper_is_refused(key: str) -> None:
    # THREATS 93
    for value in ({key: "AAEC"}, [{key: "!!!", "more": 1}], {"a": {key: {}}}):
        with pytest.raises(LocalError, match=rf"key '\{key}' would be decoded as another type"):
            encode_value(value, "json")
        assert decode_value(encode_value(value, "msgpack"), "msgpack") == value
        # It can still be displayed.
        assert key in shown_value(value).decode()
    assert to_json(encode_value({key: "AAEC"}, "msgpack"), "msgpack") == b'{"%b":"AAEC"}' % key.encode()


def test_wrapper_with_non_ascii_text_stays_an_object() -> None:
    assert decode_value('{"$t":"é"}'.encode(), "json") == {"$t": "é"}


TEXT = st.text(
    st.characters(codec=None, categories=("L", "Cs", "Nd")) | st.sampled_from('\\u"dD8\ud83d\ude00'), max_size=8
)


@given(TEXT)
def test_lone_surrogates_become_replacement_characters(text: str) -> None:
    body = json.dumps(text).encode()
    # Two adjacent halves are one character; others are invalid.
    whole = json.loads(body).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert msgspec.json.decode(json_body(body)) == whole or "�" in whole
    json_body(body).decode()
    if not any(0xD800 <= ord(each) < 0xE000 for each in json.loads(body)):
        assert json_body(body) == body


def test_escaped_backslashes_are_no_escapes() -> None:
    assert json_body(b'"\\\\ud800"') == b'"\\\\ud800"'
    assert json_body(b'"\\\\\\ud800"') == b'"\\\\\\ufffd"'
    assert json_body(b'"\\ud83d\\ude00\\ud83d"') == b'"\\ud83d\\ude00\\ufffd"'


def test_both_directions_allow_the_same_depth() -> None:
    for levels, fits in ((BODY_DEPTH, True), (BODY_DEPTH + 1, False)):
        for check in (json_body, json_to_send):
            if fits:
                check(b"[" * levels + b"]" * levels)
            else:
                with pytest.raises(FrameError, match="levels"):
                    check(b"[" * levels + b"]" * levels)
        if fits:
            msgpack_body(b"\x91" * levels + b"\xc0")
        else:
            with pytest.raises(FrameError, match="levels"):
                msgpack_body(b"\x91" * levels + b"\xc0")


@pytest.mark.parametrize(
    "body",
    [b'{"$t":"!!!"}', b'{"$t":5}', b'[{"$b":"x"}]', b'{"$t":"AA==","more":1}', b'{"\\u0024t":"!"}', b'{"$t":{}}'],
)
def test_invalid_wrapper_is_not_sent(body: bytes) -> None:
    with pytest.raises(FrameError, match=r"\$[tb]"):
        check_wrappers(body)
    with pytest.raises(FrameError, match=r"\$[tb]"):
        json_to_send(body)
    # It stays an object if a peer sends it.
    assert json_body(body) == body


@pytest.mark.parametrize("body", [b'{"$t":"AAEC"}', b'[{"$b":"-12"}]', b'"$t"', b'{"$x":1}', b'{"a$t":1e999}'])
def test_other_bodies_are_sent(body: bytes) -> None:
    assert json_to_send(body) == body


def test_lone_surrogates_are_not_sent() -> None:
    with pytest.raises(FrameError, match="surrogate"):
        json_to_send(b'"\\ud800"')


@pytest.mark.parametrize(
    "body", [b"\xa2\xff\xfe", b"\xd4\x00\x90", b"\xd4\xff\x01", b"\xc1", b"", b"\x92\x01", b"\x81\x81\x01\x02\x03"]
)
def test_undecodable_msgpack_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError, match="MessagePack"):
        msgpack_body(body)


@pytest.mark.parametrize("body", [b"\xd4\x00\x05", b"\xd4\x07\x05", b"\xd6\xff\0\0\0\0", b"\xc7\x02\x00\xa1" + b"7"])
def test_extensions_pass(body: bytes) -> None:
    assert msgpack_body(body) == body
