from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.river.peers import recorded, transcript, transcripts
from weirpool.errors import FrameError, LocalError
from weirpool.wire.river.codec import CODECS, MAX_NUMBER, codec_of
from weirpool.wire.river.message import Message
from weirpool.wire.river.values import encode_value

WHOLE: dict[str, Any] = {
    "id": "m",
    "from": "c",
    "to": "s",
    "seq": 1,
    "ack": 2,
    "streamId": "x",
    "controlFlags": 0,
    "payload": {"n": 1},
}


def encoded(codec: str, **changes: object) -> bytes:
    return encode_value(WHOLE | changes, codec)


@pytest.mark.parametrize("name", transcripts())
def test_messages_of_the_reference_are_read(name: str) -> None:
    record = transcript(name)
    for event in record["events"]:
        if event.get("kind") == "frame" and isinstance(event.get("msg"), dict) and "id" in event["msg"]:
            if event["opcode"].startswith("text") or event["msg"].get("tracing", {}) is None:
                continue
            message = CODECS[record["codec"]].decode(recorded(event))
            assert (message.id, message.from_, message.to) == tuple(event["msg"][key] for key in ("id", "from", "to"))
            assert (message.seq, message.ack, message.control_flags) == tuple(
                event["msg"][key] for key in ("seq", "ack", "controlFlags")
            )


@pytest.mark.parametrize("codec", CODECS)
def test_messages_round_trip(codec: str) -> None:
    body = encode_value({"a": [1, None, "é"]}, codec)
    message = Message("i", "f", "t", 5, 6, "s", 10, body, "service", "procedure")
    data = CODECS[codec].encode(message)
    again = CODECS[codec].decode(data)
    assert again.payload == body
    assert (again.seq, again.ack, again.service_name, again.procedure_name) == (5, 6, "service", "procedure")
    # Absent fields are omitted, never null.
    assert b"tracing" not in data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("seq", [-1, 1.5, MAX_NUMBER + 1, 2.0**53, "1", None, True])
def test_numbers_out_of_range_are_refused(codec: str, seq: object) -> None:
    with pytest.raises(FrameError):
        CODECS[codec].decode(encoded(codec, seq=seq))


@pytest.mark.parametrize("codec", CODECS)
def test_whole_floats_are_accepted(codec: str) -> None:
    message = CODECS[codec].decode(encoded(codec, seq=3.0, controlFlags=10.0))
    assert (message.seq, message.control_flags) == (3, 10) and type(message.seq) is int


@pytest.mark.parametrize("number", [b"NaN", b"1e400", b"-1e400", b"Infinity", b"1" * 5_000])
def test_invalid_json_numbers_are_refused(number: bytes) -> None:
    with pytest.raises(FrameError):
        CODECS["json"].decode(encoded("json").replace(b'"seq":1', b'"seq":' + number))


def test_msgpack_nan_is_refused() -> None:
    with pytest.raises(FrameError):
        CODECS["msgpack"].decode(msgspec.msgpack.encode(WHOLE | {"seq": float("nan")}))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("missing", WHOLE)
def test_fields_that_are_missing_or_null_are_refused(codec: str, missing: str) -> None:
    with pytest.raises(FrameError):
        CODECS[codec].decode(encode_value({key: WHOLE[key] for key in WHOLE if key != missing}, codec))
    if missing != "payload":
        with pytest.raises(FrameError):
            CODECS[codec].decode(encoded(codec, **{missing: None}))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("field", ["serviceName", "procedureName", "tracing"])
def test_optional_fields_must_not_be_null(codec: str, field: str) -> None:
    with pytest.raises(FrameError):
        CODECS[codec].decode(encoded(codec, **{field: None}))


@pytest.mark.parametrize("codec", CODECS)
def test_unknown_fields_are_accepted(codec: str) -> None:
    assert CODECS[codec].decode(encoded(codec, future={"x": [1]})).seq == 1


def test_duplicate_fields_are_refused() -> None:
    whole = encoded("json")
    for double in (b'"seq":1,"seq":7', b'"seq":1,"\\u0073eq":7'):
        with pytest.raises(FrameError, match="twice"):
            CODECS["json"].decode(whole.replace(b'"seq":1', double))
    # In other fields the duplicate is not checked.
    assert CODECS["json"].decode(whole.replace(b'{"n":1}', b'{"seq":1,"seq":2}')).seq == 1
    packed = encoded("msgpack")
    with pytest.raises(FrameError, match="twice"):
        CODECS["msgpack"].decode(bytes([packed[0] + 1]) + packed[1:] + b"\xa3seq\x07")


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("field", ["id", "from", "to", "streamId", "serviceName"])
def test_ids_have_a_limit(codec: str, field: str) -> None:
    for name in ("__proto__", "constructor", "\0", "x" * 1_024):
        CODECS[codec].decode(encoded(codec, **{field: name}))
    with pytest.raises(FrameError):
        CODECS[codec].decode(encoded(codec, **{field: "x" * 1_048_576}))


def test_lone_surrogates_and_bad_utf8_are_refused() -> None:
    with pytest.raises(FrameError):
        CODECS["json"].decode(encoded("json").replace(b'"x"', b'"\\ud800"'))
    for codec in ("json", "msgpack"):
        with pytest.raises(FrameError):
            CODECS[codec].decode(encoded(codec, streamId="?!").replace(b"?!", b"\xff\xfe"))


@pytest.mark.parametrize("codec", CODECS)
def test_depth_is_bounded(codec: str) -> None:
    opening, closing = (b"[", b"]") if codec == "json" else (b"\x91", b"")
    nothing = b"null" if codec == "json" else b"\xc0"
    empty = encoded(codec, payload="?!?!")
    mark = b'"?!?!"' if codec == "json" else b"\xa4?!?!"
    for levels, results, fits in (
        (125, False, True),
        (126, False, False),
        (127, True, True),
        (128, True, False),
        (100_000, False, False),
    ):
        data = empty.replace(mark, opening * levels + nothing + closing * levels)
        message = CODECS[codec].decode(data, results=results)
        assert (message.fault is None) is fits and message.stream_id == "x"
        if not fits:
            assert "levels" in message.fault.message and message.payload == CODECS[codec].null
    with pytest.raises(FrameError, match="levels"):
        CODECS[codec].decode(encoded(codec, tracing="?!?!").replace(mark, opening * 128 + nothing + closing * 128))


@pytest.mark.parametrize("codec", CODECS)
def test_invalid_payload_is_found_at_any_place(codec: str) -> None:
    bad = b'"\xff"' if codec == "json" else b"\xa1\xff"
    for names in (list(WHOLE), [*WHOLE][::-1], ["payload", *(name for name in WHOLE if name != "payload")]):
        data = encode_value({name: "?!" if name == "payload" else WHOLE[name] for name in names}, codec)
        message = CODECS[codec].decode(data.replace(b'"?!"' if codec == "json" else b"\xa2?!", bad))
        assert message.fault is not None and (message.seq, message.ack, message.stream_id) == (1, 2, "x")


def test_payload_without_an_end_is_malformed() -> None:
    whole = encoded("json", more=1)
    for wrong in (b'{"n":1', b'{"n":[1}', b'"abc', b"1,2", b"1}}"):
        with pytest.raises(FrameError):
            CODECS["json"].decode(whole.replace(b'{"n":1}', wrong))


@given(st.binary(max_size=200))
def test_junk_is_refused(junk: bytes) -> None:
    for codec in CODECS.values():
        with pytest.raises(FrameError):
            codec.decode(junk)


@given(st.integers(0, 300), st.integers(0, 255))
def test_damaged_messages_are_read_or_refused(at: int, value: int) -> None:
    for name, codec in CODECS.items():
        data = bytearray(encoded(name, serviceName="demo", tracing={"traceparent": ""}))
        data[at % len(data)] = value
        try:
            message = codec.decode(bytes(data))
        except FrameError as error:
            assert 0 <= error.offset <= len(data)
        else:
            again = codec.encode(message)
            assert codec.encode(codec.decode(again)) == again


@pytest.mark.parametrize("size", [b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"])
def test_invalid_lengths_are_refused(size: bytes) -> None:
    with pytest.raises(FrameError):
        CODECS["msgpack"].decode(encoded("msgpack", payload="?!?!").replace(b"\xa4?!?!", size))


def test_bodies_are_checked_before_sending() -> None:
    assert CODECS["json"].body(b'{"n": 3}') == b'{"n":3}'
    for wrong in (b"{", b"NaN", b'"\xff"', b"1 2", b"[" * 200 + b"]" * 200):
        with pytest.raises(LocalError, match="json"):
            CODECS["json"].body(wrong)
    for wrong in (b"\xc1", b"\x92\x01", b"\xa1\xff", b"\x91" * 200 + b"\xc0"):
        with pytest.raises(LocalError, match="msgpack"):
            CODECS["msgpack"].body(wrong)


@pytest.mark.parametrize("codec", CODECS)
def test_close_is_recognized_in_any_encoding(codec: str) -> None:
    known = CODECS[codec]
    assert known.is_close(known.close)
    assert not known.is_close(encode_value({"type": "CLOSE", "more": 1}, codec))
    assert not known.is_close(encode_value({"type": "close"}, codec))
    assert not known.is_close(encode_value("type CLOSE and some", codec))
    assert CODECS["json"].is_close(b'{ "type" : "CLOSE" }')


def test_unknown_codec_is_named() -> None:
    with pytest.raises(LocalError, match="unknown codec 'xml'; known are: json, msgpack"):
        codec_of("xml")
