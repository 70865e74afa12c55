from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.wire.river.apart import span_of_payload, start_of_payload
from weirpool.wire.river.codec import CODECS
from weirpool.wire.river.writing import Writer

FIELDS: dict[str, Any] = {
    "id": "i",
    "from": "f",
    "to": "t",
    "seq": 300,
    "ack": 7,
    "streamId": "s",
    "controlFlags": 10,
    "serviceName": "payload",
    "procedureName": "p",
    "tracing": {"traceparent": "00-ab", "tracestate": ""},
}
KEYS = st.sampled_from([*FIELDS, "payload", "x"])
TEXTS = st.text(max_size=8) | st.just('","seq":1,"ack":2}') | st.sampled_from(list(FIELDS))
VALUES = st.recursive(
    st.none() | st.integers(-5, 5) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


def packed(fields: dict[str, Any], codec: str) -> bytes:
    if codec == "msgpack":
        return msgspec.msgpack.encode(fields)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("codec", CODECS)
@given(payload=VALUES, order=st.randoms())
def test_payload_is_found_among_the_fields(codec: str, payload: Any, order: Any) -> None:
    names = [*FIELDS, "payload"]
    order.shuffle(names)
    data = packed({name: (FIELDS | {"payload": payload})[name] for name in names}, codec)
    span = span_of_payload(data, data, codec == "json")
    assert span is not None
    start, behind = span
    assert data[start : len(data) - behind] == packed(payload, codec)
    assert start_of_payload(data, codec == "json") == start


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("route", [None, "a.b"])
def test_own_messages_are_found_by_their_ends(codec: str, route: str | None) -> None:
    known = CODECS[codec]
    body = known.encode_value("x" * 100_000)
    tracing = None if route is None else {"traceparent": "00-ab", "tracestate": "x"}
    data = Writer(known, "us", "peer", "tag-").message(
        5, 3, known.encoded("s"), 10, body, route is None, route, tracing
    )[4:]
    message = known.decode_ends(data[:8_192], data[-8_192:])
    assert message is not None and message.payload == known.null
    assert (message.seq, message.ack, message.stream_id, message.procedure_name) == (5, 3, "s", route and "b")


@pytest.mark.parametrize("codec", CODECS)
def test_messages_without_an_envelope_are_not_found(codec: str) -> None:
    whole = packed(FIELDS | {"payload": "x" * 50_000}, codec)
    decode = CODECS[codec].decode_ends
    assert decode(whole[:8_192], whole[-8_192:]) is not None
    assert decode(b"", b"") is None
    assert decode(whole[:100], b"x" * 8_192) is None
    assert decode(b"x" * 8_192, whole[-8_192:]) is None
    late = packed({"id": "x" * 20_000, **{name: FIELDS[name] for name in FIELDS if name != "id"}, "payload": 1}, codec)
    assert decode(late[:8_192], late[-8_192:]) is None
    without = packed({name: FIELDS[name] for name in FIELDS if name != "seq"} | {"payload": "x" * 50_000}, codec)
    assert decode(without[:8_192], without[-8_192:]) is None


@given(st.binary(max_size=100), st.binary(max_size=100))
def test_junk_is_no_error(head: bytes, tail: bytes) -> None:
    for codec in CODECS.values():
        codec.decode_ends(b"\x89" + head, tail)
        assert codec.decode_ends(b"{" + head, tail + b"}") is None
