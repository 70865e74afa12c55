from __future__ import annotations

import pytest

from penstock.errors import LinkLost, ProtocolError, SetupRejected
from penstock.events import Closed, Established
from penstock.river import handshake
from penstock.river.handshake import ExpectedState, HandshakeRequest, HandshakeResponse, check_state, code_of
from penstock.river.sequence import Sequence
from penstock.settings import Settings
from penstock.wire.river.codec import CODECS
from tests.river.peers import Raw, body_of

ADD = {"serviceName": "demo", "procedureName": "add"}
ANSWER = {"type": "REHANDSHAKE_RESP", "metadata": {"token": "new"}}


@pytest.mark.parametrize("codec", CODECS)
def test_what_a_client_says_is_read(codec: str) -> None:
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
def test_both_sides_must_have_what_the_other_lacks(expected: int, sent: int, fits: bool) -> None:
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


def test_codes_of_others_are_not_said() -> None:
    assert code_of(SetupRejected("", "REJECTED_UNSUPPORTED_CLIENT")) == "REJECTED_UNSUPPORTED_CLIENT"
    assert code_of(SetupRejected("", "SECRET")) == code_of(SetupRejected("", 3)) == "REJECTED_BY_CUSTOM_HANDLER"


@pytest.fixture(params=["json", "msgpack"])
def raw(request: pytest.FixtureRequest) -> Raw:
    raw = Raw(request.param)
    raw.shake(metadata={"token": "old"})
    raw.events.clear()
    return raw


def test_a_server_asks_and_is_told(raw: Raw) -> None:
    raw.session.rehandshake(raw.now)
    (asked,) = raw.said()
    # As the reference sends it: a message like any other.
    assert (asked.stream_id, asked.control_flags, asked.seq) == ("rehandshake", 0, 1)
    assert body_of(asked, raw.codec) == {"type": "REHANDSHAKE_REQ"}
    raw.session.rehandshake(raw.now)
    assert raw.said() == []
    assert raw.say("rehandshake", 0, ANSWER, ack=1) == []
    (established,) = raw.events
    assert isinstance(established, Established) and b"new" in established.payload.data
    # It was asked once, and is over.
    raw.session.handle_timer(raw.now + 1.0)
    raw.said()
    assert not any(isinstance(event, Closed) for event in raw.events)
    (refused,) = raw.say("rehandshake", 0, ANSWER, ack=1)
    assert body_of(refused, raw.codec)["payload"]["code"] == "INVALID_REQUEST"


def test_who_does_not_answer_loses_the_session(raw: Raw) -> None:
    raw.session.rehandshake(raw.now)
    raw.say("a", 10, {}, **ADD)
    raw.session.handle_timer(raw.now + raw.settings.handshake_timeout)
    raw.said()
    closed = raw.events[-1]
    assert isinstance(closed, Closed) and isinstance(closed.error, LinkLost)
    assert len(raw.sessions) == 0


@pytest.mark.parametrize("payload", [{}, {"type": "REHANDSHAKE_REQ"}, {"type": "CLOSE"}, None, [1]])
def test_what_is_no_answer_ends_the_session(raw: Raw, payload: object) -> None:
    raw.session.rehandshake(raw.now)
    raw.say("rehandshake", 0, payload)
    closed = raw.events[-1]
    assert isinstance(closed, Closed) and isinstance(closed.error, ProtocolError)


def test_an_answer_may_have_no_metadata(raw: Raw) -> None:
    raw.session.rehandshake(raw.now)
    raw.say("rehandshake", 0, {"type": "REHANDSHAKE_RESP"})
    assert raw.events[-1].payload.data == b""  # type: ignore[attr-defined]


def test_who_is_refused_then_is_told_nothing(raw: Raw) -> None:
    raw.session.rehandshake(raw.now)
    raw.say("rehandshake", 0, ANSWER)
    raw.said()
    raw.session.close(raw.now, SetupRejected("no"))
    assert raw.said() == [] and len(raw.sessions) == 0


def test_who_comes_back_says_it_anyhow(raw: Raw) -> None:
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
    # And who is refused at that is told so.
    raw.session.close(raw.now, SetupRejected("no"))
    assert body_of(raw.said()[-1], raw.codec)["status"]["code"] == "REJECTED_BY_CUSTOM_HANDLER"


def test_the_time_to_answer_is_a_setting() -> None:
    raw = Raw(settings=Settings(handshake_timeout=0.5))
    raw.shake()
    raw.session.rehandshake(raw.now)
    assert raw.session.next_timer() == raw.now + 0.5
