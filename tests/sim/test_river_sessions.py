"""Two River sessions with links that break: every message arrives exactly once, in order."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.river.peers import Duo
from weirpool.errors import (
    ApplicationError,
    KeepaliveTimeout,
    LeaseMissing,
    LimitExceeded,
    LinkLost,
    ProtocolError,
    ResumeRejected,
)
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.river.accept import RiverDetector
from weirpool.river.identity import Identity
from weirpool.river.sessions import Sessions
from weirpool.wire.river.message import Message
from weirpool.wire.river.values import decode_value

UPTO = 5


class World(Duo):
    """Both sides, with handlers on the server."""

    def __init__(self, codec: str = "json", **settings: Any) -> None:
        self.looked = 0
        self.asked: list[Any] = []
        super().__init__(codec, **settings)

    def go_on(self) -> None:
        """Run until nothing moves; open another link when one is lost."""
        for _ in range(100):
            self.drive()
            done = self.looked == len(self.server_events)
            self.handle()
            if not self.linked:
                self.now += 0.1
                self.link()
            elif done:
                return

    def handle(self) -> None:
        """Answer requests."""
        while self.looked < len(self.server_events):
            event = self.server_events[self.looked]
            self.looked += 1
            number, name = event.stream_id, type(event).__name__
            if name == "Requested":
                self.asked.append((event.route, decode_value(event.payload.data, self.codec)))
                if event.kind == Kind.CALL:
                    self.server.send(number, event.payload, True)
                elif event.kind == Kind.STREAM:
                    for item in range(UPTO):
                        self.server.send(number, self.payload(item))
                    self.server.complete(number)
                else:
                    self.server.request(number, 100)
            elif name == "ItemReceived":
                self.asked.append(decode_value(event.payload.data, self.codec))
                self.server.send(number, event.payload)
            elif name == "Completed":
                self.server.complete(number)

    def play(self) -> list[Any]:
        """Use all kinds; return the events of both sides."""
        client = self.client
        numbers = [client.open(Kind.CALL, "demo.add", self.payload({"a": 1}), 1)]
        self.go_on()
        numbers.append(client.open(Kind.STREAM, "demo.count", self.payload({"upto": UPTO}), 100))
        numbers.append(client.open(Kind.CHANNEL, "demo.echo", self.payload({"prefix": ">"}), 100))
        for item in ("a", "b"):
            client.send(numbers[-1], self.payload({"msg": item}))
        self.go_on()
        client.send(numbers[-1], self.payload({"msg": "c"}))
        client.complete(numbers[-1])
        self.go_on()
        ends = [event.stream_id for event in self.of("client", "Completed")]
        return [*([self.items("client", number) for number in numbers]), sorted(ends), self.asked]


@pytest.mark.parametrize("trouble", ["before", "after", "twice"])
@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_trouble_at_every_message_changes_nothing(codec: str, trouble: str) -> None:
    expected = World(codec).play()
    assert expected[0] == [{"a": 1}] and expected[1] == list(range(UPTO)) and len(expected[2]) == 3
    at = 0
    while True:
        world = World(codec)
        seen = 0

        def lose(message: Message, direction: str) -> str:
            nonlocal seen
            seen += 1
            # A repeated handshake is a different case.
            return trouble if seen == at + 1 and (trouble != "twice" or message.ack or message.seq) else ""  # noqa: B023

        world.lose = lose
        assert world.play() == expected
        assert world.client.open_streams == world.server.open_streams == 0
        if seen <= at:
            break
        at += 1
    assert at > 15


@pytest.mark.parametrize("trouble", ["before", "after"])
@pytest.mark.parametrize("at", [1, 2])
def test_handshakes_that_are_lost_are_said_again(at: int, trouble: str) -> None:
    world = World()
    world.cut()
    seen = 0

    def lose(message: Message, direction: str) -> str:
        nonlocal seen
        seen += 1
        return trouble if seen == at else ""

    world.lose = lose
    world.link()
    world.go_on()
    assert world.play()[0] == [{"a": 1}]
    assert len(world.sessions) == 1


def storm(calls: int, drops: int, codec: str) -> None:
    rng = random.Random(calls)
    world = World(codec)
    left = drops

    def lose(message: Message, direction: str) -> str:
        nonlocal left
        if left and rng.random() < 2 * drops / (2 * calls):
            left -= 1
            return rng.choice(("before", "after"))
        return ""

    world.lose = lose
    answered = 0
    for first in range(0, calls, 10):
        numbers = [world.client.open(Kind.CALL, "demo.add", world.payload(first + each), 1) for each in range(10)]
        world.go_on()
        assert [world.items("client", number) for number in numbers] == [[first + each] for each in range(10)]
        assert [value for _, value in world.asked] == list(range(first, first + 10))
        answered += len(numbers)
        world.asked.clear()
        world.client_events.clear()
        world.server_events.clear()
        world.looked = 0
    assert answered == calls and left == 0


def test_calls_over_dropped_links() -> None:
    storm(2_000, 40, "msgpack")


@pytest.mark.slow
def test_100_000_calls_over_200_dropped_links() -> None:
    storm(100_000, 200, "json")


def test_a_session_without_a_link_ends_after_its_grace() -> None:
    world = World(session_grace=5.0)
    number = world.client.open(Kind.CHANNEL, "demo.echo", world.payload({}), 1)
    world.go_on()
    world.cut()
    world.advance(4.9)
    assert not world.of("client", "Closed")
    world.advance(0.2)
    (failed,) = world.of("client", "Failed")
    assert failed.stream_id == number
    assert isinstance(failed.error, ApplicationError) and failed.error.code == "UNEXPECTED_DISCONNECT"
    assert isinstance(world.of("client", "Closed")[0].error, LinkLost)
    assert isinstance(world.of("server", "Closed")[0].error, LinkLost)
    assert len(world.sessions) == 0


def test_a_server_that_forgot_the_session_ends_it() -> None:
    world = World()
    world.play()
    world.client_events.clear()
    world.client.open(Kind.CHANNEL, "demo.echo", world.payload({}), 1)
    world.cut()
    world.sessions = Sessions(10)
    world.client.link_up(world.now)
    acceptor = RiverDetector(world.server_settings, Identity("json", server="SERVER"), world.sessions)
    with pytest.raises(ProtocolError, match="no session with this id"):
        acceptor.receive(b"".join(world.client.take_output()), world.now)
    world.client.receive(acceptor.farewell, world.now)
    world.listen()
    error = world.of("client", "Closed")[0].error
    assert isinstance(error, ResumeRejected) and error.code == "SESSION_STATE_MISMATCH"
    assert world.of("client", "Failed")[0].error.code == "UNEXPECTED_DISCONNECT"
    assert not world.client.link_wanted


def test_a_silent_link_is_given_up_by_both_sides() -> None:
    world = World(session_grace=60.0)
    world.linked = False
    world.advance(2.5)
    for side in ("client", "server"):
        (unlinked,) = world.of(side, "Unlinked")
        assert isinstance(unlinked.error, KeepaliveTimeout)
    world.client.take_output()
    world.link()
    world.go_on()
    assert world.play()[0] == [{"a": 1}]


def test_a_client_that_reads_nothing_for_now_keeps_its_link() -> None:
    world = World(max_held_bytes=5_000)
    world.client.open(Kind.STREAM, "demo.count", world.payload({}), 1)
    world.drive()
    number = world.of("server", "Requested")[-1].stream_id
    for _ in range(10):
        world.server.send(number, world.payload("x" * 1_000))
    world.drive()
    unread = b""
    for _ in range(200):
        assert world.client.full
        world.now += 0.1
        for session in (world.client, world.server):
            session.handle_timer(world.now)
        world.server.receive(b"".join(world.client.take_output()), world.now)
        unread += b"".join(world.server.take_output())
        world.listen()
    world.client.request(1, 100)
    world.client.receive(unread, world.now)
    world.drive()
    assert len(world.items("client", 1)) == 10
    assert not world.of("client", "Unlinked") and not world.of("server", "Unlinked")
    assert world.server.sequence.first == world.server.sequence.seq


def test_heartbeats_bound_what_both_sides_keep() -> None:
    world = World()
    world.advance(30.0)
    assert world.client.sequence.seq >= 29
    assert world.client.sequence.first >= world.client.sequence.seq - 1
    assert world.server.sequence.first >= world.server.sequence.seq - 1
    assert not world.of("client", "Unlinked") and not world.of("server", "Unlinked")


def test_a_fast_stream_does_not_wait_for_the_next_heartbeat() -> None:
    world = World(max_unacked=200)
    number = world.client.open(Kind.STREAM, "demo.count", world.payload({}), 10_000)
    world.drive()
    (event,) = world.of("server", "Requested")
    credit = event.credit
    sent = 0
    while sent < 1_000:
        if credit == 0:
            world.drive()
            assert world.of("server", "CreditGranted")
            credit = world.server.credit(event.stream_id)
        credit = world.server.send(event.stream_id, world.payload(sent))
        sent += 1
    world.drive()
    assert world.items("client", number) == list(range(1_000))


def test_a_peer_that_acknowledges_nothing_is_given_up() -> None:
    world = World(max_unacked=20)
    number = world.client.open(Kind.CHANNEL, "demo.echo", world.payload({}), 1)
    world.cut()
    while world.client.credit(number):
        world.client.send(number, world.payload(0))
    with pytest.raises(LeaseMissing):
        world.client.open(Kind.CALL, "demo.add", Payload(), 1)
    world.link()
    world.advance(2.0)
    assert world.of("client", "CreditGranted")[-1].stream_id == number
    assert world.of("client", "LeaseGranted")
    world.cut()
    for _ in range(11):
        assert not world.of("client", "Closed")
        # A message that cannot wait, here a cancellation.
        late = world.client.open(Kind.CALL, "demo.add", Payload(), 1) if world.client.sequence.room else 0
        world.client.cancel(late)
        world.client._outbound.send_heartbeat()
        world.client._outbound.send_heartbeat()
        world.listen()
        if world.of("client", "Closed"):
            break
    assert isinstance(world.of("client", "Closed")[0].error, LimitExceeded)
    assert world.of("client", "Failed")[-1].error.code == "UNEXPECTED_DISCONNECT"


def test_what_nobody_asked_for_is_held_and_stops_no_other_stream() -> None:
    world = World(max_held_bytes=5_000)
    stuck = world.client.open(Kind.STREAM, "demo.count", world.payload({}), 2)
    world.go_on()
    assert world.items("client", stuck) == [0, 1]
    assert not world.client.full
    other = world.client.open(Kind.CALL, "demo.add", world.payload("x"), 1)
    world.go_on()
    assert world.items("client", other) == ["x"]
    world.client.request(stuck, 2)
    world.listen()
    assert world.items("client", stuck) == [0, 1, 2, 3] and not world.of("client", "Completed")
    world.client.request(stuck, 2)
    world.listen()
    assert world.items("client", stuck) == [0, 1, 2, 3, 4] and world.of("client", "Completed")
    flood = world.client.open(Kind.STREAM, "demo.count", world.payload({}), 1)
    world.drive()
    number = world.of("server", "Requested")[-1].stream_id
    for _ in range(10):
        world.server.send(number, world.payload("x" * 1_000))
    world.drive()
    assert world.client.full
    world.advance(0.5)
    world.client.cancel(flood)
    assert not world.client.full
