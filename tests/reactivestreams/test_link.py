from __future__ import annotations

import tracemalloc

import pytest

from tests.sim.reactive import Raw, make, opened
from weirpool import (
    LimitExceeded,
    LinkLost,
    Payload,
    PeerClosed,
    ProtocolError,
    SessionClosed,
    Settings,
    SetupRejected,
)
from weirpool.kinds import Kind
from weirpool.reactivestreams.session import ReactiveStreamsSession
from weirpool.wire.reactivestreams.codec import Message, Type, encode

# Hello.


def test_neither_side_waits_for_the_others_hello() -> None:
    client = ReactiveStreamsSession.client(Settings(), Payload())
    client.link_up(0.0)
    client.open(Kind.STREAM, "x", Payload(), 1)
    client.receive(b"\x02\x00\x00", 0.0)
    assert b"".join(client.take_output()).hex() == "0100000301780101"
    assert [type(event).__name__ for event in client.take_events()] == ["Established"]
    client.confirm()
    assert [type(event).__name__ for event in client.take_events()] == ["Established"]


@pytest.mark.parametrize("is_client", [True, False])
def test_other_version_is_answered_with_goodbye(is_client: bool) -> None:
    # THREATS 71.
    raw = Raw(is_client, bytes.fromhex("020100" if is_client else "010100"))
    raw.ended(SetupRejected, "version 1")


@pytest.mark.parametrize("data", ["01", "0100c0843d" + "01" * 10])
def test_endless_or_long_hello_ends_the_session(data: str) -> None:
    # THREATS 1 and 71.
    raw = Raw(False, bytes.fromhex(data), first_frame_timeout=5.0)
    if data == "01":
        assert raw.session.next_timer() == 5.0
        raw.session.handle_timer(5.0)
        raw.ended(SetupRejected, "no hello from the peer within 5 s")
    else:
        raw.ended(LimitExceeded, "1000000 extensions")


def test_silent_server_has_not_rejected_the_client() -> None:
    raw = Raw(True, b"\x02", first_frame_timeout=5.0)
    raw.session.handle_timer(5.0)
    raw.ended(LinkLost, "no hello from the peer within 5 s")


@pytest.mark.parametrize("data", ["010000", "020000"])
def test_second_hello_is_an_error(data: str) -> None:
    raw = Raw(False)
    raw.say(bytes.fromhex(data))
    raw.ended(ProtocolError, "Hello was sent twice")


def test_rejecting_server_sends_goodbye_instead_of_hello() -> None:
    raw = Raw(False, b"\x01\x00\x00")
    raw.session.close(1.0, SetupRejected("not you"))
    (only,) = raw.heard()
    assert (only.type, only.data) == (Type.GOODBYE, b"not you")
    refused = Raw(True, encode(only))
    assert isinstance(refused.events()[-1].error, SetupRejected)


# Goodbye.


def test_close_waits_for_streams_and_for_the_answer() -> None:
    pair = make()
    stream, there = opened(pair)
    pair.client.close(pair.now)
    with pytest.raises(SessionClosed):
        pair.client.open(Kind.STREAM, "x", Payload(), 1)
    refused = pair.server.open(Kind.STREAM, "back", Payload(), 1)
    pair.drive()
    (failed,) = pair.events("server", "Failed")
    # READING rs/0, 4: `subscribed` comes first; otherwise the id could not be reused.
    assert failed.stream_id == refused and "closing" in str(failed.error)
    assert not pair.events("client", "Closed")
    pair.server.complete(there)
    pair.drive()
    pair.advance(0.0)
    pair.drive()
    (closed,), (other,) = pair.events("client", "Closed"), pair.events("server", "Closed")
    assert closed.error is None and isinstance(other.error, PeerClosed)
    assert not pair.client.link_wanted and not pair.server.link_wanted
    assert pair.events("client", "Completed")[0].stream_id == stream


def test_answer_to_goodbye_has_a_time_limit() -> None:
    # THREATS 73.
    raw = Raw()
    raw.session.close(100.0)
    assert [message.type for message in raw.heard()] == [Type.GOODBYE]
    assert raw.session.next_timer() == 105.0
    # Messages in transit are ignored.
    raw.say(Message(Type.SUBSCRIBE, 1, 1, b"x"), b"\x07\x05\x00\x07\x05\x00")
    assert (raw.events(), raw.heard(), raw.session.link_wanted) == ([], [], True)
    raw.session.handle_timer(105.0)
    assert [event.error for event in raw.events()] == [None]
    assert not raw.session.link_wanted


@pytest.mark.parametrize("how", ["answer", "junk", "link"])
def test_any_end_of_the_link_completes_goodbye(how: str) -> None:
    raw = Raw()
    raw.session.close(100.0)
    raw.heard()
    if how == "link":
        raw.session.link_down(101.0, None)
    else:
        raw.say(b"\x0d\x00" if how == "answer" else b"\x00")
    assert [event.error for event in raw.events()] == [None]
    assert raw.heard() == []


def test_crossing_goodbyes_answer_each_other() -> None:
    pair = make()
    pair.client.close(pair.now)
    pair.server.close(pair.now)
    pair.drive()
    assert [pair.events(side, "Closed")[0].error for side in ("client", "server")] == [None, None]
    assert pair.client_sent.count(b"all streams are done") == pair.server_sent.count(b"all streams are done") == 1
    assert b"\x07goodbye" not in pair.client_sent + pair.server_sent


def test_goodbye_ends_all_streams_and_is_answered_once() -> None:
    raw = Raw()
    stream = raw.open()
    raw.say(Message(Type.SUBSCRIBE, 0, 1, b"x"))
    raw.heard()
    raw.events()
    # THREATS 73.
    raw.say(encode(Message(Type.GOODBYE, data=b"bye")) * 1000)
    assert [message.type for message in raw.heard()] == [Type.GOODBYE]
    *failed, closed = raw.events()
    assert [event.stream_id for event in failed] == [stream, -1]
    assert all(isinstance(event.error, PeerClosed) for event in [*failed, closed])
    assert "bye" in str(closed.error)


def test_lost_link_ends_the_session() -> None:
    raw = Raw()
    raw.open()
    raw.session.link_down(1.0, None)
    failed, closed = raw.events()
    assert "without goodbye" in str(closed.error) and failed.error is closed.error


def test_idle_timeout_ends_a_silent_session() -> None:
    raw = Raw(idle_timeout=10.0)
    raw.say(b"\x05\x09")
    raw.session.handle_timer(10.0)
    assert raw.session.next_timer() == 11.0
    raw.session.handle_timer(11.0)
    assert "nothing received" in str(raw.events()[-1].error)


def test_session_that_has_ended_holds_no_input() -> None:
    # Its link may take long to close, and the ledger no longer counts its bytes.
    raw = Raw()
    item = encode(Message(Type.ON_NEXT, raw.open(), 0, bytes(500_000)), 0)
    tracemalloc.start()
    try:
        for at in range(0, 300_000, 100_000):
            raw.say(item[at : at + 100_000])
        before = tracemalloc.get_traced_memory()[0]
        raw.session.close(1.0, LimitExceeded("too much"))
        raw.session.link_down(1.0, None)
        assert before - tracemalloc.get_traced_memory()[0] > 250_000
    finally:
        tracemalloc.stop()
