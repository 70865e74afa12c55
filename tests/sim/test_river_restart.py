"""A River server that is killed at any point and restored from its logs.

Nothing is lost, repeated or started twice, and the session survives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.sim.stored import Died, Disk, Logs
from weirpool import protocols as dialects
from weirpool.core import write_ahead
from weirpool.errors import Canceled, ProtocolError
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.river.link import MAX_UNANSWERED
from weirpool.settings import Settings
from weirpool.wire.river.values import decode_value, encode_value

ITEMS = 12
FOREVER = 1 << 60
KINDS = {f"demo.{kind.name.lower()}": kind for kind in (Kind.CALL, Kind.STREAM, Kind.UPLOAD, Kind.CHANNEL)}
ALL = tuple(KINDS)


class World:
    """A client, and consecutive servers that share a disk.

    The server's application sends `ITEMS` numbered items on each stream and channel, a few in each turn. It
    answers calls and uploads. If its disk is `late`, it continues before its writes are durable.
    """

    def __init__(self, codec: str = "json", late: bool = False) -> None:
        self.codec = codec
        self.late = late
        self.settings = Settings(max_unacked=200)
        self.disk = Disk()
        self.options = {"codec": codec}
        self.client: Any = dialects.client_session(
            "river", self.settings, random=bytes(range(16)), options=self.options
        )
        self.begun: list[int] = []
        # The request of each stream of the server, and the items sent; and those known to have left.
        self.serving: dict[int, tuple[int, int]] = {}
        self.left: dict[int, int] = {}
        self.kinds: dict[int, Kind] = {}
        self.items: dict[int, list[Any]] = {}
        self.ends: dict[int, Exception | None] = {}
        self.restarts = self.writes = 0
        # First handshakes that were cut before their response.
        self.hung_up = 0
        self.established = False
        self.now = 0.0
        self.up = False
        self.server: Any = None
        self.start()
        self.connect()

    def value(self, value: object) -> Payload:
        return Payload(encode_value(value, self.codec))

    def start(self) -> None:
        self.logs = Logs(self.disk, self.late)
        self.accept = dialects.detectors("river", self.settings, self.logs, options=self.options)  # type: ignore[arg-type]
        self.server = self.acceptor = None
        self.serving = {}

    def kill(self) -> None:
        self.restarts += 1
        self.cut(True)
        self.start()

    @property
    def patient(self) -> bool:
        """Whether the client survives a lost link and a killed server: it gives up after `MAX_UNANSWERED`."""
        return self.established or self.hung_up < MAX_UNANSWERED - 2

    def cut(self, killed: bool = False) -> None:
        self.hung_up += not self.established
        self.client.link_down(self.now, None)
        if self.server is not None and not killed:
            self.server.link_down(self.now, None)
        self.up = False

    def connect(self) -> None:
        self.acceptor: Any = self.accept()
        self.acceptor.link_up(self.now)
        self.client.link_up(self.now)
        self.up = True
        self.there = self.back = b""

    def open(self, route: str) -> None:
        kind = KINDS[route]
        number = len(self.kinds) + 1
        stream = self.client.open(kind, route, self.value({"n": number}), 5 if kind.name in "STREAM CHANNEL" else 0)
        assert stream == number
        self.kinds[number] = kind
        self.items[number] = []

    # The server, which may be killed in any of these.

    def serve(self) -> None:
        for event in self.server.take_events() if self.server is not None else ():
            name = type(event).__name__
            if name == "Requested":
                number = decode_value(event.payload.data, self.codec)["n"]
                self.begun.append(number)
                self.serving[event.stream_id] = number, 0
                if KINDS[event.route].sends_items:
                    self.server.request(event.stream_id, 1_000)
            elif name in ("Failed", "Canceled"):
                self.serving.pop(event.stream_id, None)

    def work(self) -> None:
        """Let the server's application send items."""
        self.serve()
        for stream, (number, sent) in list(self.serving.items()):
            if self.kinds[number].name not in ("STREAM", "CHANNEL"):
                self.server.send(stream, self.value("answer"), True)
                self.end(stream)
                continue
            for each in range(sent, min(sent + min(self.server.credit(stream), 3), ITEMS)):
                self.server.send(stream, self.value(each), each == ITEMS - 1)
                self.serving[stream] = number, each + 1
            if self.serving[stream][1] == ITEMS:
                self.end(stream)

    def end(self, stream: int) -> None:
        del self.serving[stream]
        self.server.cancel(stream)

    def beat(self) -> None:
        """Let the server send a heartbeat."""
        if self.server is not None and self.up:
            self.safely(self.server._outbound.send_heartbeat)

    def output(self) -> bytes:
        data = b"".join(self.server.take_output())
        if self.server.durable.settled:
            self.left.update(dict(self.serving.values()))
        return data

    def sync(self) -> bool:
        """Do one pending write, if there is one."""
        asked = bool(self.logs.asked)
        self.safely(self.logs.sync)
        return asked

    def safely(self, act: Callable[[], object]) -> None:
        """Run `do` in the server's process, which may be killed by it."""
        try:
            act()
        except Died:
            self.kill()

    def deliver(self, data: bytes) -> None:
        if self.acceptor is None:
            self.server.receive(data, self.now)
            return
        try:
            session = self.acceptor.receive(data, self.now)
        except ProtocolError:
            self.client.receive(self.acceptor.farewell, self.now)
            return
        if session is not None:
            session.ask_kinds(KINDS.get)
            self.server, self.acceptor = session, None

    # The client.

    def take(self) -> None:
        for event in self.client.take_events():
            name, number = type(event).__name__, event.stream_id
            if name == "ItemReceived":
                self.items[number].append(decode_value(event.payload.data, self.codec))
            if name in ("Failed", "Completed") or (name == "ItemReceived" and event.done):
                assert number not in self.ends
                self.ends[number] = event.error if name == "Failed" else None
            if name == "Established":
                self.established = True
            if name == "Closed":
                self.ends[0] = event.error

    def grant(self) -> None:
        for number in self.kinds:
            if number not in self.ends:
                self.client.request(number, 5)

    def upload(self) -> None:
        for number, kind in self.kinds.items():
            if kind.sends_items and number not in self.ends and self.client.credit(number) > 50:
                self.client.send(number, self.value("up" * 20))

    def drive(self, budget: int = FOREVER) -> None:
        forever = budget == FOREVER
        while True:
            self.safely(self.serve)
            if not self.up:
                return
            self.there += b"".join(self.client.take_output())
            if self.server is not None and self.acceptor is None:
                try:
                    self.back += self.output()
                except Died:
                    self.kill()
                    return
            if budget <= 0:
                return
            if not (self.there or self.back):
                if forever and self.sync():
                    continue
                return
            there, self.there = self.there[:budget], self.there[budget:]
            budget -= len(there)
            if there:
                self.safely(lambda there=there: self.deliver(there))  # type: ignore[misc]
                if not self.up:
                    return
            back, self.back = self.back[:budget], self.back[budget:]
            budget -= len(back)
            self.client.receive(back, self.now)
            self.take()

    def finish(self) -> None:
        """Let everything end, and check the result."""
        for _ in range(30):
            if not self.up:
                self.connect()
            self.drive()
            if self.acceptor is None:
                self.safely(self.work)
            self.grant()
        for number in self.kinds:
            # Streams that the server stopped reading may stay open on this side.
            self.client.complete(number)
        self.drive()
        self.disk.dies_at = -1
        self.writes = self.disk.writes
        # Both sides agree on the numbers; otherwise neither this nor another process could resume the session.
        for again in (self.cut, self.kill):
            again()
            self.connect()
            self.drive()
        self.restarts -= 1
        self.look()

    def look(self) -> None:
        assert 0 not in self.ends, self.ends[0]
        assert len(set(self.begun)) == len(self.begun)
        for number, kind in self.kinds.items():
            whole = [*range(ITEMS)] if kind.name in ("STREAM", "CHANNEL") else ["answer"]
            got, error = self.items[number], self.ends[number]
            assert got == whole[: len(got)]
            assert len(got) >= self.left.get(number, 0)
            if error is None:
                assert got == whole and number in self.begun
            else:
                assert self.restarts and isinstance(error, Canceled) and "restarted" in error.message
        assert self.client.open_streams == 0 and self.server.sequence.ack == self.client.sequence.seq


def play(world: World) -> None:
    for route in ALL:
        world.open(route)
    for turn in range(6):
        if not world.up:
            world.connect()
        world.drive(700)
        if world.acceptor is None:
            world.safely(world.work)
        world.sync()
        world.grant()
        world.upload()
        if turn % 2 and world.acceptor is None:
            world.beat()
    world.finish()


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("dies_after", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_death_at_any_write_loses_and_repeats_nothing(codec: str, dies_after: bool, late: bool) -> None:
    world = World(codec, late)
    play(world)
    assert not world.restarts and None in world.ends.values()
    for at in range(1, world.writes + 1):
        other = World(codec, late)
        other.disk.dies_at, other.disk.dies_after = at, dies_after
        play(other)
        assert other.restarts == 1, at


@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_a_death_at_any_byte_loses_and_repeats_nothing(codec: str) -> None:
    for at in range(0, 2_500, 7):
        world = World(codec)
        for route in ALL:
            world.open(route)
        world.drive(at)
        if world.acceptor is None:
            world.work()
        world.drive(300)
        world.kill()
        world.finish()


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.sampled_from(ALL)),
        st.tuples(st.just("drive"), st.integers(1, 3_000)),
        st.tuples(st.just("die"), st.integers(1, 3), st.booleans()),
        st.sampled_from(
            [("work",), ("grant",), ("upload",), ("beat",), ("cut",), ("kill",), ("sync",), ("drive", FOREVER)]
        ),
    ),
    max_size=40,
)


@given(actions=ACTIONS, small=st.booleans(), late=st.booleans())
@example(actions=[("cut",)] * 3 + [("die", 1, False), ("cut",), ("cut",)], small=False, late=False)
@settings(max_examples=200)
def test_whatever_happens_nothing_is_lost_repeated_or_begun_twice(actions: Any, small: bool, late: bool) -> None:
    world = World(late=late)
    with pytest.MonkeyPatch.context() as patch:
        if small:
            # Each log is rewritten at every write.
            patch.setattr(write_ahead, "REWRITE_BYTES", -(1 << 20))
        for action, *arguments in actions:
            if action in ("die", "cut", "kill") and not world.patient:
                continue
            if action == "die":
                world.disk.dies_at, world.disk.dies_after = world.disk.writes + arguments[0], arguments[1]
            elif action == "work":
                if world.acceptor is None:
                    world.safely(world.work)
            elif action == "beat":
                if world.acceptor is None:
                    world.beat()
            else:
                getattr(world, action)(*arguments)
            if not world.up:
                world.connect()
        world.finish()


def test_a_session_that_is_over_leaves_nothing() -> None:
    world = World()
    world.drive()
    assert world.disk.logs
    world.server.close(world.now, Canceled(message="over"))
    assert not world.disk.logs


def test_a_request_that_is_not_durable_ends_with_its_session() -> None:
    world = World(late=True)
    world.open("demo.call")
    world.drive(FOREVER - 1)
    while world.sync():
        world.drive(FOREVER - 1)
    world.open("demo.stream")
    world.drive(FOREVER - 1)
    before = list(world.begun)
    world.server.close(world.now, Canceled(message="over"))
    world.serve()
    assert world.begun == before == [1]
