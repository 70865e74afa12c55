from __future__ import annotations

import pytest
from hypothesis import given

from tests.wire.reactivestreams.test_codec import MEANT, VECTORS
from tests.wire.reactivestreams.test_decoder import conversations
from weirpool import FrameError, Kind, LimitExceeded, LocalError, Payload, Settings
from weirpool.protocols import client_session
from weirpool.wire.reactivestreams.codec import Message, Type, encode
from weirpool.wire.reactivestreams.dump import Encoder, ReactiveStreamsDump, line, read_messages, to_object


@given(conversations())
def test_objects_round_trip(conversation: list[tuple[Message, int]]) -> None:
    raw = b"".join(encode(message, size) for message, size in conversation)
    encoder = Encoder()
    if raw:
        objects = [to_object(message) for message in read_messages(raw)]
        assert b"".join(encoder.encode(each) for each in objects) == raw


@pytest.mark.parametrize(("vector", "message"), list(zip(VECTORS, MEANT, strict=True)), ids=lambda each: str(each)[:30])
def test_vectors(vector: dict[str, object], message: Message) -> None:
    shown = to_object(message)
    assert str(vector["message"]).startswith(str(shown["type"]))
    assert Encoder().encode(shown).hex().startswith(str(vector["hex"]))


def test_fields_have_the_names_of_the_document() -> None:
    assert to_object(Message(Type.SUBSCRIBE, 1, 5, b"ticks")) == {
        "type": "subscribe", "publisher": "ticks", "subscriber": 1, "demand": 5,
    }  # fmt: skip
    assert to_object(Message(Type.CLIENT_HELLO, ids=(1,))) == {"type": "clientHello", "version": 0, "extensions": [1]}


def test_line_has_all_fields_and_no_control_characters() -> None:
    assert line(Message(Type.ON_NEXT, 1, 0, b"a\x1b[2J\xff")) == r'onNext subscriber=1 element="a\x1b[2J\xff"(6)'
    assert line(Message(Type.ON_ERROR, 1, 0, b"x" * 100)).endswith(f'"{"x" * 60}…"(100)')
    assert line(Message(Type.SERVER_HELLO, ids=(1, 2))) == "serverHello version=0 extensions=[1, 2]"


@pytest.mark.parametrize(
    ("raw", "error", "what"),
    [
        ("", FrameError, "byte 0: the input is empty"),
        ("050107", FrameError, "byte 2: the last message is incomplete: it has only 1 bytes"),
        ("050100", FrameError, "byte 3: message type 0"),
        ("0701ffffff7f", LimitExceeded, "element of onNext"),
    ],
)
def test_malformed_messages_are_reported_with_their_offset(raw: str, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        list(read_messages(bytes.fromhex(raw)))


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ([], "not a JSON object"),
        ({"type": "onFirst"}, "'onFirst'; it must be one of clientHello"),
        ({"type": "cancel", "subscriber": True}, "must be an integer"),
        ({"type": "cancel", "subscriber": 1, "demand": 1}, "cancel has no demand"),
        ({"type": "cancel"}, "subscriber of cancel is None"),
        ({"type": "onNext", "subscriber": 1, "element": "abc"}, "hex digits"),
        ({"type": "goodbye", "reason": "\ud800"}, "can be encoded in UTF-8"),
        ({"type": "goodbye", "reason": 1}, "must be a string"),
        ({"type": "clientHello", "version": 0, "extensions": 1}, "array of integers"),
    ],
)
def test_invalid_objects_are_refused(value: object, what: str) -> None:
    with pytest.raises(LocalError, match=what):
        Encoder().encode(value)


def test_reader_shows_messages_from_split_input() -> None:
    session = client_session("reactive-streams", Settings())
    session.link_up(0)
    session.open(Kind.STREAM, "count", Payload(b"3"), 5)
    data = b"".join(session.take_output())
    reader = ReactiveStreamsDump("reactive-streams-0").reader("", False, False)
    found = [text for at in range(len(data)) for text in reader.lines(data[at : at + 1])]
    assert [text.split()[0] for text in found] == ["clientHello", "subscribe"]
    (lost,) = reader.lines(b"\xff" * 12)
    assert "nothing more can be shown" in lost
    assert reader.lines(data) == []
