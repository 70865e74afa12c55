"""Two River sessions with any sequence of verbs, bytes in transit in both directions, and links cut anywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.river.peers import KINDS, RANDOM
from weirpool.errors import ApplicationError, LinkLost
from weirpool.events import Canceled, Closed, Completed, Event, Failed, ItemReceived, Requested, Unlinked
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.river.accept import RiverDetector
from weirpool.river.connect import new_client
from weirpool.river.identity import Identity
from weirpool.river.session import RiverSession
from weirpool.river.sessions import Sessions
from weirpool.settings import Settings
from weirpool.wire.river.values import decode_value, encode_value

SIDES = ("client", "server")
OTHER = {"client": "server", "server": "client"}
ROUTES = sorted(KINDS)
AT_MOST = 8
sides = st.sampled_from(SIDES)


@dataclass
class Way:
    """One direction of a stream, as seen by its sender and its receiver."""

    sent: list[Any] = field(default_factory=list)
    closed: bool = False
    received: list[Any] = field(default_factory=list)
    ended: int = 0


@dataclass
class Call:
    """One stream of the model.

    Attributes:
        kind: What travels each way.
        names: Its number on each side; the server's is missing until it knows the stream.
        ways: The directions, by sender.
        given_up: Whether a side canceled or failed it, so that items may be lost.
        deaf: Whether the server stopped reading.
        ignored: Whether the client stopped reading.
        over: Whether a side has seen the end of the stream.

    """

    kind: Kind
    names: dict[str, int]
    ways: dict[str, Way] = field(default_factory=lambda: {side: Way() for side in SIDES})
    given_up: bool = False
    deaf: bool = False
    ignored: bool = False
    over: set[str] = field(default_factory=set)


class Machine(RuleBasedStateMachine):
    """A client and a server, with a model of their streams.

    Args:
        codec: ``json`` or ``msgpack``.

    """

    def __init__(self, codec: str) -> None:
        super().__init__()
        self.codec = codec
        self.limits = Settings(session_grace=1e6, max_unacked=400)
        self.known: Sessions[RiverSession] = Sessions(10)
        client = new_client(self.limits, Identity(codec, "client-1"), b"", RANDOM)
        self.sessions: dict[str, Any] = {"client": client, "server": None}
        self.acceptor: RiverDetector | None = None
        self.now = 0.0
        self.under_way = {side: b"" for side in SIDES}
        self.calls: list[Call] = []
        self.asked = 0
        self.count = 0
        self.connect()
        self.settle()

    def connect(self) -> None:
        self.under_way = {side: b"" for side in SIDES}
        self.acceptor = RiverDetector(self.limits, Identity(self.codec, server="SERVER"), self.known)
        self.acceptor.link_up(self.now)
        self.sessions["client"].take_output()
        self.sessions["client"].link_up(self.now)

    # Bytes and events.

    def collect(self, side: str) -> None:
        session = self.sessions[side]
        if session is None:
            return
        output = b"".join(session.take_output())
        # Before a new link belongs to the session, the server's output goes to the old one and is lost.
        if side == "client" or self.acceptor is None:
            self.under_way[side] += output

    def bring(self, side: str, count: int) -> None:
        """Deliver some bytes of a side."""
        data, self.under_way[side] = self.under_way[side][:count], self.under_way[side][count:]
        other = OTHER[side]
        if other == "client" or self.acceptor is None:
            if self.sessions[other] is not None:
                self.sessions[other].receive(data, self.now)
        elif data:
            session = self.acceptor.receive(data, self.now)
            if session is None:
                return
            assert self.sessions["server"] in (None, session)
            self.sessions["server"], self.acceptor = session, None
            session.ask_kinds(KINDS.get)
        self.listen(other)

    def listen(self, side: str) -> None:
        session = self.sessions[side]
        for event in session.take_events() if session is not None else ():
            self.note(side, event)
        if session is not None:
            assert session.link_wanted

    def note(self, side: str, event: Event) -> None:
        """Check an event of a side."""
        assert not isinstance(event, Closed | Unlinked), event
        if isinstance(event, Requested):
            # Each request arrives once, in order.
            call = self.calls[self.asked]
            assert decode_value(event.payload.data, self.codec) == self.asked
            assert KINDS[event.route] == call.kind
            call.names["server"] = event.stream_id
            call.ways["client"].ended = int(call.kind.sends_items and event.done)
            self.asked += 1
        elif isinstance(event, ItemReceived | Completed | Failed | Canceled):
            call = next(each for each in self.calls if each.names.get(side) == event.stream_id)
            assert side not in call.over, event
            way = call.ways[OTHER[side]]
            if isinstance(event, ItemReceived):
                assert not way.ended
                way.received.append(decode_value(event.payload.data, self.codec))
                way.ended += event.done
            elif isinstance(event, Completed):
                way.ended += 1
            else:
                assert call.given_up, event
                call.over.add(side)

    def settle(self) -> None:
        """Deliver everything."""
        moved = True
        while moved:
            for side in SIDES:
                self.listen(side)
                self.collect(side)
            moved = any(self.under_way.values())
            for side in SIDES:
                self.bring(side, len(self.under_way[side]))

    # Verbs.

    def value(self) -> Any:
        self.count += 1
        return {"n": self.count, "more": "x" * (self.count % 5 * 20)}

    def payload(self, value: Any) -> Payload:
        return Payload(encode_value(value, self.codec))

    def open_at(self, side: str) -> list[Call]:
        """Return the streams that a side may still use."""
        return [call for call in self.calls if side in call.names and side not in call.over and not call.given_up]

    def sendable(self) -> list[tuple[str, Call]]:
        return [
            (side, call)
            for side in SIDES
            for call in self.open_at(side)
            if not call.ways[side].closed and self.sessions[side].credit(call.names[side]) > 0
        ]

    @precondition(lambda self: len(self.open_at("client")) < AT_MOST)
    @rule(route=st.sampled_from(ROUTES), credit=st.integers(1, 9), done=st.booleans())
    def begin(self, route: str, credit: int, done: bool) -> None:
        kind = KINDS[route]
        payload = self.payload(len(self.calls))
        number = self.sessions["client"].open(kind, route, payload, credit, done)
        call = Call(kind, {"client": number})
        call.ways["client"].closed = done or not kind.sends_items
        self.calls.append(call)

    @precondition(lambda self: self.sendable())
    @rule(data=st.data(), count=st.integers(1, 5), last=st.booleans())
    def send(self, data: Any, count: int, last: bool) -> None:
        side, call = data.draw(st.sampled_from(self.sendable()))
        way = call.ways[side]
        single = side == "server" and call.kind in (Kind.CALL, Kind.UPLOAD)
        for at in range(1 if single else count):
            value = self.value()
            way.sent.append(value)
            way.closed = single or (last and at == count - 1)
            self.sessions[side].send(call.names[side], self.payload(value), way.closed)

    @rule(side=sides, data=st.data(), count=st.integers(1, 5))
    def request(self, side: str, data: Any, count: int) -> None:
        if calls := self.open_at(side):
            call = data.draw(st.sampled_from(calls))
            self.sessions[side].request(call.names[side], count)
            self.listen(side)

    @rule(side=sides, data=st.data())
    def complete(self, side: str, data: Any) -> None:
        both = (Kind.STREAM, Kind.CHANNEL)
        calls = [call for call in self.open_at(side) if side == "client" or call.kind in both]
        if calls:
            call = data.draw(st.sampled_from(calls))
            self.sessions[side].complete(call.names[side])
            call.ways[side].closed = True

    @rule(side=sides, data=st.data(), verb=st.sampled_from(("cancel", "fail")))
    def give_up(self, side: str, data: Any, verb: str) -> None:
        if not (calls := self.open_at(side)):
            return
        call = data.draw(st.sampled_from(calls))
        if self.sessions[side]._streams.get(call.names[side]) is None:
            # It has ended on this side, and the call has no effect.
            self.sessions[side].cancel(call.names[side])
            return
        if verb == "cancel" and side == "server":
            # River has no message for it, so the client does not notice.
            self.sessions[side].cancel(call.names[side])
            call.deaf = True
            return
        arguments = (ApplicationError("NO", "no"),) if verb == "fail" else ()
        getattr(self.sessions[side], verb)(call.names[side], *arguments)
        if call.names["client"] in self.sessions["client"].streams() and side == "client":
            # All items had arrived, requested or not; our own half continues.
            call.ignored = True
            return
        call.over.add(side)
        if side == "server" and call.ways["server"].closed:
            # A side that has closed sends nothing more, so the client does not notice.
            call.deaf = True
        else:
            call.given_up = True

    # The network and the time.

    @rule(side=sides, count=st.sampled_from((1, 3, 50, 200, 100_000, 100_000, 100_000)))
    def arrive(self, side: str, count: int) -> None:
        self.collect(side)
        self.bring(side, count)

    @rule(first=st.sampled_from(("client", "server", "client alone")))
    def cut(self, first: str) -> None:
        """Break the link, drop everything in transit, and open another one, perhaps before the server notices."""
        order = {"client": SIDES, "server": SIDES[::-1], "client alone": ("client",)}[first]
        for side in order:
            if self.sessions[side] is not None:
                self.sessions[side].link_down(self.now, LinkLost("a test"))
        self.connect()

    @rule(seconds=st.sampled_from((0.1, 0.9, 5.0)))
    def wait(self, seconds: float) -> None:
        # Everything arrives before the time advances, so no side is silent.
        self.settle()
        end = self.now + seconds
        while (due := min(session.next_timer() for session in self.sessions.values())) <= end:
            self.now = max(self.now, due)
            for session in self.sessions.values():
                session.handle_timer(self.now)
            self.settle()
        self.now = end

    # Invariants.

    @invariant()
    def items_arrive_once_and_in_order(self) -> None:
        for call in self.calls:
            for way in call.ways.values():
                assert way.received == way.sent[: len(way.received)]
                assert way.ended <= 1

    @invariant()
    def what_is_kept_is_bounded(self) -> None:
        for session in self.sessions.values():
            if session is not None:
                assert session.sequence.unacked_bytes == sum(map(len, session.sequence.unacked))
                assert session.open_streams <= len(self.calls)

    def teardown(self) -> None:
        """End everything; check that all items have arrived and that no state remains."""
        self.settle()
        for _ in range(2):
            for side in SIDES:
                # Items of a canceled stream may have been received.
                for call in self.calls:
                    self.sessions[side].request(call.names[side], 10_000)
                for call in self.open_at(side):
                    if not call.ways[side].closed:
                        call.ways[side].closed = True
                        if side == "server" and call.kind in (Kind.CALL, Kind.UPLOAD):
                            call.ways[side].sent.append(None)
                            self.sessions[side].send(call.names[side], self.payload(None), True)
                        else:
                            self.sessions[side].complete(call.names[side])
            self.settle()
        assert self.asked == len(self.calls)
        for call in self.calls:
            if not call.given_up:
                theirs, ours = call.ways["server"], call.ways["client"]
                assert call.ignored or (theirs.received == theirs.sent and theirs.ended == 1)
                assert call.deaf or (ours.received == ours.sent and ours.ended == call.kind.sends_items * 1)
        for session in self.sessions.values():
            assert session.open_streams == 0
            assert session._inbound.held_bytes == 0
        client, server = (self.sessions[side].sequence for side in SIDES)
        assert (client.seq, server.seq) == (server.ack, client.ack)


def run(codec: str, examples: int, steps: int) -> None:
    options = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(lambda: Machine(codec), settings=options)


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_any_sequence_of_verbs_and_cuts(codec: str) -> None:
    run(codec, 100, 40)


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_long_sequences_of_verbs_and_cuts(codec: str) -> None:
    run(codec, 200, 80)
