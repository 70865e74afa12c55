"""Two sessions with any sequence of verbs, bytes in transit in both directions, and links cut anywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from tests.builds import Build

SIDES = ("client", "server")
OTHER = {"client": "server", "server": "client"}
sides = st.sampled_from(SIDES)
sizes = st.sampled_from((0, 1, 3, 100, 300))


@dataclass
class Way:
    """One direction of a stream."""

    sent: list[bytes] = field(default_factory=list)
    received: list[bytes] = field(default_factory=list)
    ended: int = 0
    failed: int = 0


class Machine(RuleBasedStateMachine):
    """Opens streams of all kinds on both sides, and uses them and moves bytes in any order.

    Args:
        build: The build of both sessions.
        protocol: The protocol's name in URLs.
        resume: Whether the session is resumable and its links are cut at any byte.

    """

    def __init__(self, build: Build, protocol: str, resume: bool) -> None:
        super().__init__()
        limits = build.module("weirpool.settings").Settings(fragment_bytes=128, resume=resume, resume_timeout=1e6)
        dialects = build.module("weirpool.protocols")
        self.payload: Any = build.module("weirpool.payload")
        self.errors: Any = build.module("weirpool.errors")
        kinds: Any = build.module("weirpool.kinds").Kind
        # ReactiveSocket 0.0 has no channels, and each side may use all numbers.
        self.first_draft = protocol.endswith("0.0")
        self.kinds = [kinds.CALL, kinds.STREAM] if self.first_draft else [kind for kind in kinds if kind != kinds.FIRE]
        self.half_close = protocol == "rsocket"
        self.resume = resume
        self.accept = dialects.detectors(protocol, limits)
        self.sessions: dict[str, Any] = {
            "client": dialects.client_session(protocol, limits, random=b"t" * 16),
            "server": None,
        }
        self.acceptor: Any = None
        self.now = 0.0
        # Bytes in transit.
        self.under_way = {side: b"" for side in SIDES}
        self.ways: dict[tuple[str, int], Way] = {}
        self.open: list[int] = []
        # Calls of the first draft.
        self.calls: set[int] = set()
        # Canceled or failed streams, of which items may be lost.
        self.given_up: set[int] = set()
        # Halves that the responder's end has ended, without half-close.
        self.cut_short: set[tuple[str, int]] = set()
        self.connect()
        self.settle()

    def connect(self) -> None:
        """Make a new link."""
        self.acceptor = self.accept()
        self.acceptor.link_up(self.now)
        self.sessions["client"].link_up(self.now)

    def number(self, side: str, stream: int) -> int:
        """Return a side's id of a stream."""
        ours = (stream % 2 == 1) == (side == "client")
        return -stream if self.first_draft and not ours else stream

    # Bytes and events.

    def collect(self, side: str) -> None:
        # The server sends nothing over a new link before the session is known.
        if side == "client" or self.acceptor is None:
            self.under_way[side] += b"".join(self.sessions[side].take_output())

    def bring(self, side: str, count: int) -> None:
        """Deliver some bytes of a side, and record the other side's events."""
        data, self.under_way[side] = self.under_way[side][:count], self.under_way[side][count:]
        other = OTHER[side]
        if other == "server" and self.acceptor is not None:
            session = self.acceptor.receive(data, self.now)
            if session is None:
                return
            self.sessions["server"], self.acceptor = session, None
        else:
            self.sessions[other].receive(data, self.now)
        for event in self.sessions[other].take_events():
            name = type(event).__name__
            assert name != "Closed", event
            way = self.ways.setdefault((side, abs(event.stream_id)), Way())
            # A failure ends both halves; no event follows it.
            assert not way.failed, event
            if name == "ItemReceived":
                way.received.append(event.payload.data)
                way.ended += event.done
            elif name == "RunReceived":
                way.received += [payload.data for payload in event.run]
            way.ended += name == "Completed"
            way.failed += name == "Failed"
            assert name != "Failed" or abs(event.stream_id) in self.given_up, event

    def settle(self) -> None:
        """Deliver everything."""
        moved = True
        while moved:
            for side in SIDES:
                self.collect(side)
            moved = any(self.under_way.values())
            for side in SIDES:
                self.bring(side, len(self.under_way[side]))

    # Verbs.

    @rule(side=sides, data=st.data(), credit=st.integers(1, 9))
    def begin(self, side: str, data: Any, credit: int) -> None:
        if len(self.open) < 8:
            kind = data.draw(st.sampled_from(self.kinds))
            item = self.payload.Payload(b"open")
            self.open.append(self.sessions[side].open(kind, "", item, credit, not kind.sends_items))
            if self.first_draft and kind.name == "CALL":
                self.calls.add(self.open[-1])

    def sendable(self) -> list[tuple[str, int]]:
        """Return the halves that have credit."""
        return [
            (side, stream)
            for stream in self.open
            for side in SIDES
            if self.sessions[side].credit(self.number(side, stream)) > 0
        ]

    def responds(self, side: str, stream: int) -> bool:
        """Whether a side is the responder of a stream without half-close, so that its end ends both halves."""
        return not self.half_close and (stream % 2 == 1) == (side == "server")

    @precondition(sendable)
    @rule(data=st.data(), count=st.integers(1, 6), size=sizes, together=st.booleans(), last=st.booleans())
    def send(self, data: Any, count: int, size: int, together: bool, last: bool) -> None:
        side, stream = data.draw(st.sampled_from(self.sendable()))
        session, sent = self.sessions[side], self.ways.setdefault((side, stream), Way()).sent
        number = self.number(side, stream)
        items = [b"%d" % (len(sent) + at) + bytes(size) for at in range(count)]
        credit = session.credit(number)
        if together:
            run = self.payload.PayloadRun.of(map(self.payload.Payload, items))
            count = session.send_run(number, run)
            assert count == min(len(items), credit)
        else:
            count = 1
            if self.responds(side, stream):
                self.cut_short.add((OTHER[side], stream))
            left = session.send(number, self.payload.Payload(items[0]), last)
            assert left == credit - 1
        sent += items[:count]

    @precondition(lambda self: self.open)
    @rule(side=sides, data=st.data())
    def send_without_credit(self, side: str, data: Any) -> None:
        stream = data.draw(st.sampled_from(self.open))
        number = self.number(side, stream)
        if self.sessions[side].credit(number) == 0:
            with pytest.raises(self.errors.LocalError):
                self.sessions[side].send(number, self.payload.Payload())

    @precondition(lambda self: self.open)
    @rule(side=sides, data=st.data(), count=st.integers(1, 5))
    def request(self, side: str, data: Any, count: int) -> None:
        self.sessions[side].request(self.number(side, data.draw(st.sampled_from(self.open))), count)

    @precondition(lambda self: self.open)
    @rule(side=sides, data=st.data(), verb=st.sampled_from(("complete", "cancel", "fail")))
    def end(self, side: str, data: Any, verb: str) -> None:
        stream = data.draw(st.sampled_from(self.open))
        if verb != "complete":
            self.given_up.add(stream)
        elif self.responds(side, stream):
            self.cut_short.add((OTHER[side], stream))
            if stream in self.calls and self.sessions[side].credit(self.number(side, stream)):
                # ReactiveSocket 0.0: an empty response is only the end.
                self.ways.setdefault((side, stream), Way()).sent.append(b"")
        arguments = (self.errors.ApplicationError(0x301, "no"),) if verb == "fail" else ()
        getattr(self.sessions[side], verb)(self.number(side, stream), *arguments)

    @rule(side=sides, count=st.sampled_from((1, 7, 50, 100_000, 100_000, 100_000)))
    def arrive(self, side: str, count: int) -> None:
        self.collect(side)
        self.bring(side, count)

    @precondition(lambda self: self.resume)
    @rule(back=st.booleans())
    def cut(self, back: bool) -> None:
        """Break the link, drop everything in transit, and open another one."""
        sides = SIDES if back else SIDES[::-1]
        for side in sides:
            self.under_way[side] = b""
            self.sessions[side].link_down(self.now, None)
        self.connect()

    @rule(seconds=st.sampled_from((0.1, 5.0, 25.0)))
    def wait(self, seconds: float) -> None:
        # Everything arrives before the time advances, so no side is silent.
        self.settle()
        self.now += seconds
        for side in SIDES:
            self.sessions[side].handle_timer(self.now)
        self.settle()

    # Invariants.

    @invariant()
    def items_arrive_once_and_in_order(self) -> None:
        for way in self.ways.values():
            assert way.received == way.sent[: len(way.received)]

    @invariant()
    def nothing_ends_twice(self) -> None:
        assert all(way.ended <= 1 for way in self.ways.values())

    def teardown(self) -> None:
        """End everything; check that all items have arrived and that no state remains."""
        self.settle()
        for (side, stream), way in self.ways.items():
            excused = stream in self.given_up or (side, stream) in self.cut_short
            assert excused or way.received == way.sent
        for stream in self.open:
            for side in SIDES:
                self.sessions[side].complete(self.number(side, stream))
                self.sessions[side].cancel(self.number(side, stream))
            self.settle()
        for side in SIDES:
            assert self.sessions[side].open_streams == 0
            assert self.sessions[side].take_output() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "resume"),
    [
        ("rsocket", False),
        ("rsocket", True),
        ("reactivesocket-0.2", False),
        ("reactivesocket-0.2", True),
        ("reactivesocket-0.0", False),
    ],
)
def test_any_sequence_of_verbs_is_safe(build: Build, protocol: str, resume: bool) -> None:
    run_state_machine_as_test(
        lambda: Machine(build, protocol, resume),
        settings=settings(
            max_examples=50, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
