"""A server that is restarted while a session begins: each request is started once, or fails with an error."""

from __future__ import annotations

from typing import Any

import pytest

from tests.river.peers import KINDS, RANDOM, Raw
from weirpool.errors import ApplicationError, ProtocolError, ResumeRejected
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.river.accept import RiverDetector
from weirpool.river.connect import new_client
from weirpool.river.identity import Identity
from weirpool.river.session import RiverSession
from weirpool.river.sessions import Sessions
from weirpool.settings import Settings
from weirpool.wire.river.values import encode_value


class Beginning:
    """A client and a server with a new session, which exchange single bytes.

    Args:
        codec: The codec of the messages.
        dies_at: The number of bytes, of both directions, after which the server is killed and replaced.
        late: Whether the client sends its request only when it is connected.
        stops: The direction that carries nothing until then.

    """

    def __init__(self, codec: str, dies_at: int, late: bool, stops: str) -> None:
        self.codec = codec
        self.dies_at = dies_at
        self.late = late
        self.stops = stops
        self.begun = 0
        self.moved = 0
        self.last = False
        self.end: Any = None
        self.asked = 0
        self.client: Any = new_client(Settings(), Identity(codec), b"", RANDOM)
        self.serve()
        self.link()
        if not late:
            self.ask()

    def serve(self) -> None:
        self.sessions: Sessions[RiverSession] = Sessions(10)
        self.waiting: list[int] = []

    def link(self) -> None:
        self.acceptor: Any = RiverDetector(Settings(), Identity(self.codec), self.sessions)
        self.acceptor.link_up(0.0)
        self.server: Any = None
        self.client.link_up(0.0)
        self.there = self.back = b""

    def ask(self) -> None:
        self.asked = self.client.open(Kind.CALL, "demo.add", Payload(encode_value({}, self.codec)))

    def run(self) -> None:
        """Run until the client's call has ended or nothing moves."""
        while self.end is None:
            if not self.step() and not self.answer():
                return

    def step(self) -> bool:
        """Move a byte each way; return whether there was one, or the server was killed."""
        self.look()
        self.there += b"".join(self.client.take_output())
        if self.server is not None:
            self.back += b"".join(self.server.take_output())
        stops = self.stops if self.moved < self.dies_at else ""
        there = self.there if stops != "there" else b""
        back = self.back if stops != "back" else b""
        if self.moved == self.dies_at:
            self.kill()
            return True
        if not (there or back):
            if self.moved < self.dies_at and (self.begun or self.stops):
                # The handler runs, or nothing moves: the last point for a kill.
                self.moved = self.dies_at
                self.last = True
                return True
            return False
        self.moved += 1
        if there:
            self.there = self.there[1:]
            self.deliver(there[:1])
        if back:
            self.back = self.back[1:]
            self.client.receive(back[:1], 0.0)
        return True

    def kill(self) -> None:
        self.moved += 1
        self.client.link_down(0.0, None)
        self.look()
        self.serve()
        if self.client.link_wanted:
            self.link()

    def deliver(self, data: bytes) -> None:
        if self.server is not None:
            self.server.receive(data, 0.0)
            return
        try:
            self.server = self.acceptor.receive(data, 0.0)
        except ProtocolError:
            self.client.receive(self.acceptor.farewell, 0.0)
        if self.server is not None:
            self.server.ask_kinds(KINDS.get)

    def answer(self) -> bool:
        """Let the handler end; return whether there is one."""
        waiting, self.waiting = self.waiting, []
        for number in waiting:
            self.server.send(number, Payload(encode_value(1, self.codec)), True)
        return bool(waiting)

    def look(self) -> None:
        for event in self.server.take_events() if self.server is not None else ():
            if type(event).__name__ == "Requested":
                self.begun += 1
                self.waiting.append(event.stream_id)
        for event in self.client.take_events():
            name = type(event).__name__
            if name == "Established" and self.late:
                self.ask()
            if name == "Failed":
                self.end = event.error
            elif name == "ItemReceived":
                self.end = "answered"
            elif name == "Closed":
                self.end = self.end or event.error


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("stops", ["", "there", "back"])
def test_a_restart_at_any_byte_runs_a_call_once_or_fails_it(codec: str, late: bool, stops: str) -> None:
    ends = set()
    dies_at = 0
    while True:
        world = Beginning(codec, dies_at, late, stops)
        world.run()
        assert world.begun <= 1, dies_at
        assert world.end is not None, dies_at
        if world.end == "answered":
            assert world.begun == 1
        else:
            assert isinstance(world.end, ApplicationError) and isinstance(world.end.__cause__, ResumeRejected)
            assert "SESSION_STATE_MISMATCH" in str(world.end)
        ends.add(world.end == "answered")
        if world.last or world.moved <= dies_at:
            break
        dies_at += 1
    assert True in ends and (stops or False in ends)


def test_a_request_waits_for_the_echo_of_the_greeting() -> None:
    raw = Raw()
    raw.shake()
    raw.say("s", 10, {}, serviceName="demo", procedureName="add", ack=0)
    assert [type(event).__name__ for event in raw.events] == ["Established"]
    raw.say("heartbeat", 1, {"type": "ACK"}, ack=0)
    assert [type(event).__name__ for event in raw.events] == ["Established", "Requested"]


def test_a_client_that_echoes_nothing_waits_for_one_heartbeat_only() -> None:
    raw = Raw()
    raw.shake()
    raw.say("s", 10, {}, serviceName="demo", procedureName="add", ack=0)
    raw.session.handle_timer(raw.now + raw.settings.heartbeat_interval)
    raw.said()
    assert type(raw.events[-1]).__name__ == "Requested"


def test_what_nobody_has_begun_ends_without_a_trace() -> None:
    raw = Raw()
    raw.shake()
    raw.say("s", 10, {}, serviceName="demo", procedureName="add", ack=0)
    raw.session.link_down(raw.now, None)
    raw.session.handle_timer(raw.now + raw.settings.session_grace)
    raw.said()
    assert [type(event).__name__ for event in raw.events] == ["Established", "Closed"]
