from __future__ import annotations

import pytest

from tests.river.peers import Duo, Raw, body_of, messages
from weirpool.errors import (
    ApplicationError,
    Canceled,
    CreditExceeded,
    LimitExceeded,
    LocalError,
    PeerClosed,
    Rejected,
    SessionClosed,
    SessionError,
    SetupRejected,
    StreamClosed,
    UnsupportedKind,
)
from weirpool.kinds import Kind
from weirpool.payload import Payload, PayloadRun
from weirpool.wire.river.codec import CANCEL, CLOSE


def test_unsupported_verbs_raise() -> None:
    duo = Duo()
    with pytest.raises(UnsupportedKind, match="fire"):
        duo.client.open(Kind.FIRE, "demo.add", Payload())
    with pytest.raises(UnsupportedKind, match="push"):
        duo.client.push(b"")
    with pytest.raises(LocalError, match="metadata"):
        duo.client.open(Kind.CALL, "demo.add", Payload(b"{}", b"m"), 1)
    with pytest.raises(LocalError, match="metadata"):
        duo.client.cancel(1, b"m")
    duo.client.commit()


@pytest.mark.parametrize("route", ["", "add", ".add", "demo."])
def test_route_must_have_service_and_procedure(route: str) -> None:
    with pytest.raises(LocalError, match=r"service\.procedure"):
        Duo().client.open(Kind.CALL, route, Payload(), 1)


def test_last_dot_splits_a_route() -> None:
    duo = Duo()
    duo.client.open(Kind.CALL, "a.b.c", Payload(), 1)
    (message,) = messages(duo.client.take_output())
    assert (message.service_name, message.procedure_name, message.control_flags) == ("a.b", "c", 10)
    # Empty data becomes an empty object.
    assert body_of(message) == {}


def test_unencodable_message_uses_no_number() -> None:
    duo = Duo()
    for payload in (Payload(b"{"), Payload(b"\xff"), Payload(b'"' + b"x" * (16 << 20) + b'"')):
        with pytest.raises(LocalError):
            duo.client.open(Kind.CALL, "demo.add", payload, 1)
    with pytest.raises(LocalError):
        duo.client.open(Kind.CALL, "demo.\udc80", Payload(b"{}"), 1)
    # Each side has sent a heartbeat.
    assert duo.client.sequence.seq == 1 and duo.client.open_streams == 0
    number = duo.client.open(Kind.CALL, "demo.add", duo.payload(1), 1)
    duo.drive()
    with pytest.raises(LocalError):
        duo.server.send(1, Payload(b"{"), True)
    assert duo.server.sequence.seq == 1
    duo.server.send(1, Payload(), True)
    duo.drive()
    assert duo.items("client", number) == [None]


@pytest.mark.parametrize("kind", [Kind.STREAM, Kind.CHANNEL])
def test_streams_need_credit(kind: Kind) -> None:
    with pytest.raises(LocalError, match="credit"):
        Duo().client.open(kind, "demo.count", Payload(), 0)


def test_uploads_and_channels_set_the_open_flags() -> None:
    duo = Duo()
    number = duo.client.open(Kind.UPLOAD, "demo.sum", duo.payload({}), 1)
    assert messages(duo.client.take_output())[0].control_flags == 2
    assert duo.client.credit(number) > 0
    duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 1, done=True)
    assert messages(duo.client.take_output())[0].control_flags == 10


def test_runs_are_sent_item_by_item() -> None:
    duo = Duo()
    number = duo.client.open(Kind.STREAM, "demo.count", duo.payload({}), 100)
    duo.drive()
    run = PayloadRun.of([duo.payload(each) for each in range(10)])
    assert duo.server.send_run(1, run, 2) == 8
    duo.drive()
    assert duo.items("client", number) == list(range(2, 10))


def test_credit_is_room_for_unacknowledged_messages() -> None:
    duo = Duo(max_unacked=20)
    number = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 1)
    duo.linked = False
    left = duo.client.credit(number)
    run = PayloadRun.of([duo.payload(each) for each in range(50)])
    assert duo.client.send_run(number, run) == left == 8
    assert duo.client.credit(number) == 0
    with pytest.raises(CreditExceeded):
        duo.client.send(number, duo.payload(0))
    # The last item may always be sent.
    duo.client.send(number, duo.payload(0), True)
    with pytest.raises(StreamClosed):
        duo.client.send(number, duo.payload(0))


def test_errors_are_sent_with_their_codes() -> None:
    for error, flags, said in (
        (ApplicationError("ODD", "m", b'{"n": 1}'), 8, {"code": "ODD", "message": "m", "extras": {"n": 1}}),
        (ApplicationError(0x301, "m"), 8, {"code": "0x301", "message": "m"}),
        (KeyError("secret"), 4, {"code": "UNCAUGHT_ERROR", "message": "the handler failed"}),
        (Canceled(message="m"), 4, {"code": "CANCEL", "message": "m"}),
    ):
        duo = Duo()
        duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
        duo.drive()
        duo.server.fail(1, error)
        (message,) = messages(duo.server.take_output())
        assert (message.control_flags, body_of(message)["payload"]) == (flags, said)
        assert duo.server.open_streams == 0
        duo.server.fail(1, error)


def test_failing_client_cancels_or_closes() -> None:
    duo = Duo()
    number = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 1)
    duo.drive()
    duo.client.fail(number, KeyError())
    duo.drive()
    assert duo.of("server", "Canceled")
    number = duo.client.open(Kind.UPLOAD, "demo.sum", duo.payload({}), 1)
    duo.drive()
    duo.server.send(2, duo.payload(1), True)
    duo.drive()
    # The response came early, so there is nothing to cancel and the open half is closed.
    duo.client.fail(number, KeyError())
    (message,) = messages(duo.client.take_output())
    assert message.control_flags == 8 and duo.client.open_streams == 0


def test_server_that_stops_reading_sends_nothing() -> None:
    duo = Duo()
    number = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 1)
    duo.drive()
    duo.client.send(number, duo.payload(1))
    duo.drive()
    duo.server.cancel(1)
    duo.client.send(number, duo.payload(2))
    duo.drive()
    assert duo.server._inbound.held_bytes == 0 and not duo.of("server", "ItemReceived")
    duo.server.complete(1)
    duo.drive()
    assert duo.server.open_streams == 0 and duo.of("client", "Completed")
    duo.client.send(number, duo.payload(3))
    duo.client.complete(number)
    duo.drive()
    assert duo.client.open_streams == 0 and not duo.of("client", "Failed")


def test_close_waits_for_open_streams() -> None:
    duo = Duo()
    number = duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
    duo.drive()
    duo.client.close(duo.now)
    with pytest.raises(SessionClosed):
        duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
    assert duo.client.link_wanted and duo.client.streams() == [number]
    duo.server.send(1, duo.payload(1), True)
    duo.drive()
    assert not duo.client.link_wanted
    assert duo.of("client", "Closed")[0].error is None
    duo.client.close(duo.now)
    duo.server.close(duo.now)
    duo.listen()
    assert duo.of("server", "Closed")[0].error is None and len(duo.sessions) == 0


def test_close_with_an_error_fails_open_streams() -> None:
    duo = Duo()
    number = duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
    duo.client.close(duo.now, LocalError("enough"))
    duo.listen()
    assert duo.of("client", "Failed")[0].stream_id == number


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_invalid_counts_and_unknown_streams(codec: str) -> None:
    duo = Duo(codec)
    with pytest.raises(LocalError):
        duo.client.request(1, 0)
    duo.client.request(99, 1)
    duo.client.cancel(99)
    duo.client.complete(99)
    duo.client.fail(99, KeyError())
    assert duo.client.credit(99) == 0
    with pytest.raises(StreamClosed):
        duo.client.send(99, Payload())


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_closing_server_sends_goodbye(codec: str) -> None:
    duo = Duo(codec)
    call = duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
    echo = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 1)
    duo.drive()
    duo.server.close(duo.now)
    duo.drive()
    # Open streams may finish.
    assert not duo.of("client", "Failed") and not duo.of("client", "Closed")
    duo.server.close(duo.now, SessionError("the grace is over"))
    duo.drive()
    failed = {event.stream_id: event.error for event in duo.of("client", "Failed")}
    assert set(failed) == {call, echo}
    for error in failed.values():
        assert isinstance(error, ApplicationError) and error.code == "UNEXPECTED_DISCONNECT"
        assert "SERVER closed the session" in error.message and isinstance(error.__cause__, PeerClosed)
    (closed,) = duo.of("client", "Closed")
    assert isinstance(closed.error, PeerClosed) and not duo.client.link_wanted


def test_server_without_streams_sends_goodbye_immediately() -> None:
    duo = Duo()
    duo.server.close(duo.now)
    duo.drive()
    (closed,) = duo.of("client", "Closed")
    assert isinstance(closed.error, PeerClosed)


def test_request_that_crosses_goodbye_is_rejected() -> None:
    duo = Duo()
    duo.server.close(duo.now)
    # The client has not read the goodbye yet.
    call = duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
    duo.drive()
    (failed,) = duo.of("client", "Failed")
    assert failed.stream_id == call
    assert isinstance(failed.error, Rejected) and failed.error.closing
    assert not duo.of("server", "Requested")


def test_closing_server_rejects_requests_and_its_client_drains() -> None:
    duo = Duo()
    first = duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
    duo.drive()
    duo.server.close(duo.now)
    second = duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
    duo.drive()
    (failed,) = duo.of("client", "Failed")
    assert failed.stream_id == second
    assert isinstance(failed.error, Rejected) and failed.error.closing
    assert len(duo.of("client", "Draining")) == 1
    with pytest.raises(SessionClosed):
        duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
    (requested,) = duo.of("server", "Requested")
    duo.server.send(requested.stream_id, duo.payload({}), True)
    duo.drive()
    assert [event.stream_id for event in duo.of("client", "ItemReceived")] == [first]
    assert len(duo.of("client", "Closed")) == len(duo.of("server", "Closed")) == 1


def test_goodbye_is_not_a_stream() -> None:
    raw = Raw()
    raw.shake()
    raw.say("a", 10, {}, serviceName="demo", procedureName="add")
    raw.session.close(raw.now, SessionError("over"))
    goodbye, canceled = raw.said()
    # Clients that ignore the goodbye get a cancellation for each stream.
    assert (canceled.stream_id, canceled.control_flags) == ("a", CANCEL)
    assert body_of(canceled)["payload"]["code"] == "UNEXPECTED_DISCONNECT"
    assert (goodbye.stream_id, goodbye.control_flags, body_of(goodbye)) == ("goodbye", CLOSE, {"type": "CLOSE"})
    assert goodbye.service_name is None


@pytest.mark.parametrize("error", [SetupRejected("no"), LimitExceeded("too much")])
def test_rejected_client_gets_no_goodbye(error: SessionError) -> None:
    raw = Raw()
    raw.shake()
    raw.session.close(raw.now, error)
    assert not any(message.stream_id == "goodbye" for message in raw.said())
