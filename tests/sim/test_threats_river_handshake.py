"""Attacks on River's handshakes by a hand-written client."""

from __future__ import annotations

import pytest

from tests.river.peers import Raw, body_of, shaken
from weirpool.errors import FrameError
from weirpool.events import Closed
from weirpool.wire.framing import framed
from weirpool.wire.river.message import Message

ADD = {"serviceName": "demo", "procedureName": "add"}
ECHO = {"serviceName": "demo", "procedureName": "echo"}
CODECS = ["json", "msgpack"]


@pytest.fixture(params=CODECS)
def raw(request: pytest.FixtureRequest) -> Raw:
    return shaken(request.param)


def code(said: list[Message], codec: str) -> str | None:
    """Return the code of a rejected handshake; None for an accepted one."""
    (answer,) = said
    found: str | None = body_of(answer, codec)["status"].get("code")
    return found


def invalid(said: list[Message], codec: str) -> bool:
    return [(each.control_flags, body_of(each, codec)["payload"]["code"]) for each in said] == [(4, "INVALID_REQUEST")]


# THREATS 55


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"type": "ACK"}, "MALFORMED_HANDSHAKE"),
        ({"type": "HANDSHAKE_REQ"}, "MALFORMED_HANDSHAKE"),
        ([], "MALFORMED_HANDSHAKE"),
        (None, "MALFORMED_HANDSHAKE"),
        ("HANDSHAKE_REQ", "MALFORMED_HANDSHAKE"),
    ],
)
def test_the_first_message_is_a_handshake(codec: str, payload: object, expected: str) -> None:
    raw = Raw(codec)
    assert code(raw.say("x", 0, payload), codec) == expected
    assert raw.session is None and len(raw.sessions) == 0


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("version", ["v0", "v1", "v1.1", "v2.1", "v20", "V2.0", "", "v2.0\0", "x" * 100_000])
def test_other_versions_are_refused(codec: str, version: str) -> None:
    raw = Raw(codec)
    (answer,) = raw.shake(protocolVersion=version)
    status = body_of(answer, codec)["status"]
    assert status["code"] == "PROTOCOL_VERSION_MISMATCH" and len(status["reason"]) < 200


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("flags", [1, 2, 4, 8, 2**40])
def test_a_handshake_has_no_flags(codec: str, flags: int) -> None:
    raw = Raw(codec)
    state = {"expectedSessionState": {"nextExpectedSeq": 0, "nextSentSeq": 0}}
    payload = {"type": "HANDSHAKE_REQ", "protocolVersion": "v2.0", "sessionId": "s", **state}
    assert code(raw.say("hs", flags, payload), codec) == "MALFORMED_HANDSHAKE"


def test_a_second_handshake_opens_nothing(raw: Raw) -> None:
    # It is a message without the open bit: the reference answers INVALID_REQUEST, once.
    assert invalid(raw.shake(), raw.codec)
    assert raw.events == [] and len(raw.sessions) == 1


def test_fields_that_nobody_knows_are_no_harm() -> None:
    raw = Raw()
    assert code(raw.shake(future=[{}], metadata=None), "json") is None


# THREATS 56


@pytest.mark.parametrize("number", [b"NaN", b"1e400", b"-1", b"9007199254740993", b"0.5", b'"0"', b"null", b"true"])
@pytest.mark.parametrize("field", ["nextExpectedSeq", "nextSentSeq"])
def test_numbers_of_a_handshake_are_whole(number: bytes, field: str) -> None:
    raw = Raw()
    numbers = {"nextExpectedSeq": b"0", "nextSentSeq": b"0", field: number}
    state = b",".join(b'"%s":%s' % (name.encode(), value) for name, value in numbers.items())
    payload = b'{"type":"HANDSHAKE_REQ","protocolVersion":"v2.0","sessionId":"s","expectedSessionState":{%s}}' % state
    data = raw.encode({"streamId": "hs", "controlFlags": 0, "payload": "?"}).replace(b'"?"', payload)
    try:
        said = raw.feed(framed(data))
    except FrameError:
        said = []
    assert raw.session is None and len(raw.sessions) == 0
    # Invalid JSON is not answered.
    assert not said or code(said, "json") in ("SESSION_STATE_MISMATCH", "MALFORMED_HANDSHAKE")


@pytest.mark.parametrize("codec", CODECS)
def test_msgpack_and_json_agree_on_numbers(codec: str) -> None:
    for number, accepted in ((0.0, True), (1.0, False), (-1, False), (2**53, False), (float("inf"), False)):
        if codec == "json" and number == float("inf"):
            continue
        raw = Raw(codec)
        said = raw.shake(sent=number)
        assert (code(said, codec) is None) == accepted


# THREATS 57


@pytest.mark.parametrize("codec", CODECS)
def test_a_session_cannot_be_taken_over(codec: str) -> None:
    raw = Raw(codec)
    raw.shake()
    raw.say("a", 2, {}, **ECHO)
    victim = raw.session
    shake: dict[str, object] = {
        "type": "HANDSHAKE_REQ",
        "protocolVersion": "v2.0",
        "sessionId": "session-1",
        "expectedSessionState": {"nextExpectedSeq": 0, "nextSentSeq": 0},
    }
    for thief in ("thief", "client-1\0", "CLIENT-1", ""):
        raw.link()
        fields: dict[str, object] = {"streamId": "hs", "controlFlags": 0, "payload": shake, "from": thief}
        assert code(raw.feed(framed(raw.encode(fields))), codec) == "SESSION_STATE_MISMATCH"
    # The same client with another session id ends the first session only after its first message.
    raw.link()
    raw.shake(session="guess")
    assert len(raw.sessions) == 2 and raw.session is not victim
    assert not any(isinstance(event, Closed) for event in victim.take_events())


def test_every_message_is_from_the_one_who_shook_hands(raw: Raw) -> None:
    raw.say("a", 10, {}, **ADD, **{"from": "client-2"})
    assert isinstance(raw.events[-1], Closed) and len(raw.sessions) == 0


def test_what_is_for_somebody_else_is_not_handled(raw: Raw) -> None:
    assert raw.say("a", 10, {}, to="OTHER", **ADD) == [] and raw.events == []
