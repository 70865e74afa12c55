"""Attacks on River's sessions by a hand-written client."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.river.peers import Duo, Raw, body_of, shaken
from weirpool.errors import FrameError, LimitExceeded, LocalError, ProtocolError
from weirpool.events import Canceled, Closed, Completed, ItemReceived, Requested
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.river.accept import RiverDetector
from weirpool.river.identity import Identity
from weirpool.river.sessions import Sessions
from weirpool.settings import Settings
from weirpool.wire.framing import framed
from weirpool.wire.river.message import Message
from weirpool.wire.river.values import encode_value

KIB = 1024
ADD = {"serviceName": "demo", "procedureName": "add"}
ECHO = {"serviceName": "demo", "procedureName": "echo"}
COUNT = {"serviceName": "demo", "procedureName": "count"}
CODECS = ["json", "msgpack"]


@pytest.fixture(params=CODECS)
def raw(request: pytest.FixtureRequest) -> Raw:
    return shaken(request.param)


def invalid(said: list[Message], codec: str) -> bool:
    return [(each.control_flags, body_of(each, codec)["payload"]["code"]) for each in said] == [(4, "INVALID_REQUEST")]


def peak_of(attack: Callable[[], None]) -> int:
    """Return the peak of allocated bytes during `attack`; no other thread runs meanwhile, whose bytes would count."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60.0)
    tracemalloc.start()
    try:
        attack()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        sys.setswitchinterval(interval)


# THREATS 58


@pytest.mark.parametrize("fields", [{"seq": 2}, {"seq": 2**53 - 1}, {"ack": 2}, {"ack": 2**53 - 1}])
def test_a_gap_closes_the_link_and_keeps_the_session(raw: Raw, fields: dict[str, int]) -> None:
    raw.say("a", 10, {}, seq=0, **ADD)
    raw.events.clear()
    assert raw.say("b", 10, {}, **{"seq": 1, **fields}, **ADD) == [] and raw.events == []
    assert not raw.session.link_wanted and len(raw.sessions) == 1
    assert raw.session.sequence.ack == 1


def test_a_message_that_comes_again_has_no_effect(raw: Raw) -> None:
    raw.say("a", 2, {}, **ECHO)
    raw.session.request(1, 10)
    raw.say("a", 0, {"msg": "x"})
    raw.events.clear()
    for flags, fields in ((0, {}), (2, ECHO), (4, {}), (8, {}), (1, {}), (0, {"ack": 2**53 - 1})):
        assert raw.say("a", flags, {"msg": "x"}, seq=1, **fields) == []
    assert raw.events == [] and raw.session.open_streams == 1 and raw.session.sequence.first == 1


# THREATS 59


def test_a_peer_that_acknowledges_nothing_costs_a_bounded_session() -> None:
    raw = Raw(settings=Settings(max_unacked=1_000, resume_bytes=64 * KIB))
    raw.shake()
    raw.say("a", 10, {}, **COUNT)

    def attack() -> None:
        # Each is answered, and no response is acknowledged.
        for number in range(20_000):
            raw.say(f"x{number}", 0, {"n": number})
            raw.events[:-1] = []
            if isinstance(raw.events[-1], Closed):
                return

    assert peak_of(attack) < 2_000 * KIB
    closed = raw.events[-1]
    assert isinstance(closed, Closed) and isinstance(closed.error, LimitExceeded) and len(raw.sessions) == 0


def test_callers_learn_that_their_peer_was_given_up() -> None:
    duo = Duo(max_unacked=20)
    number = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 1)
    duo.drive()
    duo.linked = False
    while duo.client.open_streams:
        duo.client._outbound.send_message(b'"more"', 0, b"{}")
    duo.listen()
    (failed,) = duo.of("client", "Failed")
    assert failed.stream_id == number and failed.error.code == "UNEXPECTED_DISCONNECT"


# THREATS 60


@pytest.mark.parametrize("data", [b"{", b"\xff", b"NaN", b'"\\ud800"', b"[" * 200 + b"]" * 200])
def test_what_cannot_be_encoded_has_no_number(data: bytes) -> None:
    duo = Duo()
    number = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 1)
    before = duo.client.sequence.seq
    with pytest.raises(LocalError):
        duo.client.send(number, Payload(data))
    with pytest.raises(LocalError):
        duo.client.open(Kind.CALL, "demo.add", Payload(data), 1)
    with pytest.raises(LocalError):
        duo.client.open(Kind.CALL, "demo.\ud800", Payload(b"{}"), 1)
    assert duo.client.sequence.seq == before and duo.client.open_streams == 1
    duo.client.send(number, duo.payload({"msg": 1}))
    duo.drive()
    assert not duo.of("client", "Closed") and duo.client.link_wanted


def test_what_is_too_long_has_no_number() -> None:
    duo = Duo(max_frame_bytes=2_048, fragment_bytes=64)
    with pytest.raises(LocalError, match="max_frame_bytes"):
        duo.client.open(Kind.CALL, "demo.add", duo.payload("x" * 2_048), 1)
    assert (duo.client.sequence.seq, duo.client.open_streams) == (1, 0)


# THREATS 61


def test_an_id_is_opened_once(raw: Raw) -> None:
    raw.say("x", 2, {}, **ECHO)
    assert invalid(raw.say("x", 2, {}, **ECHO), raw.codec)
    assert [type(event) for event in raw.events] == [Requested, Canceled] and raw.session.open_streams == 0


@pytest.mark.parametrize("flags", [0, 8, 0b10000, 2**40, 2**53 - 1 - 0b111, 2**53 - 1])
def test_flags_that_nobody_knows_open_nothing(raw: Raw, flags: int) -> None:
    said = raw.say("x", flags, {}, **ADD)
    # A heartbeat is nothing else, and a server answers none.
    assert said == [] if flags & 1 else invalid(said, raw.codec)
    assert raw.say("x", flags, {}, **ADD) == []
    assert not any(isinstance(event, Requested) for event in raw.events)


def test_unknown_ids_are_answered_once_and_remembered_in_bounded_memory() -> None:
    raw = Raw("msgpack", settings=Settings(max_streams=100, max_unacked=100_000))
    raw.shake()

    def attack() -> None:
        for number in range(10_000):
            # Each response is acknowledged, so the cost is what is remembered.
            assert raw.say("x" * 900 + str(number), 0, None, ack=raw.session.sequence.seq)

    assert peak_of(attack) < 1_000 * KIB


def test_opening_and_canceling_costs_no_memory() -> None:
    raw = Raw("msgpack", settings=Settings(max_streams=100))
    raw.shake()

    def attack() -> None:
        said = 0
        for number in range(5_000):
            raw.say(f"s{number}", 2, "x" * 500, ack=said, **ECHO)
            said += len(raw.say(f"s{number}", 4, None, ack=said))
            raw.events.clear()

    assert peak_of(attack) < 500 * KIB
    assert raw.session.open_streams == 0


# THREATS 62


@pytest.mark.parametrize("name", ["__proto__", "constructor", "toString", "\0", "a.b.c", "", "💧" * 200, "x" * 1_024])
@pytest.mark.parametrize("field", ["streamId", "serviceName", "procedureName"])
def test_names_are_just_names(raw: Raw, name: str, field: str) -> None:
    fields: dict[str, Any] = {"streamId": "s", **ADD, field: name}
    raw.say(fields.pop("streamId"), 10, {}, **fields)
    (asked,) = raw.events
    assert isinstance(asked, Requested) and asked.route == f"{fields['serviceName']}.{fields['procedureName']}"
    raw.session.fail(asked.stream_id, KeyError())
    (answer,) = raw.said()
    assert answer.stream_id == (name if field == "streamId" else "s")


@pytest.mark.parametrize("name", ["x" * 1_048_576, "\ud800"])
@pytest.mark.parametrize("field", ["streamId", "serviceName", "procedureName"])
def test_names_that_are_none_end_the_session(name: str, field: str) -> None:
    raw = Raw()
    raw.shake()
    whole = {"id": "m", "from": "client-1", "to": "SERVER", "seq": 0, "ack": 0, "controlFlags": 10, "payload": {}}
    data = json.dumps(whole | {"streamId": "s", **ADD, field: name}).encode()
    raw.feed(framed(data))
    assert isinstance(raw.events[-1], Closed) and isinstance(raw.events[-1].error, ProtocolError)


# THREATS 63


def test_a_stream_that_is_over_stays_over(raw: Raw) -> None:
    raw.say("x", 2, {}, **ECHO)
    raw.session.request(1, 10)
    raw.say("x", 4, {"ok": False, "payload": {"code": "CANCEL", "message": "m"}})
    raw.events.clear()
    # It is unknown now, and is rejected once.
    assert invalid(raw.say("x", 8, {"type": "CLOSE"}), raw.codec)
    for flags in (8, 0, 4, 2, 8):
        assert raw.say("x", flags, {"type": "CLOSE"}, **ECHO) == []
    assert raw.events == []


def test_nothing_comes_behind_a_close(raw: Raw) -> None:
    raw.say("x", 2, {}, **ECHO)
    raw.session.request(1, 10)
    raw.say("x", 8, {"type": "CLOSE"})
    assert invalid(raw.say("x", 0, {"late": 1}), raw.codec)
    assert [type(event) for event in raw.events] == [Requested, Completed, Canceled]
    assert not any(isinstance(event, ItemReceived) for event in raw.events)


def test_a_close_that_is_never_answered_keeps_no_stream_of_a_handler_that_has_ended(raw: Raw) -> None:
    for number, (route, flags) in enumerate([(ADD, 2), (COUNT, 2), (ADD, 10), (COUNT, 10)], 1):
        raw.say(f"x{number}", flags, {}, **route)
        raw.session.send(number, Payload(b"1" if raw.codec == "json" else b"\x01"), True)
    assert raw.session.open_streams == 0
    # If the client may still send items, its handler has stopped reading.
    raw.say("e", 2, {}, **ECHO)
    raw.session.complete(5)
    raw.session.cancel(5)
    assert raw.session.open_streams == 0 and len(raw.said()) == 1


# THREATS 64


BOMBS = {
    "json": [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"id":"m","from":"client-1","to":"SERVER","seq":0,"seq":1,"ack":0,"streamId":"s","controlFlags":0,"payload":1}',
        b'{"id":"m","from":"client-1","to":"SERVER","seq":' + b"1" * 1_000_000 + b"}",
        b'{"id":"m","from":"client-1","to":"SERVER","seq":NaN,"ack":0,"streamId":"s","controlFlags":0,"payload":1}',
    ],
    "msgpack": [
        b"\x91" * 100_000,
        b"\x81\xa1a" * 100_000,
        b"\xdf\xff\xff\xff\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\x81\x01\x02",
        b"\x81\xa2id\xd4\x05\x00",
        b"\x81\xa2id\xa2\xff\xfe",
    ],
}


@pytest.mark.parametrize(("codec", "bomb"), [(codec, bomb) for codec, bombs in BOMBS.items() for bomb in bombs])
def test_bombs_end_the_session_and_nothing_else(codec: str, bomb: bytes) -> None:
    raw = Raw(codec)
    raw.shake()

    def attack() -> None:
        raw.feed(framed(bomb))

    assert peak_of(attack) < 6 * len(bomb) + 200 * KIB
    assert isinstance(raw.events[-1], Closed) and isinstance(raw.events[-1].error, ProtocolError)
    # Before the handshake it is not even answered.
    raw = Raw(codec)
    with pytest.raises(ProtocolError):
        RiverDetector(Settings(), Identity(codec), Sessions(1)).receive(framed(bomb), 0.0)


@pytest.mark.parametrize("codec", CODECS)
def test_extensions_that_nobody_knows_do_not_reach_a_type(codec: str) -> None:
    raw = Raw(codec)
    raw.shake()
    body = msgspec.msgpack.encode({"n": msgspec.msgpack.Ext(77, b"x")}) if codec == "msgpack" else b'{"$x":"eA=="}'
    whole = raw.encode({"streamId": "s", "controlFlags": 10, "payload": 77, **ADD})
    mark = b'"payload":77' if codec == "json" else b"\xa7payload\x4d"
    assert mark in whole
    raw.feed(framed(whole.replace(mark, mark[:-2] + body if codec == "json" else mark[:-1] + body)))
    # A body is bytes here; it is decoded strictly later.
    assert isinstance(raw.events[-1], Requested) and raw.events[-1].payload.data == body


# THREATS 65


def test_heartbeats_are_answered_by_clients_alone() -> None:
    duo = Duo()
    seen: list[str] = []

    def note(message: Message, direction: str) -> str:
        seen.extend([direction] * (message.control_flags & 1))
        return ""

    duo.lose = note
    duo.advance(10.0)
    # One heartbeat of ours per second, one answer to each, and no answer to that.
    assert seen == ["s>c", "c>s"] * 10


def test_a_flood_of_heartbeats_is_answered_by_nothing_and_costs_nothing(raw: Raw) -> None:
    def attack() -> None:
        for _ in range(5_000):
            assert raw.say("h", 1, {"type": "ACK"}, ack=raw.session.sequence.seq) == []

    assert peak_of(attack) < 200 * KIB
    assert raw.events == []


def test_a_server_that_floods_heartbeats_costs_its_client_little() -> None:
    # THREATS 59, 65: each is answered, and no answer is acknowledged.
    duo = Duo(max_unacked=1_000)
    duo.linked = False
    name, client = duo.server.us, duo.client

    def attack() -> None:
        for seq in range(5_000):
            whole = {"id": "m", "from": name, "to": client.us, "seq": seq, "ack": 0, "streamId": "h"}
            client.receive(framed(encode_value(whole | {"controlFlags": 1, "payload": {"type": "ACK"}}, "json")), 0.0)
            client.take_output()

    assert peak_of(attack) < 1_000 * KIB
    duo.listen()
    (closed,) = duo.of("client", "Closed")
    assert isinstance(closed.error, LimitExceeded)


@pytest.mark.parametrize("codec", CODECS)
def test_bombs_from_a_server_end_the_session_of_its_client(codec: str) -> None:
    # THREATS 64
    for bomb in BOMBS[codec]:
        duo = Duo(codec)
        number = duo.client.open(Kind.CALL, "demo.add", duo.payload({}), 1)
        duo.client.receive(framed(bomb), duo.now)
        duo.listen()
        (failed,) = duo.of("client", "Failed")
        assert failed.stream_id == number and failed.error.code == "UNEXPECTED_DISCONNECT"


# THREATS 66


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x01\x00\x00\x00"])
def test_a_length_that_lies_costs_no_memory(length: bytes) -> None:
    raw = Raw()
    raw.shake()
    piece = bytes(64 * KIB)

    def attack() -> None:
        raw.feed(length)
        # Messages that are too long are skipped and not held.
        for _ in range(200):
            raw.feed(piece)

    assert peak_of(attack) < 128 * KIB
    assert raw.events[1:] == []
    fresh = Raw()
    with pytest.raises(FrameError, match="a length of"):
        fresh.acceptor.receive(length, 0.0)
