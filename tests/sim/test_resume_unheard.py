"""A link that is lost before the client has heard anything over it."""

from __future__ import annotations

from tests.sim.cut_links import World

# A link that is lost before the client has heard anything over it.


class Unheard(World):
    """A client with a call and a stream, whose first link was lost before it received anything.

    Attributes:
        lost: The bytes in transit on that link.

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
        """Open another link; return whether it resumes the session. If not, the link is lost as well."""
        self.refused = False
        self.connect()
        self.drive()
        if not self.refused and self.server.link_wanted and self.client.link_wanted:
            return True
        self.cut()
        return False

    def finish(self) -> None:
        """Answer both requests, each of which was handled once."""
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
    # No server has the session; the next link begins it.
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
        # The server has read a part of the set-up and the requests, and gets the rest.
        assert world.relink() or world.relink()
        world.finish()


def test_a_set_up_that_is_read_late_is_not_begun_twice(build) -> None:
    world = Unheard(build)
    assert not world.relink()
    # After a server has rejected the resumption, the first link's bytes are sent again.
    late = world.first.receive(world.lost, world.now)
    late.link_down(world.now, None)
    world.server = late
    world.collect()
    # The server knows the token: a second set-up is rejected, and the session is resumed.
    assert not world.relink()
    world.server = late
    assert world.relink()
    world.finish()


def test_a_server_that_refuses_the_set_up_each_time_is_believed(build) -> None:
    world = Unheard(build)
    settings = build.module("weirpool.settings").Settings(resume_timeout=0)
    world.accept = build.module("weirpool.protocols").detectors("rsocket", settings)
    assert [world.relink() for _ in range(3)] == [False] * 3
    [error] = world.closed
    assert isinstance(error, build.module("weirpool.errors").SetupRejected)
    assert world.requests == []


def test_a_session_of_which_something_was_heard_or_forgotten_is_not_begun_anew(build) -> None:
    errors = build.module("weirpool.errors")
    heard = Unheard(build, 1 << 20)
    heard.relink()
    heard.cut()
    forgotten = Unheard(build, resume_bytes=8)
    for world in (heard, forgotten):
        # Another server.
        world.accept = build.module("weirpool.protocols").detectors("rsocket", world.settings)
        world.server = None
        assert not world.relink()
        [error] = world.closed
        assert isinstance(error, errors.ResumeRejected)


def test_what_a_server_has_begun_and_given_up_is_not_begun_again(build) -> None:
    # Everything was read, no response arrived, and the server ended the session because of a limit.
    world = Unheard(build, 1 << 20)
    assert len(world.requests) == 2
    limit = build.module("weirpool.errors").LimitExceeded("max_sessions")
    world.server.close(world.now, limit)
    world.server = None
    for _ in range(3):
        world.refused = False
        world.connect()
        world.drive()
        world.cut()
    assert len(world.requests) == 2
    [error] = world.closed
    assert isinstance(error, build.module("weirpool.errors").SetupRejected) and "max_sessions" in str(error)


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
    assert isinstance(error, build.module("weirpool.errors").LinkLost)
