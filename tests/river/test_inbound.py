from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import ApplicationError, Invalid, ProtocolError
from penstock.events import Canceled, Completed, ItemReceived, Requested
from penstock.kinds import Kind
from penstock.payload import Payload
from penstock.settings import Settings
from penstock.wire.river.message import Message
from tests.river.peers import Duo, Raw, body_of

ADD = {"serviceName": "demo", "procedureName": "add"}
ECHO = {"serviceName": "demo", "procedureName": "echo"}
COUNT = {"serviceName": "demo", "procedureName": "count"}


@pytest.fixture
def raw() -> Raw:
    raw = Raw()
    raw.shake()
    raw.events.clear()
    return raw


def is_invalid(said: list[Message]) -> bool:
    (answer,) = said
    return answer.control_flags == 4 and body_of(answer)["payload"]["code"] == "INVALID_REQUEST"


def test_a_request_says_what_it_is(raw: Raw) -> None:
    raw.say("a", 10, {"a": 1}, **ADD)
    raw.say("b", 2, {}, **ECHO)
    raw.say("c", 2, {}, **COUNT)
    raw.say("d", 10, {}, serviceName="no.such", procedureName="thing")
    requests = [event for event in raw.events if isinstance(event, Requested)]
    assert [(each.kind, each.route, each.done) for each in requests] == [
        (Kind.CALL, "demo.add", True),
        (Kind.CHANNEL, "demo.echo", False),
        (Kind.STREAM, "demo.count", True),
        (Kind.CALL, "no.such.thing", True),
    ]


@pytest.mark.parametrize("flags", [0, 8, 0b10000, 2**40])
def test_a_stream_that_was_not_opened_is_refused_once(raw: Raw, flags: int) -> None:
    assert is_invalid(raw.say("x", flags, {}))
    assert raw.say("x", flags, {}) == []
    assert is_invalid(raw.say("y", flags, {}))


def test_refused_ids_are_not_remembered_for_ever() -> None:
    raw = Raw(settings=Settings(max_streams=10))
    raw.shake()
    for number in range(50):
        assert is_invalid(raw.say(f"x{number}", 0, {}))
    assert raw.say("x49", 0, {}) == []
    assert is_invalid(raw.say("x1", 0, {}))
    assert len(raw.session._streams.finished) == 10


def test_all_flags_at_once_are_a_heartbeat(raw: Raw) -> None:
    assert raw.say("x", 0b11111, {}, **ADD) == [] and raw.events == []


@pytest.mark.parametrize("missing", ["serviceName", "procedureName"])
def test_a_request_names_a_procedure(raw: Raw, missing: str) -> None:
    assert is_invalid(raw.say("x", 10, {}, **{name: ADD[name] for name in ADD if name != missing}))


def test_a_stream_that_is_opened_twice_is_ended(raw: Raw) -> None:
    raw.say("x", 2, {}, **ECHO)
    assert is_invalid(raw.say("x", 2, {}, **ECHO))
    assert isinstance(raw.events[-1], Canceled) and raw.session.open_streams == 0
    assert raw.say("x", 0, {}) == []


def test_streams_have_a_limit() -> None:
    raw = Raw(settings=Settings(max_streams=2))
    raw.shake()
    for name in ("a", "b"):
        assert raw.say(name, 2, {}, **ECHO) == []
    assert is_invalid(raw.say("c", 2, {}, **ECHO))


def test_procedures_that_take_no_items_get_none(raw: Raw) -> None:
    raw.say("x", 2, {}, **ADD)
    assert is_invalid(raw.say("x", 0, {}))
    raw.say("y", 10, {}, **ECHO)
    assert is_invalid(raw.say("y", 0, {}))


def test_items_and_their_end(raw: Raw) -> None:
    raw.say("x", 2, {}, **ECHO)
    raw.session.request(1, 10)
    raw.say("x", 0, [1])
    raw.say("x", 0, {"type": "CLOSE"})
    raw.say("x", 8, {"type": "CLOSE"})
    # THREATS 63: nobody minds a second one.
    assert raw.say("x", 8, {"type": "CLOSE"}) == []
    assert [type(event) for event in raw.events] == [Requested, ItemReceived, Completed]
    raw.session.complete(1)
    assert raw.session.open_streams == 0


def test_the_last_item_may_close(raw: Raw) -> None:
    raw.say("x", 2, {}, **ECHO)
    raw.session.request(1, 10)
    raw.say("x", 8, [1])
    assert isinstance(raw.events[-1], ItemReceived) and raw.events[-1].done


def test_a_cancellation_ends_all(raw: Raw) -> None:
    raw.say("x", 2, {}, **ECHO)
    (answer,) = raw.say("x", 4, {"garbage": 1})
    assert answer.control_flags == 8 and body_of(answer) == {"type": "CLOSE"}
    assert isinstance(raw.events[-1], Canceled)
    assert raw.session.open_streams == 0
    # As the reference, and the document, have it for all that is not known: it is said once.
    for name in ("x", "never"):
        assert is_invalid(raw.say(name, 4, {}))
        for flags in (4, 8, 0):
            assert raw.say(name, flags, {}) == []


def test_an_id_that_was_refused_opens_nothing(raw: Raw) -> None:
    assert is_invalid(raw.say("x", 0, {}))
    assert raw.say("x", 10, {}, **ADD) == [] and raw.events == []


def test_a_call_that_was_opened_half_leaves_nothing(raw: Raw) -> None:
    raw.say("x", 2, {}, **ADD)
    raw.session.send(1, Payload(b"3"), True)
    assert raw.session.open_streams == 0
    (answer,) = raw.said()
    assert answer.control_flags == 8
    assert raw.say("x", 8, {"type": "CLOSE"}) == []


# On the client.


def duo_with(kind: Kind) -> tuple[Duo, int, Any]:
    duo = Duo()
    route = {Kind.CALL: "demo.add", Kind.STREAM: "demo.count", Kind.CHANNEL: "demo.echo"}[kind]
    number = duo.client.open(kind, route, duo.payload({}), 10)
    duo.drive()
    return duo, number, duo.server


def test_what_nobody_waits_for_is_dropped() -> None:
    duo, number, server = duo_with(Kind.CALL)
    duo.client.cancel(number)
    server._outbound.send_message(b'"unheard of"', 0, b'{"ok":true,"payload":1}')
    duo.drive()
    assert not duo.of("client", "ItemReceived") and not duo.of("client", "Closed")


@pytest.mark.parametrize("body", [b"1", b"{}", b'{"ok":1,"payload":1}', b'{"ok":true}'])
def test_an_answer_that_is_no_result_fails_the_stream(body: bytes) -> None:
    duo, number, server = duo_with(Kind.CHANNEL)
    server._outbound.send_message(duo.client._streams.get(number).encoded, 0, body)  # type: ignore[union-attr]
    duo.drive()
    (failed,) = duo.of("client", "Failed")
    assert isinstance(failed.error, ProtocolError)
    assert duo.of("server", "Canceled")


def test_an_error_among_items_ends_the_stream() -> None:
    duo, number, server = duo_with(Kind.STREAM)
    name = duo.client._streams.get(number).encoded  # type: ignore[union-attr]
    server.send(1, duo.payload(1))
    server._outbound.send_message(name, 0, b'{"ok":false,"payload":{"code":"ODD","message":"m","extra":{"n":1}}}')
    duo.drive()
    (failed,) = duo.of("client", "Failed")
    assert isinstance(failed.error, ApplicationError) and failed.error.code == "ODD"
    assert failed.error.data == b'{"n":1}'
    assert duo.items("client", number) == [1] and duo.of("server", "Canceled")
    assert duo.client.open_streams == 0


def test_a_protocol_error_ends_both_halves() -> None:
    duo, number, server = duo_with(Kind.CHANNEL)
    server.fail(1, Invalid("INVALID_REQUEST", "no"))
    duo.drive()
    (failed,) = duo.of("client", "Failed")
    assert isinstance(failed.error, Invalid) and duo.client.credit(number) == 0


def test_metadata_is_said_again_when_it_is_asked_for() -> None:
    duo, _, server = duo_with(Kind.CALL)
    duo.client._handshake._metadata = b'{"token":1}'
    server._outbound.send_message(b'"rehandshake"', 0, b'{"type":"REHANDSHAKE_REQ"}')
    duo.linked = False
    duo.client.take_output()
    (request,) = server.take_output()
    duo.client.receive(request, duo.now)
    (answer,) = duo.client.take_output()
    assert b'"streamId":"rehandshake"' in answer
    assert b'"payload":{"type":"REHANDSHAKE_RESP","metadata":{"token":1}}' in answer


@pytest.fixture
def old() -> Raw:
    """A client of v1.1, whose closed bit is the one that cancels in v2.0."""
    raw = Raw(settings=Settings(river_v1_1=True))
    raw.shake(protocolVersion="v1.1")
    raw.events.clear()
    return raw


def test_v1_1_the_end_of_a_stream_comes_alone(old: Raw) -> None:
    old.say("a", 2, {}, **COUNT)
    old.session.send(1, Payload(b"1"), True)
    item, end = old.said()
    assert (item.control_flags, body_of(item)) == (0, {"ok": True, "payload": 1})
    assert (end.control_flags, body_of(end)) == (4, {"type": "CLOSE"})
    old.say("b", 2, {}, **ECHO)
    old.session.fail(2, ApplicationError("BOOM", "boom"))
    error, end = old.said()
    assert (error.control_flags, body_of(error)["payload"]["code"]) == (0, "BOOM")
    assert (end.control_flags, body_of(end)) == (4, {"type": "CLOSE"})


def test_v1_1_one_answer_has_the_closed_bit(old: Raw) -> None:
    old.say("a", 2 | 4, {"a": 1}, **ADD)
    old.session.fail(1, ValueError("a secret"))
    (answer,) = old.said()
    assert (answer.control_flags, body_of(answer)["payload"]["code"]) == (4, "UNCAUGHT_ERROR")


def test_v1_1_who_closes_a_subscription_wants_no_more(old: Raw) -> None:
    old.say("a", 2, {}, **COUNT)
    (end,) = old.say("a", 4, {"type": "CLOSE"})
    assert (end.control_flags, body_of(end)) == (4, {"type": "CLOSE"})
    assert isinstance(old.events[-1], Canceled)
    old.say("b", 2, {}, **ECHO)
    assert old.say("b", 4, {"type": "CLOSE"}) == []
    old.session.request(2, 1)
    old.said()
    assert isinstance(old.events[-1], Completed)


def test_a_call_of_a_procedure_that_goes_on_cancels_it() -> None:
    duo = Duo()
    number = duo.client.open(Kind.CALL, "demo.count", duo.payload({}), 1)
    duo.drive()
    duo.server.send(1, duo.payload(1))
    duo.drive()
    assert duo.items("client", number) == [1]
    assert duo.of("server", "Canceled") and duo.client.open_streams == duo.server.open_streams == 0
