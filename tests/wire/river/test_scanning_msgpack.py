from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builds import Build
from tests.wire.river.test_scanning import VALUES, check, packed

MSGPACK_BODIES = [
    b"\x01", b"\xc1", b"\xc4\x02ab", b"\xc4\x05ab", b"\xd9\x01a", b"\xdb\0\0\0\x01a", b"\xa2\xff\xfe", b"\x81\x01\x02",
    b"\x81\xa1a\x02", b"\xdc\0\x02\x01\x02", b"\xdd\xff\xff\xff\xff", b"\xde\0\x01\xa1a\xc0", b"\xd4\0\x01",
    b"\xc7\x01\0\x01", b"\xc7\x00\0", b"\xc7\x00\xff", b"\xc7\x00\x05", b"\xd4\0\xe5", b"\xd5\0\xd0\x05",
    b"\xd5\0\xcd\x05", b"\x81\x80\xc0", b"\x81\x91\x80\xc0", b"\x81\xd4\x05\x01\xc0",
    b"\xc7\x02\0\xa1-", b"\xc7\x03\0\xa2-1", b"\xc7\x03\0\xa11x", b"\xd4\x05\x01", b"\xc8\0\x01\0\x01",
    b"\xd4\0\x90",
    b"\xc9\0\0\x0f\xa4\0\xda\x0f\xa1" + b"9" * 4001, b"\xc9\0\0\x0f\xa3\0\xda\x0f\xa0" + b"9" * 4000,
    b"\xd6\xff\xff\xff\xff\xff", b"\xd7\xff\xee\x6b\x27\xff" + b"\xff" * 4, b"\xd7\xff\xee\x6b\x28\0" + b"\0" * 4,
    b"\xc7\x0c\xff" + b"\0" * 12, b"\xd4\xff\0", b"\xd6\0\xca\0\0\0", b"\xd6\0",
    b"\xca\0\0\0\0", b"\xcb\0\0\0\0\0\0\0\0", b"\xcb\0", b"\xcf" + b"\xff" * 8, b"\xd3" + b"\xff" * 8,
    b"\x91" * 125 + b"\xc0", b"\x91" * 124 + b"\x90", b"\x91" * 126 + b"\xc0", b"\x01\x02", b"\xa1\xc3", b"",
    b"\x82\xa1a\x01\xa1a\x02", b"\xdf\0\0\0\x01\xa1a\xc0", b"\xe0", b"\xc0", b"\xa3\xc3\xa9a",
]  # fmt: skip


@given(st.sampled_from(MSGPACK_BODIES) | st.binary(max_size=30) | VALUES.map(lambda value: packed(value, "msgpack")))
def test_accepted_msgpack_bodies_are_valid(build: Build, data: bytes) -> None:
    if build.module("weirpool.wire.river.scanning").is_body(data, False):
        assert build.module("weirpool.wire.river.values").msgpack_body(data) == data


@pytest.mark.parametrize("results", [False, True])
@given(body=st.sampled_from(MSGPACK_BODIES) | st.binary(max_size=30))
def test_scanner_agrees_with_the_codec_on_msgpack_payloads(build: Build, results: bool, body: bytes) -> None:
    whole = packed(
        {"id": "i", "from": "f", "to": "t", "seq": 0, "ack": 0, "streamId": "s", "controlFlags": 8}, "msgpack"
    )
    check(build, b"\x88" + whole[1:] + b"\xa7payload" + body, "msgpack", results)
    check(build, b"\x88" + whole[1:] + b"\xa7payload\x82\xa2ok\xc3\xa7payload" + body, "msgpack", results)
