from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.builds import Build
from tests.river.peers import recorded, transcript, transcripts

FIELDS = ("id", "from_", "to", "seq", "ack", "stream_id", "control_flags", "service_name", "procedure_name", "tracing")
RARE = ("54", "55")
"""Transcripts with fields that are unknown, and numbers that are floats."""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
IDS = st.text(max_size=12) | st.sampled_from(["x" * 1_024, "x" * 1_025, 'a"b', "a\\b", "\u2028"])
ENVELOPES = st.fixed_dictionaries(
    {
        "id": IDS,
        "from": IDS,
        "to": IDS,
        "seq": st.integers(0, 2**54),
        "ack": st.integers(0, 300) | st.floats(0, 10),
        "streamId": IDS,
        "controlFlags": st.integers(0, 15),
        "payload": VALUES | st.builds(lambda value: {"ok": True, "payload": value}, VALUES),
    },
    optional={
        "serviceName": IDS,
        "procedureName": IDS | st.none(),
        "tracing": st.just({"traceparent": "x"}) | VALUES,
        "future": VALUES,
    },
)
JSON_BODIES = [
    b"1", b"-0", b"01", b"1.", b".5", b"1e5", b"-", b"1.5", b'"', b'"\\u0041"', b'"\\ud800"', b'"\\x"', b'"a\\"b"',
    b"tru", b"true", b"[", b"[]", b"[1,]", b"[1 ,2]", b"{}", b'{"a":1}', b'{"a":1,}', b'{"a"}', b"{1:2}", b'"\x01"',
    b"nul", b"falsE", b"1 ", b" 1", b"[" * 125 + b"]" * 125, b"[" * 126 + b"]" * 126, b'"\xff"', '"é"'.encode(),
    '"\ud800"'.encode("utf-8", "surrogatepass"), b'"\xe0\x80\x80"', b'"\xf4\x90\x80\x80"', '"\U0010ffff"'.encode(),
    b'{"$t":"!"}', b'"$t"', b"[" * 124 + b"1" + b"]" * 124,
    b"9" * 25, b"[[[[", b'{"a":{"b":[1,2,{"c":"' + b"x" * 50 + b'"}]}}', b"1}", b'"a""b"', b"",
]  # fmt: skip
MSGPACK_BODIES = [
    b"\x01", b"\xc1", b"\xc4\x02ab", b"\xc4\x05ab", b"\xd9\x01a", b"\xdb\0\0\0\x01a", b"\xa2\xff\xfe", b"\x81\x01\x02",
    b"\x81\xa1a\x02", b"\xdc\0\x02\x01\x02", b"\xdd\xff\xff\xff\xff", b"\xde\0\x01\xa1a\xc0", b"\xd4\0\x01",
    b"\xc7\x01\0\x01", b"\xc7\x00\0", b"\xc7\x00\xff", b"\xc7\x00\x05", b"\xd4\0\xe5", b"\xd5\0\xd0\x05",
    b"\xd5\0\xcd\x05",
    b"\xc7\x02\0\xa1-", b"\xc7\x03\0\xa2-1", b"\xc7\x03\0\xa11x", b"\xd4\x05\x01", b"\xc8\0\x01\0\x01",
    b"\xd4\0\x90",
    b"\xc9\0\0\x0f\xa4\0\xda\x0f\xa1" + b"9" * 4001, b"\xc9\0\0\x0f\xa3\0\xda\x0f\xa0" + b"9" * 4000,
    b"\xd6\xff\xff\xff\xff\xff", b"\xd7\xff\xee\x6b\x27\xff" + b"\xff" * 4, b"\xd7\xff\xee\x6b\x28\0" + b"\0" * 4,
    b"\xc7\x0c\xff" + b"\0" * 12, b"\xd4\xff\0", b"\xd6\0\xca\0\0\0", b"\xd6\0",
    b"\xca\0\0\0\0", b"\xcb\0\0\0\0\0\0\0\0", b"\xcb\0", b"\xcf" + b"\xff" * 8, b"\xd3" + b"\xff" * 8,
    b"\x91" * 125 + b"\xc0", b"\x91" * 124 + b"\x90", b"\x91" * 126 + b"\xc0", b"\x01\x02", b"\xa1\xc3", b"",
    b"\x82\xa1a\x01\xa1a\x02", b"\xdf\0\0\0\x01\xa1a\xc0", b"\xe0", b"\xc0", b"\xa3\xc3\xa9a",
]  # fmt: skip


def check(build: Build, data: bytes, codec: str, results: bool = False) -> bool:
    """Whether `data` is read at once; what is, is what the codec makes of it."""
    scan = build.module("penstock.wire.river.scanning").scan
    known = build.module("penstock.wire.river.codec").CODECS[codec]
    found = scan(b"??" + data + b"?", 2, 2 + len(data), codec == "json", results)
    if found is None:
        return False
    slow = known.decode_any(data, results)
    # What cannot be used is never read at once.
    assert slow.fault is None and found.fault is None
    assert [getattr(found, name) for name in FIELDS] == [getattr(slow, name) for name in FIELDS]
    if found.well is None:
        assert found.payload == slow.payload
    else:
        assert known.before + found.well + known.after == slow.payload and found.payload == b"" and results
    return True


def packed(fields: dict[str, Any], codec: str) -> bytes:
    if codec == "msgpack":
        return msgspec.msgpack.encode(fields)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@given(fields=ENVELOPES, results=st.booleans(), order=st.randoms())
def test_what_is_read_at_once_is_what_the_codec_reads(
    build: Build, codec: str, fields: dict[str, Any], results: bool, order: Any
) -> None:
    names = list(fields)
    order.shuffle(names)
    check(build, packed({name: fields[name] for name in names}, codec), codec, results)


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@given(fields=ENVELOPES, data=st.data())
def test_broken_messages_are_never_read_otherwise_than_by_the_codec(
    build: Build, codec: str, fields: dict[str, Any], data: st.DataObject
) -> None:
    whole = bytearray(packed(fields, codec))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    if whole:
        check(build, bytes(whole), codec, data.draw(st.booleans()))


@pytest.mark.parametrize("name", transcripts())
def test_what_the_reference_writes_is_read_at_once(build: Build, name: str) -> None:
    record = transcript(name)
    for event in record["events"]:
        if event.get("kind") != "frame" or not isinstance(event.get("msg"), dict) or "id" not in event["msg"]:
            continue
        odd = event["opcode"].startswith("text")
        at_once = check(build, recorded(event), record["codec"], event["dir"] == "s>c")
        assert at_once or odd or build.name == "plain" or record["scenario"][:2] in RARE


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_results_are_recognized(build: Build, codec: str) -> None:
    fields = {"id": "i", "from": "f", "to": "t", "seq": 0, "ack": 0, "streamId": "s", "controlFlags": 8}
    scan = build.module("penstock.wire.river.scanning").scan
    if build.name == "plain":
        return
    for payload, well in (
        ({"ok": True, "payload": [1]}, True),
        ({"ok": True, "payload": {"ok": True, "payload": 1}}, True),
        ({"ok": False, "payload": [1]}, False),
        ({"payload": [1], "ok": True}, False),
        ({"ok": True, "payload": 1, "more": 2}, False),
        ({"ok": True}, False),
    ):
        data = packed(fields | {"payload": payload}, codec)
        found = scan(data, 0, len(data), codec == "json", True)
        assert (found.well is not None) is well, payload
        assert scan(data, 0, len(data), codec == "json", False).well is None


@given(st.sampled_from(JSON_BODIES) | st.binary(max_size=30) | VALUES.map(lambda value: packed(value, "json")))
@example(b'"' + b"x" * 40 + b'\\n"')
def test_json_bodies_that_pass_are_whole(build: Build, data: bytes) -> None:
    if build.module("penstock.wire.river.scanning").is_body(data, True):
        assert build.module("penstock.wire.river.bodies").json_to_send(data) == data


@given(st.sampled_from(MSGPACK_BODIES) | st.binary(max_size=30) | VALUES.map(lambda value: packed(value, "msgpack")))
def test_msgpack_bodies_that_pass_are_whole(build: Build, data: bytes) -> None:
    if build.module("penstock.wire.river.scanning").is_body(data, False):
        build.module("penstock.wire.river.bodies").msgpack_body(data)


def test_usual_bodies_pass(build: Build) -> None:
    is_body = build.module("penstock.wire.river.scanning").is_body
    expected = build.name == "compiled"
    assert is_body(b'{"n":[1,-2.5,"x",true,null]}', True) is expected
    assert is_body(msgspec.msgpack.encode({"n": [1, -2.5, "x", True, None, b"\xff"]}), False) is expected


@pytest.mark.parametrize("results", [False, True])
@given(body=st.sampled_from(JSON_BODIES) | st.binary(max_size=30))
def test_json_payloads_are_read_at_once_as_by_the_codec(build: Build, results: bool, body: bytes) -> None:
    whole = packed({"id": "i", "from": "f", "to": "t", "seq": 0, "ack": 0, "streamId": "s", "controlFlags": 8}, "json")
    check(build, whole[:-1] + b',"payload":' + body + b"}", "json", results)
    check(build, whole[:-1] + b',"payload":{"ok":true,"payload":' + body + b"}}", "json", results)


@pytest.mark.parametrize("results", [False, True])
@given(body=st.sampled_from(MSGPACK_BODIES) | st.binary(max_size=30))
def test_msgpack_payloads_are_read_at_once_as_by_the_codec(build: Build, results: bool, body: bytes) -> None:
    whole = packed(
        {"id": "i", "from": "f", "to": "t", "seq": 0, "ack": 0, "streamId": "s", "controlFlags": 8}, "msgpack"
    )
    check(build, b"\x88" + whole[1:] + b"\xa7payload" + body, "msgpack", results)
    check(build, b"\x88" + whole[1:] + b"\xa7payload\x82\xa2ok\xc3\xa7payload" + body, "msgpack", results)


def test_nothing_outside_of_the_buffer_is_read(build: Build) -> None:
    scan = build.module("penstock.wire.river.scanning").scan
    for start, end in ((-1, 2), (0, 3)):
        with pytest.raises(IndexError):
            scan(b"{}", start, end, True, False)
    with pytest.raises(TypeError):
        scan(None, 0, 2, True, False)
    assert scan(b"{}", 2, 0, True, False) is None
