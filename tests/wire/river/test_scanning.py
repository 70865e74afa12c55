from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
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


def check(build: Build, data: bytes, codec: str, results: bool = False) -> bool:
    """Return whether the scanner accepts `data`, and check that it agrees with the codec."""
    scan = build.module("weirpool.wire.river.scanning").scan
    known = build.module("weirpool.wire.river.codec").CODECS[codec]
    found = scan(b"??" + data + b"?", 2, 2 + len(data), codec == "json", results)
    if found is None:
        return False
    slow = known.decode_any(data, results)
    # The scanner never accepts an invalid payload.
    assert slow.fault is None and found.fault is None
    assert [getattr(found, name) for name in FIELDS] == [getattr(slow, name) for name in FIELDS]
    if found.ok_payload is None:
        assert found.payload == slow.payload
    else:
        assert known.before + found.ok_payload + known.after == slow.payload and found.payload == b"" and results
    return True


def packed(fields: dict[str, Any], codec: str) -> bytes:
    if codec == "msgpack":
        return msgspec.msgpack.encode(fields)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@given(fields=ENVELOPES, results=st.booleans(), order=st.randoms())
def test_scanner_agrees_with_the_codec(
    build: Build, codec: str, fields: dict[str, Any], results: bool, order: Any
) -> None:
    names = list(fields)
    order.shuffle(names)
    check(build, packed({name: fields[name] for name in names}, codec), codec, results)


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@given(fields=ENVELOPES, data=st.data())
def test_scanner_agrees_with_the_codec_on_malformed_messages(
    build: Build, codec: str, fields: dict[str, Any], data: st.DataObject
) -> None:
    whole = bytearray(packed(fields, codec))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
    if whole:
        check(build, bytes(whole), codec, data.draw(st.booleans()))


@pytest.mark.parametrize("name", transcripts())
def test_messages_of_the_reference_are_scanned(build: Build, name: str) -> None:
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
    scan = build.module("weirpool.wire.river.scanning").scan
    if build.name == "plain":
        return
    for payload, is_ok in (
        ({"ok": True, "payload": [1]}, True),
        ({"ok": True, "payload": {"ok": True, "payload": 1}}, True),
        ({"ok": False, "payload": [1]}, False),
        ({"payload": [1], "ok": True}, False),
        ({"ok": True, "payload": 1, "more": 2}, False),
        ({"ok": True}, False),
    ):
        data = packed(fields | {"payload": payload}, codec)
        found = scan(data, 0, len(data), codec == "json", True)
        assert (found.ok_payload is not None) is is_ok, payload
        assert scan(data, 0, len(data), codec == "json", False).ok_payload is None


def test_usual_bodies_pass(build: Build) -> None:
    is_body = build.module("weirpool.wire.river.scanning").is_body
    expected = build.name == "compiled"
    assert is_body(b'{"n":[1,-2.5,"x",true,null]}', True) is expected
    assert is_body(msgspec.msgpack.encode({"n": [1, -2.5, "x", True, None, b"\xff"]}), False) is expected


def test_scan_never_reads_outside_the_buffer(build: Build) -> None:
    scan = build.module("weirpool.wire.river.scanning").scan
    for start, end in ((-1, 2), (0, 3)):
        with pytest.raises(IndexError):
            scan(b"{}", start, end, True, False)
    with pytest.raises(TypeError):
        scan(None, 0, 2, True, False)
    assert scan(b"{}", 2, 0, True, False) is None
