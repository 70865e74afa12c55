from __future__ import annotations

import pytest

from tests.river.peers import Raw, answer, body_of, client, messages
from weirpool.errors import FrameError, LinkLost, ProtocolError, ResumeRejected, SetupRejected
from weirpool.events import Closed, Established, Unlinked
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.river import handshake
from weirpool.river.handshake import ExpectedState, HandshakeRequest, HandshakeResponse, check_state, code_of
from weirpool.river.outbound import Sequence
from weirpool.settings import Settings
from weirpool.wire.river.codec import CODECS

ADD = {"serviceName": "demo", "procedureName": "add"}
ANSWER = {"type": "REHANDSHAKE_RESP", "metadata": {"token": "new"}}


@pytest.mark.parametrize("codec", CODECS)
def test_handshake_is_decoded(codec: str) -> None:
    known = CODECS[codec]
    sequence = Sequence(10, 1_000)
    sequence.sent(b"a")
    sequence.ack = 7
    asked = known.value(handshake.request("s", sequence, known.close, known), HandshakeRequest)
    assert (asked.protocol_version, asked.session_id, asked.metadata_body) == ("v2.0", "s", known.close)
    assert (asked.expected_session_state.next_expected_seq, asked.expected_session_state.next_sent_seq) == (7, 0)
    assert known.value(handshake.request("s", sequence, b"", known), HandshakeRequest).metadata_body == b""
    good = known.value(handshake.response(known, "s"), HandshakeResponse).status
    assert good.ok and good.session_id == "s"
    bad = known.value(handshake.response(known, "", "r", "C"), HandshakeResponse).status
    assert (bad.ok, bad.reason, bad.code) == (False, "r", "C")


@pytest.mark.parametrize(
    ("expected", "sent", "fits"),
    [(2, 5, True), (3, 5, True), (3, 0, True), (1, 5, False), (4, 5, False), (3, 6, False)],
)
def test_check_state_compares_both_sides(expected: int, sent: int, fits: bool) -> None:
    sequence = Sequence(10, 1_000)
    for _ in range(3):
        sequence.sent(b"x")
    sequence.acknowledged(2)
    sequence.ack = 5
    if fits:
        check_state(ExpectedState(expected, sent), sequence)
    else:
        with pytest.raises(SetupRejected) as refused:
            check_state(ExpectedState(expected, sent), sequence)
        assert refused.value.code == "SESSION_STATE_MISMATCH"


def test_unknown_codes_are_not_sent() -> None:
    assert code_of(SetupRejected("", "REJECTED_UNSUPPORTED_CLIENT")) == "REJECTED_UNSUPPORTED_CLIENT"
    assert code_of(SetupRejected("", "SECRET")) == code_of(SetupRejected("", 3)) == "REJECTED_BY_CUSTOM_HANDLER"


@pytest.fixture(params=["json", "msgpack"])
def raw(request: pytest.FixtureRequest) -> Raw:
    raw = Raw(request.param)
    raw.shake(metadata={"token": "old"})
    raw.events.clear()
    return raw


def test_server_requests_a_rehandshake(raw: Raw) -> None:
    raw.session.rehandshake(raw.now)
    (asked,) = raw.said()
    # The reference sends it as an ordinary message.
    assert (asked.stream_id, asked.control_flags, asked.seq) == ("rehandshake", 0, 1)
    assert body_of(asked, raw.codec) == {"type": "REHANDSHAKE_REQ"}
    raw.session.rehandshake(raw.now)
    assert raw.said() == []
    assert raw.say("rehandshake", 0, ANSWER, ack=1) == []
    (established,) = raw.events
    assert isinstance(established, Established) and b"new" in established.payload.data
    # Only one request was sent.
    raw.session.handle_timer(raw.now + 1.0)
    raw.said()
    assert not any(isinstance(event, Closed) for event in raw.events)
    (refused,) = raw.say("rehandshake", 0, ANSWER, ack=1)
    assert body_of(refused, raw.codec)["payload"]["code"] == "INVALID_REQUEST"


def test_unanswered_rehandshake_ends_the_session(raw: Raw) -> None:
    raw.session.rehandshake(raw.now)
    raw.say("a", 10, {}, **ADD)
    raw.session.handle_timer(raw.now + raw.settings.handshake_timeout)
    raw.said()
    closed = raw.events[-1]
    assert isinstance(closed, Closed) and isinstance(closed.error, LinkLost)
    assert len(raw.sessions) == 0


@pytest.mark.parametrize("payload", [{}, {"type": "REHANDSHAKE_REQ"}, {"type": "CLOSE"}, None, [1]])
def test_invalid_rehandshake_ends_the_session(raw: Raw, payload: object) -> None:
    raw.session.rehandshake(raw.now)
    raw.say("rehandshake", 0, payload)
    closed = raw.events[-1]
    assert isinstance(closed, Closed) and isinstance(closed.error, ProtocolError)


def test_rehandshake_may_have_no_metadata(raw: Raw) -> None:
    raw.session.rehandshake(raw.now)
    raw.say("rehandshake", 0, {"type": "REHANDSHAKE_RESP"})
    assert raw.events[-1].payload.data == b""  # type: ignore[attr-defined]


def test_rejection_after_a_rehandshake_is_not_sent(raw: Raw) -> None:
    raw.session.rehandshake(raw.now)
    raw.say("rehandshake", 0, ANSWER)
    raw.said()
    raw.session.close(raw.now, SetupRejected("no"))
    assert raw.said() == [] and len(raw.sessions) == 0


def test_reconnecting_client_sends_its_metadata_again(raw: Raw) -> None:
    raw.session.rehandshake(raw.now)
    raw.said()
    raw.session.link_down(raw.now, None)
    raw.session.rehandshake(raw.now)
    assert raw.session.take_output() == []
    session = raw.session
    raw.link()
    answer, *_ = raw.shake(metadata={"token": "new"})
    assert raw.session is session and body_of(answer, raw.codec)["status"]["ok"]
    assert b"new" in raw.events[-1].payload.data  # type: ignore[attr-defined]
    # A rejection of that handshake is sent.
    raw.session.close(raw.now, SetupRejected("no"))
    assert body_of(raw.said()[-1], raw.codec)["status"]["code"] == "REJECTED_BY_CUSTOM_HANDLER"


def test_handshake_timeout_is_a_setting() -> None:
    raw = Raw(settings=Settings(handshake_timeout=0.5))
    raw.shake()
    raw.session.rehandshake(raw.now)
    assert raw.session.next_timer() == raw.now + 0.5


def test_client_sends_nothing_before_the_response() -> None:
    session = client()
    session.open(Kind.CALL, "demo.add", Payload(b"{}"), 1)
    (handshake,) = messages(session.take_output())
    assert body_of(handshake)["metadata"] == {"token": 1}
    assert body_of(handshake)["expectedSessionState"] == {"nextExpectedSeq": 0, "nextSentSeq": 0}
    (established,) = answer(session, {"ok": True, "sessionId": session.session_id})
    assert isinstance(established, Established)
    (call,) = messages(session.take_output())
    assert (call.seq, call.service_name) == (0, "demo")
    session.confirm()
    assert isinstance(session.take_events()[0], Established)


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        ({"ok": False, "reason": "r", "code": "SESSION_STATE_MISMATCH"}, ResumeRejected, "SESSION_STATE_MISMATCH"),
        ({"ok": False, "reason": "r", "code": "MALFORMED_HANDSHAKE_META"}, SetupRejected, "MALFORMED_HANDSHAKE_META"),
        ({"ok": False, "reason": "r"}, SetupRejected, None),
        ({"ok": True, "sessionId": "another"}, ResumeRejected, None),
        ({"ok": "yes"}, FrameError, None),
    ],
)
def test_client_reports_the_reason_of_a_rejection(status: object, kind: type[Exception], code: str | None) -> None:
    session = client()
    number = session.open(Kind.CALL, "demo.add", Payload(b"{}"), 1)
    failed, closed = answer(session, status)
    assert failed.stream_id == number and type(failed.error) is kind  # type: ignore[attr-defined]
    assert type(closed.error) is kind and closed.error.code == code  # type: ignore[attr-defined]
    assert not session.link_wanted


@pytest.mark.parametrize("payload", [{"status": {"ok": True, "sessionId": "s"}}, {"type": "ACK"}, None])
def test_invalid_response_to_a_handshake_is_an_error(payload: object) -> None:
    session = client()
    (closed,) = answer(session, None, payload=payload)
    assert isinstance(closed.error, FrameError)  # type: ignore[attr-defined]


def test_response_from_another_server_is_an_error() -> None:
    session = client()
    (_,) = answer(session, {"ok": True, "sessionId": session.session_id}, **{"from": "OTHER"})
    assert not session.link_wanted


def test_unanswered_handshake_is_retried() -> None:
    session = client()
    session.handle_timer(1.0)
    (unlinked,) = session.take_events()
    assert isinstance(unlinked, Unlinked) and isinstance(unlinked.error, LinkLost)
    session.link_down(1.0, None)
    assert session.link_wanted and session.next_timer() == 6.0
    session.take_output()
    session.link_up(2.0)
    assert body_of(messages(session.take_output())[0])["type"] == "HANDSHAKE_REQ"
