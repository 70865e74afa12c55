from __future__ import annotations

import pytest

from weirpool import ProtocolError, Settings
from weirpool.reactivestreams.accept import ReactiveStreamsDetector


def make() -> ReactiveStreamsDetector:
    acceptor = ReactiveStreamsDetector(Settings(first_frame_timeout=5.0))
    acceptor.link_up(100.0)
    assert acceptor.next_timer() == 105.0
    return acceptor


def test_first_byte_starts_a_session_with_the_links_deadline() -> None:
    acceptor = make()
    assert acceptor.receive(b"", 101.0) is None
    session = acceptor.receive(b"\x01", 102.0)
    assert session is not None
    # THREATS 1: the deadline of the first byte remains.
    assert session.next_timer() == 105.0
    session.receive(b"\x00\x00", 103.0)
    assert [type(event).__name__ for event in session.take_events()] == ["Established"]
    assert session.take_output() == [b"\x02\x00\x00"]
    # The timer of unfinished frames is not stopped by each that is complete, but finds none.
    session.handle_timer(132.0)
    assert session.next_timer() is None
    assert session.take_events() == []


def test_hello_may_be_followed_immediately() -> None:
    session = make().receive(bytes.fromhex("01000003057469636b730100"), 100.0)
    assert session is not None
    assert [type(event).__name__ for event in session.take_events()] == ["Established", "Requested"]
    assert b"".join(session.take_output()).hex() == "020000060100"


@pytest.mark.parametrize(
    ("data", "what"),
    [
        # THREATS 10.
        (b"GET / HTTP/1.1\r\n", "an HTTP request"),
        (b"\x16\x03\x01", "TLS ClientHello"),
        (b"SSH-2.0", "SSH"),
        (b"\x00\x00\x20", "a frame of RSocket"),
        (b"\xff", "the byte 0xff"),
    ],
)
def test_junk_is_recognized_and_not_answered(data: bytes, what: str) -> None:
    acceptor = make()
    with pytest.raises(ProtocolError, match=what):
        acceptor.receive(data, 100.0)
    assert acceptor.farewell == b""


@pytest.mark.parametrize("data", [b"\x0e", b"\x40", b"hello"])
def test_unknown_type_is_answered(data: bytes) -> None:
    # docs/reference/rs-0.md, Hello 4.
    acceptor = make()
    with pytest.raises(ProtocolError, match="the byte 0x"):
        acceptor.receive(data, 100.0)
    assert acceptor.farewell.startswith(b"\x0d")


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n", b"\x16\x03\x01", b"\x00\x00\x20", b"\xff"])
def test_anything_is_answered_if_no_other_protocol_is_possible(data: bytes) -> None:
    acceptor = ReactiveStreamsDetector(Settings(), exclusive=True)
    with pytest.raises(ProtocolError, match="not with reactive-streams-io"):
        acceptor.receive(data, 100.0)
    assert acceptor.farewell.startswith(b"\x0d")


def test_silent_client_is_rejected_with_goodbye() -> None:
    # docs/reference/rs-0.md, Hello 3: also when the server closes, or after the time limit.
    acceptor = make()
    assert acceptor.receive(b"", 100.0) is None
    assert acceptor.farewell[:1] == b"\x0d" and acceptor.farewell.endswith(b"no clientHello was received")


def test_message_before_hello_is_answered_with_goodbye() -> None:
    # THREATS 71.
    acceptor = make()
    with pytest.raises(ProtocolError, match="request instead of clientHello"):
        acceptor.receive(b"\x04\x01\x01", 100.0)
    assert acceptor.farewell.startswith(b"\x0d") and b"the first message is request" in acceptor.farewell


def test_goodbye_instead_of_hello_is_answered() -> None:
    session = make().receive(b"\x0d\x00", 100.0)
    assert session is not None and not session.link_wanted
    assert b"".join(session.take_output()) == b"\x0d\x07goodbye"
