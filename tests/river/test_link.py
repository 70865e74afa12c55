from __future__ import annotations

import itertools
import re
import tracemalloc

import pytest

from tests.river.peers import RANDOM, Duo, Raw, answer, body_of, client, messages
from weirpool.errors import LimitExceeded, LinkLost, ProtocolError, UnsupportedKind
from weirpool.events import Closed, Established, Event, Requested, Unlinked
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.river.connect import new_client
from weirpool.river.identity import Identity
from weirpool.river.link import MAX_UNANSWERED
from weirpool.settings import Settings
from weirpool.wire.framing import framed
from weirpool.wire.river.message import Message
from weirpool.wire.river.values import encode_value

ADD = {"serviceName": "demo", "procedureName": "add"}


@pytest.fixture
def raw() -> Raw:
    raw = Raw()
    raw.shake()
    return raw


def test_repeated_message_is_dropped(raw: Raw) -> None:
    raw.say("a", 10, {}, **ADD)
    raw.events.clear()
    raw.say("a", 10, {}, seq=0, ack=2**53 - 1, **ADD)
    assert raw.events == [] and raw.session.sequence.ack == 1 and raw.session.link_wanted


@pytest.mark.parametrize("fields", [{"seq": 5}, {"seq": 2**53 - 1}, {"ack": 2}])
def test_gap_or_invalid_ack_closes_only_the_link(raw: Raw, fields: dict[str, object]) -> None:
    assert raw.say("a", 10, {}, **fields, **ADD) == []
    assert not raw.session.link_wanted and len(raw.sessions) == 1
    assert not any(isinstance(event, Closed) for event in raw.events)
    raw.session.link_down(raw.now, None)
    assert raw.session.link_wanted
    raw.link()
    (answer,) = raw.shake(expected=1)
    assert body_of(answer)["status"]["ok"]


def test_bytes_after_a_gap_are_not_part_of_the_next_link(raw: Raw) -> None:
    behind = [
        raw.encode({"streamId": name, "controlFlags": 10, "payload": {}, "seq": seq, **ADD})
        for seq, name in ((1, "b"), (2, "c"), (3, "d"))
    ]
    raw.feed(b"".join(map(framed, behind)))
    raw.session.link_down(raw.now, None)
    raw.link()
    raw.shake()
    raw.say("a", 10, {}, seq=0, **ADD)
    assert raw.session.sequence.ack == 1 and raw.session.link_wanted


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_half_a_message_is_dropped_with_its_link(codec: str) -> None:
    raw = Raw(codec)
    raw.shake()
    whole = framed(raw.encode({"streamId": "a", "controlFlags": 10, "payload": {}, **ADD}))
    for part in range(1, len(whole)):
        raw.feed(whole[:part])
        raw.session.link_down(raw.now, None)
        raw.link()
        (answer,) = raw.shake()
        assert body_of(answer, codec)["status"]["ok"]
    raw.feed(whole)
    assert raw.session.sequence.ack == 1 and not any(isinstance(event, Closed) for event in raw.events)


def test_messages_with_wrong_addresses_are_not_handled(raw: Raw) -> None:
    assert raw.say("a", 10, {}, to="SOMEONE", **ADD) == []
    assert not any(isinstance(event, Requested) for event in raw.events)
    # Its number counts.
    assert raw.session.sequence.ack == 1
    raw.say("a", 10, {}, **{"from": "evil"}, **ADD)
    closed = raw.events[-1]
    assert isinstance(closed, Closed) and isinstance(closed.error, ProtocolError)
    assert len(raw.sessions) == 0 and not raw.session.link_wanted


@pytest.mark.parametrize("junk", [b"junk", b"[]", b"{}", b""])
def test_invalid_message_ends_the_session(raw: Raw, junk: bytes) -> None:
    raw.feed(framed(junk))
    assert isinstance(raw.events[-1], Closed) and len(raw.sessions) == 0
    # Later bytes are ignored.
    assert raw.feed(framed(junk)) == []


def test_server_does_not_answer_heartbeats(raw: Raw) -> None:
    for _ in range(100):
        assert raw.say("h", 1, {"type": "ACK"}) == []


def test_second_handshake_is_an_unknown_stream(raw: Raw) -> None:
    (answer,) = raw.shake()
    assert body_of(answer)["payload"]["code"] == "INVALID_REQUEST"


def test_server_abandons_a_silent_link(raw: Raw) -> None:
    session = raw.session
    end = raw.now + 1.5
    while (due := session.next_timer()) is not None and due <= raw.now + 10.0:
        raw.now = due
        session.handle_timer(due)
        raw.events += session.take_events()
        if isinstance(raw.events[-1], Closed):
            break
    assert [type(event) for event in raw.events] == [Established, Unlinked, Closed]
    assert raw.now >= end + 5.0


def test_messages_are_sent_again_byte_for_byte() -> None:
    duo = Duo()
    duo.linked = False
    duo.client.open(Kind.CALL, "demo.add", duo.payload({"a": 1}), 1)
    first = duo.client.take_output()
    duo.cut()
    duo.client.link_up(duo.now)
    duo.client.take_output()
    answer(duo.client, {"ok": True, "sessionId": duo.client.session_id})
    # The answer to the server's greeting comes first.
    assert b"".join(duo.client.take_output()).endswith(b"".join(first))


def test_link_may_deliver_single_bytes() -> None:
    duo = Duo()
    duo.linked = False
    duo.client.open(Kind.CALL, "demo.add", duo.payload({"a": 1}), 1)
    for piece in duo.client.take_output():
        for at in range(len(piece)):
            duo.server.receive(piece[at : at + 1], duo.now)
    assert [type(event).__name__ for event in duo.server.take_events()] == ["Requested"]


def test_servers_open_no_streams() -> None:
    duo = Duo()
    with pytest.raises(UnsupportedKind):
        duo.server.open(Kind.CALL, "demo.add", Payload(), 1)


def test_client_stops_after_unanswered_first_handshakes() -> None:
    client = new_client(Settings(), Identity(), b"", RANDOM)
    for attempt in range(MAX_UNANSWERED):
        assert client.link_wanted
        client.link_up(attempt)
        client.link_down(attempt + 0.1, None)
    (closed,) = client.take_events()
    assert isinstance(closed, Closed) and isinstance(closed.error, LinkLost)
    assert "both sides must use the same codec, ours is json" in str(closed.error)
    assert not client.link_wanted


# Life.


def unlinked(events: list[Event]) -> bool:
    return any(isinstance(event, Unlinked) for event in events)


def test_any_byte_counts_as_life(raw: Raw) -> None:
    # THREATS 91: a message that takes longer than the silence limit.
    message = framed(raw.encode({"streamId": "a", "controlFlags": 10, "payload": "x" * 100, **ADD}))
    for at, byte in enumerate(message):
        raw.now = 100.0 + 1.5 * at
        while (due := raw.session.next_timer()) < raw.now:
            raw.session.handle_timer(due)
        raw.feed(bytes((byte,)))
    assert not unlinked(raw.events)
    assert [type(event) for event in raw.events][-1] is Requested
    raw.session.handle_timer(raw.now + 2.0)
    assert unlinked(raw.session.take_events())


def test_output_that_leaves_counts_as_life(raw: Raw) -> None:
    # THREATS 91
    for second in range(1, 20):
        raw.session.progressed(100.0 + second)
        raw.session.handle_timer(100.0 + second)
    assert not unlinked(raw.session.take_events())
    raw.session.handle_timer(120.9)
    assert not unlinked(raw.session.take_events())
    raw.session.handle_timer(121.0)
    assert unlinked(raw.session.take_events())


def test_client_sends_heartbeats_during_a_long_message() -> None:
    # The server's heartbeats, which it answers, follow that message.
    duo = Duo()
    sent = duo.client.sequence.seq
    said = []
    for second in range(1, 6):
        duo.client.receive(b"\0\0\1\0" if second == 1 else b"x", duo.now + second - 0.5)
        duo.client.handle_timer(duo.now + second)
        said.append([(message.seq, message.control_flags) for message in messages(duo.client.take_output())])
    # The answer to the server's greeting counts in the first second.
    assert said == [[], *([(sent + at, 1)] for at in range(4))]
    assert not unlinked(duo.client.take_events())


@pytest.mark.parametrize("begins", [at / 10 for at in range(20)])
def test_client_heartbeats_in_time_during_a_long_message(begins: float) -> None:
    # The pauses between its heartbeats leave a third of the server's limit of 2 s for the transit.
    duo = Duo()
    said = []
    for tick in range(1, 600):
        now = duo.now + tick / 100
        if tick == 1 + int(begins * 100):
            duo.server.handle_timer(duo.server.next_timer() or 0.0)
            duo.client.receive(b"".join(duo.server.take_output()), now)
        elif tick > begins * 100:
            duo.client.receive(b"\0\1\0\0" if tick == 2 + int(begins * 100) else b"x", now)
        duo.client.handle_timer(now)
        if duo.client.take_output():
            said.append(now)
    pauses = [after - before for before, after in itertools.pairwise(said)]
    assert max(pauses) < 1.4


def test_client_without_input_sends_nothing() -> None:
    duo = Duo()
    duo.client.handle_timer(duo.now + 1.0)
    assert duo.client.take_output() == []


@pytest.mark.parametrize(("moved", "size", "links"), [(True, 10_000, 8), (True, 1_000, 128), (False, 10_000, 128)])
def test_links_without_acknowledgement_end_the_session(moved: bool, size: int, links: int) -> None:
    # THREATS 91
    duo = Duo()

    def lose(message: Message, direction: str) -> str:
        if message.service_name is None:
            return ""
        if moved:
            duo.client.progressed(duo.now)
        return "before"

    duo.client.open(Kind.CALL, "demo.add", duo.payload({"a": 1, "b": "x" * size}))
    duo.lose = lose
    duo.drive()
    while not duo.of("client", "Closed"):
        duo.link()
    assert duo.links == links
    [failed] = duo.of("client", "Failed")
    assert re.search(rf"{size // 1_000}\d\d\d bytes to SERVER was sent repeatedly", str(failed.error))


def test_lost_response_of_a_server_ends_its_session() -> None:
    # THREATS 91
    duo = Duo()
    number = duo.client.open(Kind.CALL, "demo.add", duo.payload({"a": 1}))
    duo.drive()

    def lose(message: Message, direction: str) -> str:
        if direction == "c>s" or message.control_flags & 1:
            return ""
        duo.server.progressed(duo.now)
        return "before"

    duo.server.send(number, duo.payload("x" * 10_000))
    duo.lose = lose
    duo.drive()
    while not duo.of("server", "Closed"):
        duo.link()
    assert duo.links == 8
    assert re.search(r"10\d\d\d bytes to client-1 was sent repeatedly", str(duo.of("server", "Closed")[0].error))


def test_heartbeats_do_not_reset_the_count_of_lost_links() -> None:
    # THREATS 91
    session = client()
    session.open(Kind.CALL, "demo.add", Payload(b'"%s"' % (b"x" * 10_000)), 1)
    for link in range(8):
        assert session.link_wanted
        session.link_up(0.0)
        answer(session, {"ok": True, "sessionId": session.session_id})
        # Each link delivers the server's next heartbeat, and the call is never acknowledged.
        beat = {"id": "b", "from": "SERVER", "to": "client-1", "seq": link, "ack": 0, "streamId": "heartbeat"}
        session.receive(framed(encode_value(beat | {"controlFlags": 1, "payload": {"type": "ACK"}}, "json")), 0.0)
        assert session.sequence.ack == link + 1
        session.progressed(0.0)
        session.link_down(0.0, None)
    closed = session.take_events()[-1]
    assert isinstance(closed, Closed) and re.search(r"10\d\d\d bytes to SERVER", str(closed.error))


def test_acknowledgement_resets_the_count_of_lost_links() -> None:
    duo = Duo()
    duo.lose = lambda message, direction: "after" if message.service_name else ""
    for number in range(30):
        # Each call arrives, and its link is lost before the response.
        duo.client.open(Kind.CALL, "demo.add", duo.payload({"a": number}))
        duo.drive()
        duo.now += 1.0
        duo.lose, lose = (lambda message, direction: ""), duo.lose
        duo.link()
        duo.advance(2.0)
        duo.lose = lose
    assert not duo.of("client", "Closed") and len(duo.of("server", "Requested")) == 30


def test_long_links_do_not_count_as_lost() -> None:
    # A collector that waits for its disk or its readers acknowledges nothing for a long time.
    duo = Duo(session_grace=60.0)
    number = duo.client.open(Kind.STREAM, "demo.count", Payload(), 1)
    duo.drive()
    duo.server.send(number, duo.payload("x"))
    duo.drive()
    assert duo.client.checkpoint(number, 0) is not None
    duo.client.commit()
    duo.server.send(number, duo.payload("y"))
    duo.advance(1.5)
    first = duo.server.sequence.first
    for _ in range(200):
        duo.advance(1.5)
        duo.cut()
        duo.link()
    assert duo.server.sequence.first == first < duo.server.sequence.seq
    assert not duo.of("server", "Closed") and not duo.of("client", "Closed")


def test_reading_pauses_when_probation_exceeds_the_limit() -> None:
    # Its requests wait, and each is canceled immediately.
    raw = Raw(settings=Settings(max_held_bytes=10_000))
    raw.shake()
    raw.events.clear()
    for number in range(20):
        assert not raw.session.full or number > 5
        raw.say(f"s{number}", 2, "x" * 1_000, ack=0, **ADD)
        raw.say(f"s{number}", 4, {}, ack=0)
    assert raw.session.full and raw.events == []
    raw.session.handle_timer(raw.now + Settings().heartbeat_interval)
    raw.said()
    assert not raw.session.full
    assert sum(isinstance(event, Requested) for event in raw.events) == 20


def test_reading_continues_after_probation() -> None:
    raw = Raw(settings=Settings(max_held_bytes=10_000))
    raw.shake()
    for number in range(20):
        raw.say(f"s{number}", 2, "x" * 1_000, **ADD)
        raw.say(f"s{number}", 4, {})
    assert not raw.session.full


@pytest.mark.parametrize("ended", [True, False], ids=["session has ended", "link is lost"])
def test_input_is_released(raw: Raw, ended: bool) -> None:
    # A link may take long to close, and the ledger no longer counts its bytes.
    half = framed(raw.encode({"streamId": "a", "controlFlags": 10, "payload": "x" * 500_000, "seq": 0, **ADD}))
    tracemalloc.start()
    try:
        for at in range(0, 300_000, 100_000):
            raw.session.receive(half[at : at + 100_000], raw.now)
        before = tracemalloc.get_traced_memory()[0]
        if ended:
            raw.session.close(raw.now, LimitExceeded("too much"))
        else:
            raw.session.link_down(raw.now, None)
        assert before - tracemalloc.get_traced_memory()[0] > 250_000
    finally:
        tracemalloc.stop()
