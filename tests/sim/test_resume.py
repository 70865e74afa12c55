"""Sessions that outlive their links: cut at every boundary, every item arrives once and in order."""

from __future__ import annotations

import pytest

TOKEN = b"t" * 16


class World:
    """A resumable client and its server, over links that are cut when a budget of bytes is used up."""

    def __init__(self, build, client=None, checkpoint=None, accept=None, **settings) -> None:
        self.build = build
        self.payload = build.module("penstock.payload").Payload
        self.kind = build.module("penstock.kinds").Kind
        self.settings = build.module("penstock.settings").Settings(resume=True, **settings)
        self.now = 0.0
        dialects = build.module("penstock.dialects")
        self.accept = dialects.acceptors("rsocket", self.settings)
        self.client = dialects.client_session("rsocket", self.settings, random=TOKEN)
        self.server = None
        self.acceptor = None
        self.items: dict[tuple[str, int], list[bytes]] = {}
        self.ends: list[tuple[str, int]] = []
        self.requests: list[object] = []
        self.closed: list[object] = []
        self.refused = False
        self.up = False
        # What is under way on the link.
        self.there = b""
        self.back = b""

    def connect(self) -> None:
        self.acceptor = self.accept()
        self.acceptor.link_up(self.now)
        self.client.link_up(self.now)
        self.up = True

    def subscribe(self, credit):
        """Connect, open a stream, and return it with a checkpoint that is committed."""
        self.connect()
        stream = self.client.open(self.kind.STREAM, "s", self.payload(), credit)
        self.drive()
        checkpoint = self.client.checkpoint(stream, 0)
        self.client.commit()
        self.drive()
        return stream, checkpoint

    def replace_client(self, checkpoint) -> None:
        """Let another process go on from `checkpoint`. What the client before it had received is gone."""
        dialects = self.build.module("penstock.dialects")
        self.client = dialects.client_session("rsocket", self.settings, checkpoint=checkpoint, secret=TOKEN)
        self.items.clear()

    def cut(self) -> None:
        self.client.link_down(self.now, None)
        if self.server is not None:
            self.server.link_down(self.now, None)
        self.acceptor = None
        self.up = False
        self.there = self.back = b""

    def drive(self, budget: int = 1 << 60) -> int:
        """Move bytes, each way in turn, until nothing moves or the budget is used; return what is left of it."""
        while True:
            self.collect()
            if self.up:
                self.there += b"".join(self.client.take_output())
                self.back += b"".join(self.server.take_output()) if self.server is not None else b""
            if budget == 0 or not (self.there or self.back):
                return budget
            there, self.there = self.there[:budget], self.there[budget:]
            budget -= len(there)
            if there:
                self.deliver(there)
            back, self.back = self.back[:budget], self.back[budget:]
            budget -= len(back)
            self.client.receive(back, self.now)

    def deliver(self, data: bytes) -> None:
        if self.acceptor is None:
            self.server.receive(data, self.now)
            return
        try:
            session = self.acceptor.receive(data, self.now)
        except self.build.module("penstock.errors").ProtocolError:
            self.client.receive(self.acceptor.farewell, self.now)
            self.refused = True
            return
        if session is not None:
            self.server, self.acceptor = session, None

    def collect(self) -> None:
        for side, session in (("client", self.client), ("server", self.server)):
            for event in [] if session is None else session.take_events():
                name = type(event).__name__
                found = self.items.setdefault((side, event.stream_id), [])
                if name == "ItemReceived":
                    found.append(event.payload.data)
                elif name == "RunReceived":
                    found += [payload.data for payload in event.run.payloads()]
                elif name == "Requested":
                    self.requests.append(event)
                elif name == "Closed" and side == "client":
                    self.closed.append(event.error)
                if name in ("Completed", "Failed") or (name == "ItemReceived" and event.done):
                    self.ends.append((side, event.stream_id))


def exchange(build, boundary: int) -> World:
    """Play a stream and a channel at once, with one cut after `boundary` bytes."""
    world = World(build, fragment_bytes=64)
    payload, kind = world.payload, world.kind
    world.connect()
    left = world.drive(boundary)

    def drive() -> None:
        nonlocal left
        left = world.drive(left)
        if left == 0:
            world.cut()
            left = 1 << 60
        if not world.up:
            world.connect()
            left = world.drive(left)
            world.drive()

    stream = world.client.open(kind.STREAM, "s", payload(b"x" * 100), 20)
    channel = world.client.open(kind.CHANNEL, "c", payload(b"first"), 20)
    drive()
    world.server.request(channel, 11)
    drive()
    for number in range(10):
        world.server.send(stream, payload(b"%03d" % number * 40), number == 9)
        world.client.send(channel, payload(b"up %03d" % number), number == 9)
        if number % 3 == 0:
            drive()
    world.server.send(channel, payload(b"down"), True)
    drive()
    world.drive()
    assert world.items["client", stream] == [b"%03d" % number * 40 for number in range(10)]
    assert world.items["server", channel] == [b"up %03d" % number for number in range(10)]
    assert world.items["client", channel] == [b"down"]
    assert sorted(world.ends) == [("client", stream), ("client", channel), ("server", channel)]
    assert [request.stream_id for request in world.requests] == [stream, channel]
    assert (world.client.open_streams, world.server.open_streams) == (0, 0)
    return world


@pytest.mark.parametrize("offset", range(7))
def test_a_cut_anywhere_loses_and_repeats_nothing(build, offset) -> None:
    # The set-up itself cannot be resumed before the server has it: the first cut comes behind it.
    for boundary in range(150 + offset, 2600, 7):
        exchange(build, boundary)


def test_unknown_tokens_are_refused(build) -> None:
    # THREATS 28
    world = World(build)
    world.connect()
    world.drive()
    world.cut()
    world.accept = build.module("penstock.dialects").acceptors("rsocket", world.settings)
    world.connect()
    world.drive()
    assert world.refused and not world.client.link_wanted


@pytest.mark.parametrize("position", [1, 2**31, 2**63 - 1])
def test_positions_in_the_future_are_refused_without_harm(build, position) -> None:
    # THREATS 29
    frames = build.module("penstock.wire.frames")
    codec = build.module("penstock.wire.rsocket_v1").RSocketV1()
    world = World(build)
    world.connect()
    world.drive()
    for server_position, client_position in ((position, 0), (0, position)):
        acceptor = world.accept()
        acceptor.link_up(world.now)
        with pytest.raises(build.module("penstock.errors").ProtocolError, match="RESUME refused"):
            acceptor.receive(codec.frame(frames.ResumeFrame(TOKEN, server_position, client_position)), world.now)
        assert codec.decode(acceptor.farewell, 3, len(acceptor.farewell)).code == 0x004
    call = world.client.open(world.kind.CALL, "x", world.payload())
    world.drive()
    world.server.send(call, world.payload(b"fine"))
    world.drive()
    assert world.items["client", call] == [b"fine"]


def test_a_token_in_use_is_refused(build) -> None:
    # THREATS 27
    world = World(build)
    world.connect()
    world.drive()
    other = build.module("penstock.dialects").client_session("rsocket", world.settings, random=TOKEN)
    other.link_up(0.0)
    acceptor = world.accept()
    acceptor.link_up(0.0)
    session = acceptor.receive(b"".join(other.take_output()), 0.0)
    assert not session.link_wanted
    assert world.server.link_wanted


def test_a_session_without_a_link_expires(build) -> None:
    # THREATS 30
    world = World(build, resume_timeout=5.0)
    world.connect()
    world.drive()
    world.cut()
    for session in (world.client, world.server):
        session.handle_timer(4.9)
        assert session.link_wanted
        session.handle_timer(5.0)
        assert not session.link_wanted
    world.connect()
    world.drive()


def test_confirming_what_was_never_sent_ends_the_session(build) -> None:
    # THREATS 31
    frames = build.module("penstock.wire.frames")
    codec = build.module("penstock.wire.rsocket_v1").RSocketV1()
    world = World(build)
    world.connect()
    world.drive()
    world.server.receive(codec.frame(frames.KeepaliveFrame(0, 1)), 0.0)
    assert not world.server.link_wanted


@pytest.mark.parametrize("died", ["before commit", "commit lost", "commit arrived"])
@pytest.mark.parametrize("fragment_bytes", [64, 1_000_000])
def test_another_process_goes_on_from_a_checkpoint(build, died, fragment_bytes) -> None:
    world = World(build, fragment_bytes=fragment_bytes)
    payload = world.payload
    world.connect()
    stream = world.client.open(world.kind.STREAM, "s", payload(), 10)
    world.drive()
    stored: list[bytes] = []
    checkpoint = world.client.checkpoint(stream, 0)
    world.client.commit()
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for _ in range(min(count, world.server.credit(stream))):
            world.server.send(stream, payload(b"%04d" % sent * 50))
            sent += 1

    for turn in range(6):
        send(4)
        # Stop in the middle of what is under way: the last item may be half there.
        world.drive(300 + 97 * turn)
        fresh = world.items.pop(("client", stream), [])
        checkpoint = world.client.checkpoint(stream, len(fresh))
        stored += fresh
        if died != "before commit" or turn % 2:
            world.client.commit()
        if died == "commit arrived":
            world.drive()
            fresh = world.items.pop(("client", stream), [])
        # The process dies: whatever it had received after the checkpoint is gone with it.
        world.cut()
        world.replace_client(checkpoint)
        world.connect()
        world.drive(150)
    world.drive()
    for _ in range(20):
        send(10)
        world.drive()
        fresh = world.items.pop(("client", stream), [])
        world.client.checkpoint(stream, len(fresh))
        stored += fresh
        world.client.commit()
        world.drive()
    stored += world.items.pop(("client", stream), [])
    assert stored == [b"%04d" % number * 50 for number in range(sent)]
    assert world.client.streams() == [stream]


@pytest.mark.parametrize("fragment_bytes", [64, 1_000_000])
@pytest.mark.parametrize("second_cut", [0, 40, 130, 377, 2_000])
def test_what_no_checkpoint_covers_outlives_links_and_the_process(build, fragment_bytes, second_cut) -> None:
    world = World(build, fragment_bytes=fragment_bytes)
    stream, checkpoint = world.subscribe(100)
    items = [b"%04d" % number * 50 for number in range(8)]
    for item in items[:6]:
        world.server.send(stream, world.payload(item))
    # The disk is full, so there is no other checkpoint; and the links break.
    world.drive(1_000)
    for budget in (second_cut, 1 << 60):
        world.cut()
        world.connect()
        world.drive(budget)
    for item in items[6:]:
        world.server.send(stream, world.payload(item))
    world.drive()
    assert world.items["client", stream] == items
    # Whoever is killed now goes on from the checkpoint.
    world.cut()
    world.replace_client(checkpoint)
    world.connect()
    world.drive()
    assert world.items["client", stream] == items
    assert world.closed == []


@pytest.mark.parametrize(("size", "lives"), [(40, True), (8_000, False)])
def test_a_client_that_is_killed_again_and_again_finds_its_session_unless_a_frame_is_large(build, size, lives) -> None:
    world = World(build)
    stream, checkpoint = world.subscribe(1_000)
    for number in range(100):
        world.server.send(stream, world.payload(b"%03d" % number + bytes(size)))
    for _ in range(20):
        # Some of it is on its way, and the client is killed before it has kept any.
        world.drive(1_000)
        world.server.progressed(world.now)
        world.cut()
        world.replace_client(checkpoint)
        world.connect()
    world.drive()
    assert len(world.items.get(("client", stream), [])) == (100 if lives else 0)
    assert (not world.closed) == lives


def test_server_that_goes_on_elsewhere_than_it_was_asked_to_ends_the_session(build) -> None:
    wire, frames = build.module("penstock.wire.rsocket_v1"), build.module("penstock.wire.frames")
    errors = build.module("penstock.errors")
    codec = wire.RSocketV1()
    world = World(build)
    world.connect()
    stream = world.client.open(world.kind.STREAM, "s", world.payload(), 100)
    world.drive()
    world.client.checkpoint(stream, 0)
    world.client.commit()
    world.drive()
    world.server.send(stream, world.payload(b"x" * 10))
    world.drive()
    world.cut()
    world.client.link_up(world.now)
    world.client.take_output()
    world.client.receive(codec.frame(frames.ResumeOkFrame(0)), world.now)
    longer = frames.Frame(frames.FrameType.PAYLOAD, stream, frames.NEXT, 0, None, b"x" * 11)
    world.client.receive(codec.frame(longer), world.now)
    world.collect()
    assert [type(error) for error in world.closed] == [errors.ResumeRejected]


@pytest.mark.parametrize("another_process", [False, True])
def test_half_an_item_has_time_for_its_other_half_after_a_long_outage(build, another_process) -> None:
    world = World(build, fragment_bytes=64, resume_timeout=10_000.0, reassembly_timeout=60.0)
    world.now = 5_000.0
    world.connect()
    stream = world.client.open(world.kind.STREAM, "s", world.payload(), 10)
    world.drive()
    world.server.send(stream, world.payload(b"x" * 1000))
    world.drive(400)
    checkpoint = world.client.checkpoint(stream, 0)
    world.client.commit()
    world.cut()
    if another_process:
        world.replace_client(checkpoint)
    world.now += 1_000.0
    for session in (world.client, world.server):
        session.handle_timer(world.now)
    world.connect()
    world.drive(200)
    world.client.handle_timer(world.now)
    world.drive()
    assert world.items["client", stream] == [b"x" * 1000]


def test_what_is_no_checkpoint_is_refused(build) -> None:
    dialects, errors = build.module("penstock.dialects"), build.module("penstock.errors")
    settings = build.module("penstock.settings").Settings(resume=True)
    for junk in (b"", b"junk", b"\x80"):
        with pytest.raises(errors.LocalError):
            dialects.client_session("rsocket", settings, checkpoint=junk, secret=TOKEN)


def test_stream_ids_begin_anew_and_skip_those_in_use(build) -> None:
    # THREATS 35; RSocket 1.0, Stream Identifiers, Lifetime: from 2^31-1 back to 1, which is still open here.
    resume = build.module("penstock.rsocket.resume")
    world = World(build)
    payload, kind = world.payload, world.kind
    world.connect()
    live = world.client.open(kind.STREAM, "live", payload(), 5)
    world.drive()
    checkpoint = resume.decode_checkpoint(world.client.checkpoint(live, 0))
    checkpoint.next_id = 2**31 - 3
    world.cut()
    session = build.module("penstock.rsocket.session").RSocketSession
    world.client = session.restore(world.settings, resume.encode_checkpoint(checkpoint), TOKEN)
    world.connect()
    world.drive()
    opened = [world.client.open(kind.CALL, "r", payload(b"%d" % number), 1) for number in range(4)]
    assert opened == [2**31 - 3, 2**31 - 1, 3, 5]
    world.drive()
    for stream in (*opened, live):
        world.server.send(stream, payload(b"answer to %d" % stream), True)
    world.drive()
    assert [world.items["client", stream] for stream in (*opened, live)] == [
        [b"answer to %d" % stream] for stream in (*opened, live)
    ]


# A link that is lost before the client has heard anything over it.


class Unheard(World):
    """A client that has opened a call and a stream, and whose first link was lost before it heard of its server.

    Attributes:
        lost: What was under way on that link.

    """

    def __init__(self, build, read: int = 0, **settings) -> None:
        super().__init__(build, **settings)
        self.connect()
        self.call = self.client.open(self.kind.CALL, "c", self.payload(b"once"), 1)
        self.stream = self.client.open(self.kind.STREAM, "s", self.payload(b"once"), 5)
        self.first = self.acceptor
        self.lost = b"".join(self.client.take_output())
        if read:
            self.deliver(self.lost[:read])
            self.collect()
        self.cut()

    def relink(self) -> bool:
        """Make another link; return whether the session goes on over it. Else it is lost as well."""
        self.refused = False
        self.connect()
        self.drive()
        if not self.refused and self.server.link_wanted and self.client.link_wanted:
            return True
        self.cut()
        return False

    def finish(self) -> None:
        """Answer both requests, which were handled once each."""
        assert [request.stream_id for request in self.requests] == [self.call, self.stream]
        self.server.send(self.call, self.payload(b"answer"), True)
        for number in range(5):
            self.server.send(self.stream, self.payload(b"%d" % number), number == 4)
        self.drive()
        assert self.items["client", self.call] == [b"answer"]
        assert self.items["client", self.stream] == [b"%d" % number for number in range(5)]
        assert (self.client.open_streams, self.server.open_streams, self.closed) == (0, 0, [])


def test_a_set_up_that_no_server_has_read_is_said_again(build) -> None:
    world = Unheard(build)
    # No server knows the session; the next link begins it.
    assert [world.relink() for _ in range(2)] == [False, True]
    world.finish()


def test_a_set_up_may_be_lost_more_than_once(build) -> None:
    world = Unheard(build)
    for _ in range(3):
        assert not world.relink()
        world.connect()
        world.client.take_output()
        world.cut()
    assert [world.relink() for _ in range(2)] == [False, True]
    world.finish()


def test_a_set_up_that_a_server_has_read_is_not_said_again(build) -> None:
    lost = len(Unheard(build).lost)
    for read in range(100, lost + 1):
        world = Unheard(build, read)
        if world.server is None:
            continue
        # Whatever part of the set-up and the requests the server has read, it gets the rest.
        assert world.relink() or world.relink()
        world.finish()


def test_a_set_up_that_is_read_late_is_not_begun_twice(build) -> None:
    world = Unheard(build)
    assert not world.relink()
    # The first link brings it all the same, once a server has refused to resume it.
    late = world.first.receive(world.lost, world.now)
    late.link_down(world.now, None)
    world.server = late
    world.collect()
    # The server knows the token by now: what is said again is refused, and the session is resumed.
    assert not world.relink()
    world.server = late
    assert world.relink()
    world.finish()


def test_a_server_that_refuses_the_set_up_each_time_is_believed(build) -> None:
    world = Unheard(build)
    settings = build.module("penstock.settings").Settings(resume_timeout=0)
    world.accept = build.module("penstock.dialects").acceptors("rsocket", settings)
    assert [world.relink() for _ in range(3)] == [False] * 3
    [error] = world.closed
    assert isinstance(error, build.module("penstock.errors").SetupRejected)
    assert world.requests == []


def test_a_session_of_which_something_was_heard_or_forgotten_is_not_begun_anew(build) -> None:
    errors = build.module("penstock.errors")
    heard = Unheard(build, 1 << 20)
    heard.relink()
    heard.cut()
    forgotten = Unheard(build, resume_bytes=8)
    for world in (heard, forgotten):
        # Another server.
        world.accept = build.module("penstock.dialects").acceptors("rsocket", world.settings)
        world.server = None
        assert not world.relink()
        [error] = world.closed
        assert isinstance(error, errors.ResumeRejected)


def test_what_a_server_has_begun_and_given_up_is_not_begun_again(build) -> None:
    # All was read, no answer came through, and the server ended the session for want of room.
    world = Unheard(build, 1 << 20)
    assert len(world.requests) == 2
    limit = build.module("penstock.errors").LimitExceeded("max_sessions")
    world.server.close(world.now, limit)
    world.server = None
    for _ in range(3):
        world.refused = False
        world.connect()
        world.drive()
        world.cut()
    assert len(world.requests) == 2
    [error] = world.closed
    assert isinstance(error, build.module("penstock.errors").SetupRejected) and "max_sessions" in str(error)


def test_a_set_up_is_not_said_again_for_ever(build) -> None:
    world = Unheard(build, resume_timeout=30.0)
    for _ in range(4):
        world.now += 10.0
        world.client.handle_timer(world.now)
        world.connect()
        world.client.take_output()
        world.cut()
    world.collect()
    [error] = world.closed
    assert isinstance(error, build.module("penstock.errors").LinkLost)
