from __future__ import annotations

from typing import Any

import pytest

from tests.river.peers import Duo, Raw, body_of
from weirpool.errors import ApplicationError, Invalid, ProtocolError
from weirpool.events import Canceled, Completed, ItemReceived, Requested
from weirpool.kinds import ANY, Kind
from weirpool.payload import Payload
from weirpool.settings import Settings
from weirpool.wire.river.message import Message

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


def test_request_decides_if_its_route_accepts_every_kind(raw: Raw) -> None:
    raw.session.ask_kinds(lambda route: ANY)
    raw.say("a", 10, {}, **ADD)
    raw.say("b", 2, {}, **ECHO)
    raw.say("b", 8, {"type": "CLOSE"}, **ECHO)
    requests = [event for event in raw.events if isinstance(event, Requested)]
    assert [(each.kind, each.done) for each in requests] == [(Kind.STREAM, True), (Kind.CHANNEL, False)]


def test_request_has_kind_and_route(raw: Raw) -> None:
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
def test_unopened_stream_is_rejected_once(raw: Raw, flags: int) -> None:
    assert is_invalid(raw.say("x", flags, {}))
    assert raw.say("x", flags, {}) == []
    assert is_invalid(raw.say("y", flags, {}))


def test_number_of_remembered_ids_is_limited() -> None:
    raw = Raw(settings=Settings(max_streams=10))
    raw.shake()
    for number in range(50):
        assert is_invalid(raw.say(f"x{number}", 0, {}))
    assert raw.say("x49", 0, {}) == []
    assert is_invalid(raw.say("x1", 0, {}))
    assert len(raw.session._streams.finished) == 10


def test_message_with_all_flags_is_a_heartbeat(raw: Raw) -> None:
    assert raw.say("x", 0b11111, {}, **ADD) == [] and raw.events == []


@pytest.mark.parametrize("missing", ["serviceName", "procedureName"])
def test_request_without_a_procedure_is_invalid(raw: Raw, missing: str) -> None:
    assert is_invalid(raw.say("x", 10, {}, **{name: ADD[name] for name in ADD if name != missing}))


def test_stream_that_is_opened_twice_ends(raw: Raw) -> None:
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


def test_further_requests_of_a_call_are_invalid(raw: Raw) -> None:
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
    # THREATS 63: a second one has no effect.
    assert raw.say("x", 8, {"type": "CLOSE"}) == []
    assert [type(event) for event in raw.events] == [Requested, ItemReceived, Completed]
    raw.session.complete(1)
    assert raw.session.open_streams == 0


def test_last_item_may_close(raw: Raw) -> None:
    raw.say("x", 2, {}, **ECHO)
    raw.session.request(1, 10)
    raw.say("x", 8, [1])
    assert isinstance(raw.events[-1], ItemReceived) and raw.events[-1].done


def test_cancellation_ends_both_halves(raw: Raw) -> None:
    raw.say("x", 2, {}, **ECHO)
    (answer,) = raw.say("x", 4, {"garbage": 1})
    assert answer.control_flags == 8 and body_of(answer) == {"type": "CLOSE"}
    assert isinstance(raw.events[-1], Canceled)
    assert raw.session.open_streams == 0
    # The reference and the document reject an unknown stream once.
    for name in ("x", "never"):
        assert is_invalid(raw.say(name, 4, {}))
        for flags in (4, 8, 0):
            assert raw.say(name, flags, {}) == []


def test_rejected_id_cannot_be_opened(raw: Raw) -> None:
    assert is_invalid(raw.say("x", 0, {}))
    assert raw.say("x", 10, {}, **ADD) == [] and raw.events == []


def test_half_open_call_is_removed_after_its_response(raw: Raw) -> None:
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


def test_messages_of_unknown_streams_are_dropped() -> None:
    duo, number, server = duo_with(Kind.CALL)
    duo.client.cancel(number)
    server._outbound.send_message(b'"unheard of"', 0, b'{"ok":true,"payload":1}')
    duo.drive()
    assert not duo.of("client", "ItemReceived") and not duo.of("client", "Closed")


@pytest.mark.parametrize("body", [b"1", b"{}", b'{"ok":1,"payload":1}', b'{"ok":true}'])
def test_invalid_result_fails_the_stream(body: bytes) -> None:
    duo, number, server = duo_with(Kind.CHANNEL)
    server._outbound.send_message(duo.client._streams.get(number).encoded, 0, body)  # type: ignore[union-attr]
    duo.drive()
    (failed,) = duo.of("client", "Failed")
    assert isinstance(failed.error, ProtocolError)
    assert duo.of("server", "Canceled")


def test_error_among_items_ends_the_stream() -> None:
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


def test_protocol_error_ends_both_halves() -> None:
    duo, number, server = duo_with(Kind.CHANNEL)
    server.fail(1, Invalid("INVALID_REQUEST", "no"))
    duo.drive()
    (failed,) = duo.of("client", "Failed")
    assert isinstance(failed.error, Invalid) and duo.client.credit(number) == 0


def test_client_answers_a_rehandshake() -> None:
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
    """Return a client of v1.1, whose closed bit is the cancel bit of v2.0."""
    raw = Raw(settings=Settings(river_v1_1=True))
    raw.shake(protocolVersion="v1.1")
    raw.events.clear()
    return raw


def test_v1_1_end_of_a_stream_is_a_separate_message(old: Raw) -> None:
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


def test_v1_1_single_response_has_the_closed_bit(old: Raw) -> None:
    old.say("a", 2 | 4, {"a": 1}, **ADD)
    old.session.fail(1, ValueError("a secret"))
    (answer,) = old.said()
    assert (answer.control_flags, body_of(answer)["payload"]["code"]) == (4, "UNCAUGHT_ERROR")


def test_v1_1_close_of_a_subscription_cancels_it(old: Raw) -> None:
    old.say("a", 2, {}, **COUNT)
    (end,) = old.say("a", 4, {"type": "CLOSE"})
    assert (end.control_flags, body_of(end)) == (4, {"type": "CLOSE"})
    assert isinstance(old.events[-1], Canceled)
    old.say("b", 2, {}, **ECHO)
    assert old.say("b", 4, {"type": "CLOSE"}) == []
    old.session.request(2, 1)
    old.said()
    assert isinstance(old.events[-1], Completed)


def test_call_of_a_streaming_procedure_cancels_it() -> None:
    duo = Duo()
    number = duo.client.open(Kind.CALL, "demo.count", duo.payload({}), 1)
    duo.drive()
    duo.server.send(1, duo.payload(1))
    duo.drive()
    assert duo.items("client", number) == [1]
    assert duo.of("server", "Canceled") and duo.client.open_streams == duo.server.open_streams == 0
