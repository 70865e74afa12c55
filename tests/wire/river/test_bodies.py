from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import FrameError
from penstock.wire.river.bodies import BODY_DEPTH, check_wrappers, json_body, json_to_send, msgpack_body

TEXT = st.text(
    st.characters(codec=None, categories=("L", "Cs", "Nd")) | st.sampled_from('\\u"dD8\ud83d\ude00'), max_size=8
)


@given(TEXT)
def test_lone_surrogates_become_replacement_characters(text: str) -> None:
    body = json.dumps(text).encode()
    # Two halves that stand side by side are one character; others are none.
    whole = json.loads(body).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    assert msgspec.json.decode(json_body(body)) == whole or "�" in whole
    json_body(body).decode()
    if not any(0xD800 <= ord(each) < 0xE000 for each in json.loads(body)):
        assert json_body(body) == body


def test_escaped_backslashes_are_no_escapes() -> None:
    assert json_body(b'"\\\\ud800"') == b'"\\\\ud800"'
    assert json_body(b'"\\\\\\ud800"') == b'"\\\\\\ufffd"'
    assert json_body(b'"\\ud83d\\ude00\\ud83d"') == b'"\\ud83d\\ude00\\ufffd"'


def test_both_directions_take_the_same_depth() -> None:
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
def test_a_wrapper_that_stands_for_nothing_is_not_sent(body: bytes) -> None:
    with pytest.raises(FrameError, match=r"\$[tb]"):
        check_wrappers(body)
    with pytest.raises(FrameError, match=r"\$[tb]"):
        json_to_send(body)
    # What a peer sends so stays an object.
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
def test_msgpack_that_cannot_be_decoded_is_refused(body: bytes) -> None:
    with pytest.raises(FrameError, match="MessagePack"):
        msgpack_body(body)


@pytest.mark.parametrize("body", [b"\xd4\x00\x05", b"\xd4\x07\x05", b"\xd6\xff\0\0\0\0", b"\xc7\x02\x00\xa1" + b"7"])
def test_extensions_pass(body: bytes) -> None:
    assert msgpack_body(body) == body
