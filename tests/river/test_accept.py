from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.river.peers import Raw, body_of
from weirpool.errors import FrameError, ProtocolError, SessionClosed, SetupRejected
from weirpool.events import Closed, Established
from weirpool.payload import Payload
from weirpool.settings import Settings
from weirpool.wire.framing import framed


def code(raw: Raw, **handshake: Any) -> Any:
    """Return the code of a rejected handshake; None for an accepted one."""
    (answer,) = raw.shake(**handshake)
    return body_of(answer)["status"].get("code")


def test_handshake_is_answered() -> None:
    raw = Raw()
    (answer,) = raw.shake(metadata={"token": 1})
    assert (answer.from_, answer.to, answer.seq, answer.ack, answer.control_flags) == ("SERVER", "client-1", 0, 0, 0)
    assert body_of(answer) == {"type": "HANDSHAKE_RESP", "status": {"ok": True, "sessionId": "session-1"}}
    (established,) = raw.events
    assert isinstance(established, Established) and established.payload.data == b'{"token":1}'


def test_metadata_may_be_spelled_as_in_the_document() -> None:
    raw = Raw()
    raw.shake(metdata=[1])
    assert raw.events[0].payload.data == b"[1]"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("handshake", "expected"),
    [
        ({"protocolVersion": "v3.0"}, "PROTOCOL_VERSION_MISMATCH"),
        ({"protocolVersion": "v1.1"}, "PROTOCOL_VERSION_MISMATCH"),
        ({"protocolVersion": 2}, "MALFORMED_HANDSHAKE"),
        ({"type": "HANDSHAKE_RESP"}, "MALFORMED_HANDSHAKE"),
        ({"type": None}, "MALFORMED_HANDSHAKE"),
        ({"session": ""}, "MALFORMED_HANDSHAKE"),
        ({"expected": "0"}, "MALFORMED_HANDSHAKE"),
        ({"expectedSessionState": None}, "MALFORMED_HANDSHAKE"),
        ({"expected": 3}, "SESSION_STATE_MISMATCH"),
        ({"sent": 3}, "SESSION_STATE_MISMATCH"),
        ({"sent": -1}, "SESSION_STATE_MISMATCH"),
        ({"expected": 0.5}, "SESSION_STATE_MISMATCH"),
        ({"sent": 2**53 + 2}, "MALFORMED_HANDSHAKE"),
        ({"future": {"x": 1}}, None),
        ({"expected": 0.0}, None),
    ],
)
def test_bad_handshakes_are_rejected_with_a_code(handshake: dict[str, Any], expected: str | None) -> None:
    assert code(Raw(), **handshake) == expected


def test_v1_1_clients_are_served_if_configured() -> None:
    raw = Raw(settings=Settings(river_v1_1=True))
    assert code(raw, protocolVersion="v1.1") is None
    raw.say("s", 2 | 4, {}, serviceName="demo", procedureName="add")
    raw.session.send(1, Payload(b"1"), True)
    (answer,) = raw.said()
    assert answer.control_flags == 4 and body_of(answer)["ok"]


def test_v1_1_clients_may_omit_their_state() -> None:
    raw = Raw(settings=Settings(river_v1_1=True))
    early = {"protocolVersion": "v1.1", "expectedSessionState": msgspec.UNSET}

    def shaken() -> str:
        raw.link()
        answer = raw.feed(framed(msgspec.json.encode(raw_handshake(raw, early))))[0]
        return str(body_of(answer)["status"]["sessionId"])

    first = shaken()
    assert shaken() == first
    raw.session.close(raw.now, SessionClosed("over"))
    raw.now += 1
    # Another id informs it that its earlier session is gone.
    assert shaken() != first
    assert code(Raw(), expectedSessionState=None) == "MALFORMED_HANDSHAKE"
    handshake = raw_handshake(raw, {"expectedSessionState": msgspec.UNSET})
    raw = Raw()
    (refused,) = raw.feed(framed(msgspec.json.encode(handshake)))
    assert body_of(refused)["status"]["code"] == "MALFORMED_HANDSHAKE"


def raw_handshake(raw: Raw, more: dict[str, Any]) -> dict[str, Any]:
    payload = {"type": "HANDSHAKE_REQ", "protocolVersion": "v2.0", "sessionId": "session-1", **more}
    whole = msgspec.json.decode(raw.encode({"streamId": "hs", "controlFlags": 0}))
    return {**whole, "payload": {key: value for key, value in payload.items() if value is not msgspec.UNSET}}


@pytest.mark.parametrize("junk", [b"", b"{}", b"GET / HTTP/1.1\r\n", b"\xff" * 40])
def test_junk_is_not_answered(junk: bytes) -> None:
    raw = Raw()
    with pytest.raises(ProtocolError):
        raw.acceptor.receive(framed(junk), raw.now)
    assert raw.acceptor.farewell == b""


@pytest.mark.parametrize("field", ["type", "protocolVersion", "sessionId", "expectedSessionState"])
def test_handshake_without_a_field_is_rejected(field: str) -> None:
    payload: dict[str, object] = {
        "type": "HANDSHAKE_REQ",
        "protocolVersion": "v2.0",
        "sessionId": "s",
        "expectedSessionState": {"nextExpectedSeq": 0, "nextSentSeq": 0},
    }
    del payload[field]
    (answer,) = Raw().say("hs", 0, payload)
    assert body_of(answer)["status"]["code"] == "MALFORMED_HANDSHAKE"


def test_other_first_message_is_rejected() -> None:
    (answer,) = Raw().say("s", 2, {}, serviceName="demo", procedureName="add")
    assert body_of(answer)["status"]["code"] == "MALFORMED_HANDSHAKE"


def test_handshake_above_the_limit_is_rejected() -> None:
    raw = Raw()
    with pytest.raises(FrameError, match="a length of 4294967295"):
        raw.acceptor.receive(b"\xff\xff\xff\xff", raw.now)
    assert raw.acceptor.next_timer() == raw.now + 1.0


def test_handshake_in_pieces_is_accepted_without_further_bytes() -> None:
    raw = Raw()
    payload = {"type": "HANDSHAKE_REQ", "protocolVersion": "v2.0", "sessionId": "s"}
    state = {"expectedSessionState": {"nextExpectedSeq": 0, "nextSentSeq": 0}}
    data = framed(raw.encode({"streamId": "x", "controlFlags": 0, "payload": payload | state}))
    for at in range(len(data) - 1):
        assert raw.acceptor.receive(data[at : at + 1], raw.now) is None
    with pytest.raises(ProtocolError, match="did not wait"):
        raw.acceptor.receive(data[-1:] + b"\0", raw.now)


def test_server_accepts_only_its_own_id() -> None:
    raw = Raw(server="OTHER")
    assert code(raw) == "MALFORMED_HANDSHAKE"
    raw = Raw(server="")
    assert code(raw) is None and raw.session.us == "SERVER"


def test_session_is_resumed_only_by_its_client() -> None:
    raw = Raw()
    raw.shake()
    raw.say("s", 10, {}, serviceName="demo", procedureName="add")
    session = raw.session
    for change in ("from", "identity"):
        raw.link()
        fields: dict[str, object] = {}
        if change == "identity":
            raw.acceptor.identity = b"another certificate"
        else:
            fields = {"from": "evil"}
        payload = {
            "type": "HANDSHAKE_REQ",
            "protocolVersion": "v2.0",
            "sessionId": "session-1",
            "expectedSessionState": {"nextExpectedSeq": 0, "nextSentSeq": 0},
        }
        (answer,) = raw.feed(framed(raw.encode({"streamId": "x", "controlFlags": 0, "payload": payload, **fields})))
        assert body_of(answer)["status"]["code"] == "SESSION_STATE_MISMATCH"
    raw.link()
    raw.shake(expected=1)
    assert raw.session is session


def test_client_in_the_future_or_the_past_is_rejected() -> None:
    raw = Raw()
    raw.shake()
    raw.say("s", 10, {}, serviceName="demo", procedureName="add")
    raw.say("t", 10, {}, serviceName="demo", procedureName="add", ack=1)
    raw.session.fail(1, KeyError())
    raw.said()
    raw.say("h", 1, {"type": "ACK"}, ack=2)
    for state in ({"sent": 4}, {"sent": 3, "expected": 1}, {"sent": 3, "expected": 3}):
        raw.link()
        assert code(raw, **state) == "SESSION_STATE_MISMATCH"
    raw.link()
    assert code(raw, sent=3, expected=2) is None


def test_second_session_of_a_client_replaces_the_first_when_used() -> None:
    raw = Raw()
    raw.shake()
    first = raw.session
    raw.link()
    raw.shake(session="session-2")
    assert len(raw.sessions) == 2
    raw.seq = 0
    raw.say("h", 1, {"type": "ACK"})
    assert len(raw.sessions) == 1
    assert any(isinstance(event, Closed) for event in first.take_events())


def test_sessions_have_a_limit() -> None:
    raw = Raw(settings=Settings(max_connections=0, max_sessions=1))
    raw.shake()
    raw.link()
    # It may retry when another session has ended.
    (refused,) = raw.shake(session="session-2")
    status = body_of(refused)["status"]
    assert status["code"] == "SESSION_STATE_MISMATCH" and "the server is full" in status["reason"]
    assert len(raw.sessions) == 1


def test_later_rejection_has_a_code() -> None:
    for given, expected in (
        (SetupRejected("no", "REJECTED_UNSUPPORTED_CLIENT"), "REJECTED_UNSUPPORTED_CLIENT"),
        (SetupRejected("no", 3), "REJECTED_BY_CUSTOM_HANDLER"),
    ):
        raw = Raw()
        raw.shake()
        raw.session.close(raw.now, given)
        (answer,) = raw.said()
        assert body_of(answer)["status"] == {"ok": False, "reason": "no", "code": expected}
        assert len(raw.sessions) == 0


@pytest.mark.parametrize("handshake", [{"expected": 3}, {"sent": 3}, {"session": "known"}], ids=str)
def test_locked_out_peer_cannot_resume(handshake: dict[str, Any]) -> None:
    # THREATS 28, 95: known and unknown sessions look the same.
    raw = Raw()
    raw.shake(session="known")
    raw.link()
    raw.acceptor.locked_out = "the reason"
    assert raw.shake(**handshake) == [] and raw.session is None
    assert not raw.acceptor.farewell and not raw.acceptor.guessed


def test_locked_out_peer_may_begin_a_session() -> None:
    # THREATS 95
    raw = Raw()
    raw.acceptor.locked_out = "the reason"
    assert code(raw) is None


@pytest.mark.parametrize(("handshake", "guessed"), [({"expected": 3}, True), ({"protocolVersion": "v3.0"}, False)])
def test_only_unknown_sessions_are_guesses(handshake: dict[str, Any], guessed: bool) -> None:
    # THREATS 28
    raw = Raw()
    raw.shake(**handshake)
    assert raw.acceptor.guessed == guessed
