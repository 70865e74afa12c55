from __future__ import annotations

import pytest
from msgspec import Raw

from penstock.errors import SetupRejected
from penstock.river import handshake
from penstock.river.handshake import ExpectedState, HandshakeRequest, HandshakeResponse, check_state, code_of
from penstock.river.sequence import Sequence
from penstock.wire.river.codec import CODECS


@pytest.mark.parametrize("codec", CODECS)
def test_what_a_client_says_is_read(codec: str) -> None:
    known = CODECS[codec]
    sequence = Sequence(10, 1_000)
    sequence.sent(b"a")
    sequence.ack = 7
    asked = known.value(handshake.request("s", sequence, known.close, known), HandshakeRequest)
    assert (asked.protocol_version, asked.session_id, asked.said) == ("v2.0", "s", known.close)
    assert (asked.expected_session_state.next_expected_seq, asked.expected_session_state.next_sent_seq) == (7, 0)
    assert known.value(handshake.request("s", sequence, b"", known), HandshakeRequest).said == b""
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


def test_a_server_may_ask_again() -> None:
    known = CODECS["json"]
    assert handshake.is_rehandshake(known, Raw(b'{"type":"REHANDSHAKE_REQ"}'))
    for body in (b'{"type":"ACK"}', b"5", b'{"ok":true,"payload":1}'):
        assert not handshake.is_rehandshake(known, Raw(body))
    assert handshake.rehandshake(b"", known) == b'{"type":"REHANDSHAKE_RESP"}'
