from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builds import Build
from tests.wire.river.test_scanning import VALUES, check, packed

JSON_BODIES = [
    b"1", b"-0", b"01", b"1.", b".5", b"1e5", b"-", b"1.5", b'"', b'"\\u0041"', b'"\\ud800"', b'"\\x"', b'"a\\"b"',
    b"tru", b"true", b"[", b"[]", b"[1,]", b"[1 ,2]", b"{}", b'{"a":1}', b'{"a":1,}', b'{"a"}', b"{1:2}", b'"\x01"',
    b"nul", b"falsE", b"1 ", b" 1", b"[" * 125 + b"]" * 125, b"[" * 126 + b"]" * 126, b'"\xff"', '"é"'.encode(),
    '"\ud800"'.encode("utf-8", "surrogatepass"), b'"\xe0\x80\x80"', b'"\xf4\x90\x80\x80"', '"\U0010ffff"'.encode(),
    b'{"$t":"!"}', b'"$t"', b"[" * 124 + b"1" + b"]" * 124,
    b"9" * 25, b"[[[[", b'{"a":{"b":[1,2,{"c":"' + b"x" * 50 + b'"}]}}', b"1}", b'"a""b"', b"",
]  # fmt: skip


@given(st.sampled_from(JSON_BODIES) | st.binary(max_size=30) | VALUES.map(lambda value: packed(value, "json")))
@example(b'"' + b"x" * 40 + b'\\n"')
def test_accepted_json_bodies_are_valid(build: Build, data: bytes) -> None:
    if build.module("weirpool.wire.river.scanning").is_body(data, True):
        assert build.module("weirpool.wire.river.values").json_to_send(data) == data


@pytest.mark.parametrize("results", [False, True])
@given(body=st.sampled_from(JSON_BODIES) | st.binary(max_size=30))
def test_scanner_agrees_with_the_codec_on_json_payloads(build: Build, results: bool, body: bytes) -> None:
    whole = packed({"id": "i", "from": "f", "to": "t", "seq": 0, "ack": 0, "streamId": "s", "controlFlags": 8}, "json")
    check(build, whole[:-1] + b',"payload":' + body + b"}", "json", results)
    check(build, whole[:-1] + b',"payload":{"ok":true,"payload":' + body + b"}}", "json", results)
