"""A server that is killed at any point and restored from its logs: nothing is lost, repeated or started twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.stored import Died, Disk, Logs

TOKEN = b"t" * 16
ITEMS = 12


class World:
    """A client, and consecutive servers that share a disk.

    The server's application sends `ITEMS` numbered items on each stream and channel, in each turn as many as
    the credit permits. It answers calls, and uploads when they end. If its disk is `late`, it continues before
    its writes are durable.
    """

    def __init__(self, build, protocol="rsocket", late=False, **limits) -> None:
        self.build = build
        self.late = late
        self.protocol = protocol
        self.payload = build.module("weirpool.payload").Payload
        self.kind = build.module("weirpool.kinds").Kind
        self.dialects = build.module("weirpool.protocols")
        self.settings = build.module("weirpool.settings").Settings(resume=True, fragment_bytes=64, **limits)
        self.disk = Disk()
        self.client = self.dialects.client_session(protocol, self.settings, random=TOKEN)
        self.begun: list[tuple[str, int]] = []
        # The streams that the server answers: the items sent, and those known to have left.
        self.serving: dict[int, int] = {}
        self.left: dict[int, int] = {}
        self.items: dict[int, list[bytes]] = {}
        self.ends: dict[int, object] = {}
        self.opened: dict[int, object] = {}
        self.restarts = 0
        self.writes = 0
        self.up = False
        self.server = None
        self.start()
        # A session that is not durable cannot be resumed, so its first bytes always pass.
        self.connect()
        self.open("call")
        self.drive()

    def start(self) -> None:
        self.logs = Logs(self.disk, self.late)
        self.accept = self.dialects.detectors(self.protocol, self.settings, self.logs)
        self.server = self.acceptor = None
        self.serving = {}

    def kill(self) -> None:
        self.restarts += 1
        self.cut(True)
        self.start()

    def cut(self, killed: bool = False) -> None:
        self.client.link_down(0.0, None)
        if self.server is not None and not killed:
            self.server.link_down(0.0, None)
        self.up = False
        self.there = self.back = b""

    def connect(self) -> None:
        self.acceptor = self.accept()
        self.acceptor.link_up(0.0)
        self.client.link_up(0.0)
        self.up = True
        self.there = self.back = b""

    def open(self, what: str) -> None:
        kind = self.kind[what.upper()]
        route, data = what, self.payload(b"ask " * 40)
        stream_id = self.client.open(kind, route, data, 5 if what in ("stream", "channel") else 0)
        if what != "fire":
            self.opened[stream_id] = kind
            self.items[stream_id] = []

    # The server, which may be killed in any of these.

    def serve(self) -> None:
        server = self.server
        if server is None:
            return
        for event in server.take_events():
            name = type(event).__name__
            if name == "Requested":
                self.begun.append((event.kind.name, event.stream_id))
                if event.kind.name != "FIRE":
                    self.serving[event.stream_id] = 0
                if event.kind.name == "CHANNEL":
                    server.request(event.stream_id, 3)
            elif name in ("Failed", "Canceled"):
                self.serving.pop(event.stream_id, None)

    def work(self) -> None:
        """Let the server's application send items within the credit."""
        self.serve()
        for stream_id, sent in list(self.serving.items()):
            kind = self.opened[stream_id].name
            if kind in ("CALL", "UPLOAD"):
                self.server.send(stream_id, self.payload(b"answer"), True)
                self.end(stream_id)
                continue
            count = min(self.server.credit(stream_id), 3)
            for number in range(sent, min(sent + count, ITEMS)):
                self.server.send(stream_id, self.payload(b"%03d " % number * 30), number == ITEMS - 1)
                self.serving[stream_id] = number + 1
            if self.serving[stream_id] == ITEMS:
                self.end(stream_id)

    def end(self, stream_id: int) -> None:
        """Remove an answered stream, and cancel its inbound half."""
        del self.serving[stream_id]
        self.server.cancel(stream_id)

    def output(self) -> bytes:
        data = b"".join(self.server.take_output())
        if self.server.durable.settled:
            self.left.update(self.serving)
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
            self.server.receive(data, 0.0)
            return
        try:
            session = self.acceptor.receive(data, 0.0)
        except self.build.module("weirpool.errors").ProtocolError:
            self.client.receive(self.acceptor.farewell, 0.0)
            return
        if session is not None:
            self.server, self.acceptor = session, None

    # The client.

    def take(self) -> None:
        for event in self.client.take_events():
            name, stream_id = type(event).__name__, event.stream_id
            if name == "ItemReceived":
                self.items[stream_id].append(event.payload.data)
            elif name == "RunReceived":
                self.items[stream_id] += [payload.data for payload in event.run.payloads()]
            if name == "Failed" or name == "Completed" or (name == "ItemReceived" and event.done):
                assert stream_id not in self.ends
                self.ends[stream_id] = event.error if name == "Failed" else None
            if name == "Closed":
                self.ends[0] = event.error

    def grant(self) -> None:
        for stream_id, kind in self.opened.items():
            if stream_id not in self.ends and kind.name in ("STREAM", "CHANNEL"):
                self.client.request(stream_id, 5)

    def upload(self) -> None:
        for stream_id, kind in self.opened.items():
            if kind.name in ("UPLOAD", "CHANNEL") and stream_id not in self.ends:
                while self.client.credit(stream_id):
                    self.client.send(stream_id, self.payload(b"up" * 60))

    def confirm(self) -> None:
        self.client.confirm()

    def drive(self, budget: int = 1 << 60) -> None:
        forever = budget == 1 << 60
        while True:
            self.safely(self.serve)
            if not self.up:
                return
            self.there += b"".join(self.client.take_output())
            if self.server is not None:
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
                self.safely(lambda there=there: self.deliver(there))
                if not self.up:
                    return
            back, self.back = self.back[:budget], self.back[budget:]
            budget -= len(back)
            self.client.receive(back, 0.0)
            self.take()

    def finish(self) -> None:
        """Let everything end, and check the result."""
        for _ in range(30):
            if not self.up:
                self.connect()
            self.drive()
            self.safely(self.work)
            self.grant()
        self.drive()
        # Both sides agree on their positions; otherwise the session would not be resumed.
        self.disk.dies_at = -1
        self.writes = self.disk.writes
        self.cut()
        self.connect()
        self.drive()
        self.kill()
        self.connect()
        self.drive()
        self.restarts -= 1
        self.look()

    def look(self) -> None:
        assert 0 not in self.ends, self.ends[0]
        errors = self.build.module("weirpool.errors")
        assert len(set(self.begun)) == len(self.begun)
        begun = {stream_id for _, stream_id in self.begun}
        for stream_id, kind in self.opened.items():
            many = kind.name in ("STREAM", "CHANNEL")
            whole = [b"%03d " % number * 30 for number in range(ITEMS)] if many else [b"answer"]
            got, error = self.items[stream_id], self.ends[stream_id]
            assert got == whole[: len(got)]
            assert len(got) >= self.left.get(stream_id, 0)
            if error is None:
                assert got == whole
            else:
                assert self.restarts
                # "Nothing was done" must be true. The other text may also be sent for requests that did not start.
                assert isinstance(error, errors.Canceled if stream_id in begun else errors.Canceled | errors.Rejected)
        assert (self.client.open_streams, self.server.open_streams) == (0, 0)


ALL = ("call", "stream", "fire", "upload", "channel")


def play(world: World) -> None:
    for what in ALL:
        world.open(what)
    for turn in range(6):
        if not world.up:
            world.connect()
        world.drive(700)
        world.safely(world.work)
        world.sync()
        world.grant()
        world.upload()
        if turn % 2:
            world.confirm()
    world.finish()


@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2"])
@pytest.mark.parametrize("dies_after", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_a_death_at_any_write_loses_and_repeats_nothing(build, protocol, dies_after, late) -> None:
    world = World(build, protocol, late)
    play(world)
    assert not world.restarts
    for at in range(2, world.writes + 1):
        other = World(build, protocol, late)
        other.disk.dies_at, other.disk.dies_after = at, dies_after
        play(other)
        assert other.restarts == 1, at


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.sampled_from(ALL)),
        st.tuples(st.just("drive"), st.integers(1, 3_000)),
        st.tuples(st.just("die"), st.integers(1, 3), st.booleans()),
        st.sampled_from(
            [("work",), ("grant",), ("upload",), ("confirm",), ("cut",), ("kill",), ("sync",), ("drive", 1 << 60)]
        ),
    ),
    max_size=40,
)


@given(actions=ACTIONS, small=st.booleans(), late=st.booleans())
@settings(max_examples=150)
def test_whatever_happens_nothing_is_lost_repeated_or_begun_twice(builds, actions, small, late) -> None:
    for build in builds.values():
        with build.active():
            world = World(build, late=late)
            if small:
                # Each log is rewritten at every write.
                build.module("weirpool.core.write_ahead").REWRITE_BYTES = -(1 << 20)
            try:
                for action, *arguments in actions:
                    act(world, action, arguments)
                world.finish()
            finally:
                build.module("weirpool.core.write_ahead").REWRITE_BYTES = 1 << 20


def act(world: World, action: str, arguments: list) -> None:
    if action == "die":
        world.disk.dies_at, world.disk.dies_after = world.disk.writes + arguments[0], arguments[1]
        return
    if action == "kill":
        world.kill()
    elif action == "cut":
        world.cut()
    elif action == "work":
        world.safely(world.work)
    else:
        getattr(world, action)(*arguments)
    if not world.up:
        world.connect()
