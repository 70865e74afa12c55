"""Hostile set-ups, leases and resuming, and the safe answer to them, in every dialect."""

from __future__ import annotations

import math

import pytest

from tests.builds import Build
from tests.sim.cut_links import TOKEN, World
from tests.sim.target import DIALECTS, V00, V02, V1, Target

ALL = pytest.mark.parametrize("dialect", DIALECTS)
COUNTED = pytest.mark.parametrize("dialect", (V1, V02))


@ALL
@pytest.mark.parametrize("first", ["REQUEST_RESPONSE", "KEEPALIVE", "LEASE", "CANCEL", "ERROR", "METADATA_PUSH"])
def test_nothing_goes_before_the_set_up(build: Build, dialect: str, first: str) -> None:
    # THREATS 22
    target = Target(build, dialect, set_up=False)
    if first == "KEEPALIVE":
        if dialect == V00:
            return
        said = target.codec.frame(target.frames.KeepaliveFrame(0x80))
    elif first == "LEASE":
        said = target.codec.frame(target.frames.LeaseFrame(1000, 5))
    elif first == "ERROR":
        said = target.error(1)
    else:
        said = target.frame(first, 0 if first == "METADATA_PUSH" else 1)
    assert target.say(said, target.setup()) == ([(0, 0x001)], ["Closed"])
    assert not target.session.link_wanted


@ALL
def test_a_second_set_up_is_ignored_and_resets_nothing(build: Build, dialect: str) -> None:
    # THREATS 23
    target = Target(build, dialect)
    target.say(target.request("REQUEST_STREAM", 1, n=5))
    assert target.say(target.setup(metadata_mime=b"other", keepalive_ms=1, lifetime_ms=1)) == ([], [])
    assert target.session.credit(target.number(1)) == 5
    if dialect != V00:
        # The times of the first one apply.
        assert target.session.next_timer() == target.now + 45.0
    assert target.say(target.request("REQUEST_RESPONSE", 3)) == ([], ["Requested"])


@ALL
def test_a_client_ignores_a_set_up(build: Build, dialect: str) -> None:
    # THREATS 23
    target = Target(build, dialect, "client")
    stream = target.open("STREAM", 5)
    errors, events = target.say(target.setup())
    assert (errors, set(events) - {"Established"}) == ([], set())
    assert target.say(target.item(stream)) == ([], ["ItemReceived"])


def test_a_set_up_on_a_resumed_link_is_ignored(build: Build) -> None:
    # THREATS 23
    world = World(build)
    world.connect()
    world.drive()
    stream = world.client.open(world.kind.STREAM, "s", world.payload(), 5)
    world.drive()
    world.cut()
    world.connect()
    world.drive()
    setup = Target(build, V1).setup(token=b"another token")
    world.server.receive(setup, world.now)
    world.drive()
    world.server.send(stream, world.payload(b"fine"))
    world.drive()
    assert world.items["client", stream] == [b"fine"]


@ALL
def test_a_set_up_on_a_stream_is_refused(build: Build, dialect: str) -> None:
    # THREATS 24
    target = Target(build, dialect, set_up=False)
    assert target.say(target.setup(stream_id=5)) == ([(0, 0x001)], ["Closed"])


@COUNTED
@pytest.mark.parametrize("version", [(9, 9), (0, 1), (65_535, 65_535)])
def test_other_versions_are_refused(build: Build, dialect: str, version: tuple[int, int]) -> None:
    # THREATS 24
    target = Target(build, dialect, set_up=False)
    major, minor = version
    assert target.say(target.setup(major=major, minor=minor)) == ([(0, 0x001)], ["Closed"])


@COUNTED
@pytest.mark.parametrize(("interval", "lifetime"), [(0, 1000), (1000, 0), (0, 0)])
def test_times_of_nothing_are_refused(build: Build, dialect: str, interval: int, lifetime: int) -> None:
    # THREATS 25
    target = Target(build, dialect, set_up=False)
    assert target.say(target.setup(keepalive_ms=interval, lifetime_ms=lifetime)) == ([(0, 0x001)], ["Closed"])


@COUNTED
def test_the_longest_and_the_shortest_times_are_times(build: Build, dialect: str) -> None:
    # THREATS 25
    target = Target(build, dialect, set_up=False)
    assert target.say(target.setup(keepalive_ms=2**31 - 1, lifetime_ms=2**31 - 1)) == ([], ["Established"])
    assert target.session.next_timer() == pytest.approx(target.now + (2**31 - 1) / 2000)
    target = Target(build, dialect, set_up=False)
    assert target.say(target.setup(keepalive_ms=1, lifetime_ms=1)) == ([], ["Established"])
    # The client requested it, and it is not a loop: each timer is later than the one before.
    first = target.session.next_timer()
    target.session.handle_timer(first)
    assert target.session.next_timer() > first
    target.session.handle_timer(target.session.next_timer())
    assert target.told() == (target.goodbye, ["Closed"])
    assert target.session.next_timer() is None


@COUNTED
def test_a_server_that_cannot_resume_says_so(build: Build, dialect: str) -> None:
    # THREATS 26
    target = Target(build, dialect, set_up=False)
    assert target.say(target.setup(token=TOKEN)) == ([(0, 0x003)], ["Closed"])


def test_a_token_of_somebody_else_is_worth_nothing(build: Build) -> None:
    # THREATS 28
    world = World(build)
    world.accept = _with_identity(world.accept, b"her certificate")
    world.connect()
    world.drive()
    stream = world.client.open(world.kind.STREAM, "s", world.payload(), 5)
    world.drive()
    owned = world.accept
    for identity in (b"his certificate", b""):
        thief = _with_identity(owned, identity)()
        thief.link_up(world.now)
        frame = build.module("weirpool.wire.rsocket.frames").ResumeFrame(TOKEN, 0, 0)
        codec = build.module("weirpool.wire.rsocket.codec").Codec()
        with pytest.raises(build.module("weirpool.errors").ProtocolError, match="no session with this token"):
            thief.receive(codec.frame(frame), world.now)
        # The session is unaffected: its old link still carries it.
        world.server.send(stream, world.payload(b"hers"))
        world.drive()
    assert world.items["client", stream] == [b"hers", b"hers"]


def _with_identity(accept, identity):
    def made():
        acceptor = accept()
        acceptor.identity = identity
        return acceptor

    return made


@pytest.mark.parametrize("position", [1, 2**31, 2**63 - 1])
def test_a_server_that_confirms_what_was_never_sent_is_left(build: Build, position: int) -> None:
    # THREATS 29, 31
    world = World(build)
    world.connect()
    world.drive()
    world.cut()
    world.client.link_up(world.now)
    world.client.take_output()
    codec = build.module("weirpool.wire.rsocket.codec").Codec()
    ok = build.module("weirpool.wire.rsocket.frames").ResumeOkFrame(position)
    world.client.receive(codec.frame(ok), world.now)
    closed = world.client.take_events()[-1]
    assert type(closed.error).__name__ == "ResumeRejected"
    assert not world.client.link_wanted


def test_a_confirmation_of_less_than_before_trims_nothing(build: Build) -> None:
    # THREATS 31: unconfirmed frames can be sent again after it.
    world = World(build)
    world.connect()
    world.drive()
    stream = world.client.open(world.kind.STREAM, "s", world.payload(), 9)
    world.drive()
    world.server.send(stream, world.payload(b"1"))
    world.drive()
    codec = build.module("weirpool.wire.rsocket.codec").Codec()
    keepalive = build.module("weirpool.wire.rsocket.frames").KeepaliveFrame
    for position in (7, 3, 0):
        world.server.receive(codec.frame(keepalive(0, position)), world.now)
    world.server.send(stream, world.payload(b"2"))
    world.cut()
    world.connect()
    world.drive()
    assert world.items["client", stream] == [b"1", b"2"]


def test_a_storm_of_half_resumed_sessions_is_capped_and_expires(build: Build) -> None:
    # THREATS 30
    sessions = 20
    world = World(build, max_connections=0, max_sessions=sessions, resume_timeout=60.0)
    taken = []
    for number in range(100):
        acceptor = world.accept()
        acceptor.link_up(world.now)
        session = acceptor.receive(Target(build, V1).setup(token=b"token %d" % number), world.now)
        if session.link_wanted:
            taken.append(session)
    assert len(taken) == sessions
    for session in taken:
        session.link_down(world.now, None)
    for session in taken:
        session.handle_timer(world.now + 60.0)
        assert not session.link_wanted
    # Another session is accepted again.
    world.connect()
    world.drive()
    assert world.server.link_wanted


@ALL
def test_leases_of_nothing_and_of_everything(build: Build, dialect: str) -> None:
    # THREATS 32, 33
    target = Target(build, dialect, "client", lease=True)
    lease = target.frames.LeaseFrame
    missing = build.module("weirpool.errors").LeaseMissing

    def say(milliseconds: int, requests: int) -> None:
        errors, events = target.say(target.codec.frame(lease(milliseconds, requests, None, milliseconds * 1_000_000)))
        assert (errors, events[-1]) == ([], "LeaseGranted")

    say(0x7FFFFFFF, 0x7FFFFFFF)
    target.open("CALL")
    assert math.isfinite(target.session.next_timer())
    for milliseconds, requests in ((1000, 0), (0, 1000)):
        # The last one wins.
        say(milliseconds, requests)
        with pytest.raises(missing):
            target.open("CALL")
    say(1000, 1)
    target.session.handle_timer(target.now + 1.0)
    with pytest.raises(missing):
        target.open("CALL")


@pytest.mark.parametrize("dialect", (V1, V00))
def test_a_lease_with_its_top_bits_set_is_no_negative_one(build: Build, dialect: str) -> None:
    # THREATS 32, 33: 2^64-1 nanoseconds; in RSocket 1.0 the top bit is reserved.
    target = Target(build, dialect, "client", lease=True)
    body = bytearray(target.codec.encode(target.frames.LeaseFrame(1, 1)))
    body[target.codec.header_bytes :] = b"\xff" * (len(body) - target.codec.header_bytes)
    errors, events = target.say(target.prefixed(bytes(body)))
    assert (errors, events[-1]) == ([], "LeaseGranted")
    for _ in range(10):
        target.open("CALL")
    assert math.isfinite(target.session.next_timer())


@pytest.mark.parametrize("fields", ["ffffffff 0000000a", "000003e8 ffffffff", "80000001 8000000a"])
def test_a_lease_of_less_than_nothing_allows_nothing(build: Build, fields: str) -> None:
    # THREATS 32; ReactiveSocket 0.2, LEASE Frame: signed integers, which MUST be > 0.
    target = Target(build, V02, "client", lease=True)
    good = target.codec.frame(target.frames.LeaseFrame(60_000, 10))
    assert target.say(good)[0] == []
    target.open("CALL")
    assert target.say(good[:9] + bytes.fromhex(fields)) == ([], ["LeaseGranted"])
    with pytest.raises(build.module("weirpool.errors").LeaseMissing):
        target.open("CALL")
    target.say(good)
    target.open("CALL")


@pytest.mark.parametrize("times", ["ffffffff 00015f90", "80000001 00015f90", "00004e20 ffffffff", "00004e20 80000000"])
def test_negative_times_of_a_set_up_are_refused(build: Build, times: str) -> None:
    # THREATS 25; ReactiveSocket 0.2, SETUP Frame: signed integers, which MUST be > 0.
    target = Target(build, V02, set_up=False)
    setup = target.setup()
    assert target.say(setup[:13] + bytes.fromhex(times) + setup[21:]) == ([(0, 0x001)], ["Closed"])


def test_the_reserved_bits_of_times_are_ignored(build: Build) -> None:
    # RSocket 1.0, SETUP Frame.
    target = Target(build, V1, set_up=False)
    setup = target.setup()
    assert target.say(setup[:13] + bytes.fromhex("80004e20 80015f90") + setup[21:]) == ([], ["Established"])
    assert target.session.next_timer() == target.now + 45.0


@ALL
def test_of_many_leases_the_last_one_is_valid(build: Build, dialect: str) -> None:
    # THREATS 32
    target = Target(build, dialect, "client", lease=True)
    leases = [target.frames.LeaseFrame(10_000, count) for count in (5, 1)]
    for frame in leases:
        frame.ttl_ns = 10**10
    often, last = map(target.codec.frame, leases)
    errors, events = target.say(often * 5_000, last)
    assert (errors, events.count("LeaseGranted")) == ([], 5_001)
    assert target.session.requests_left == 1
