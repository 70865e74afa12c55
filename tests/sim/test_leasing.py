"""Leases between two sessions, in every dialect."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.sim.cut_links import World
from tests.sim.pair import Pair

DIALECTS = ("rsocket-1.0", "reactivesocket-0.2", "reactivesocket-0.0")
ALL = pytest.mark.parametrize("dialect", DIALECTS)


def leased(build: Build, dialect: str, policy: str, *arguments: Any, **client: Any) -> Pair:
    granted = getattr(build.module("weirpool.leases"), policy)(*arguments)
    return Pair(build, dialect=dialect, client={"lease": True, **client}, server={"lease": granted})


def call(build: Build, session: Any) -> int:
    stream: int = session.open(
        build.module("weirpool.kinds").Kind.CALL, "r", build.module("weirpool.payload").Payload(), 1
    )
    return stream


def refuses(build: Build, session: Any) -> bool:
    try:
        call(build, session)
    except build.module("weirpool.errors").LeaseMissing:
        return True
    return False


@ALL
def test_requests_wait_for_the_first_lease_and_are_counted(build: Build, dialect: str) -> None:
    pair = leased(build, dialect, "IntervalLease", 2, 10.0)
    (granted,) = pair.events("client", "LeaseGranted")
    assert (granted.requests, granted.ttl) == (2, 10.0)
    assert [refuses(build, pair.client) for _ in range(3)] == [False, False, True]
    pair.drive()
    assert len(pair.events("server", "Requested")) == 2
    pair.advance(10.0)
    assert [refuses(build, pair.client) for _ in range(3)] == [False, False, True]
    pair.drive()
    assert len(pair.events("server", "Requested")) == 4


@ALL
def test_before_any_lease_nothing_may_be_asked(build: Build, dialect: str) -> None:
    session = build.module("weirpool.rsocket.session").RSocketSession
    spoken = build.module("weirpool.rsocket.dialect").DIALECTS[dialect]
    settings = build.module("weirpool.settings").Settings(lease=True)
    client = session.client(settings, build.module("weirpool.payload").Payload(), spoken)
    client.link_up(0.0)
    assert refuses(build, client)


@ALL
def test_a_fixed_lease_is_renewed_at_once(build: Build, dialect: str) -> None:
    pair = leased(build, dialect, "FixedLease", 3, 60.0)
    for _ in range(10):
        call(build, pair.client)
        pair.drive()
        pair.advance(0.0)
    assert len(pair.events("server", "Requested")) == 10


def test_an_adaptive_lease_waits_for_answers(build: Build) -> None:
    payload = build.module("weirpool.payload").Payload
    pair = leased(build, "rsocket-1.0", "AdaptiveLease", 4, 60.0)
    streams = [call(build, pair.client) for _ in range(4)]
    pair.drive()
    pair.advance(0.0)
    assert refuses(build, pair.client)
    for stream in streams[:2]:
        pair.server.send(stream, payload(), True)
    pair.drive()
    pair.advance(0.0)
    assert [refuses(build, pair.client) for _ in range(3)] == [False, False, True]


# THREATS 32: a request without a lease, and one after its time.
@ALL
def test_a_request_without_a_lease_is_rejected(build: Build, dialect: str) -> None:
    pair = leased(build, dialect, "IntervalLease", 1, 10.0)
    codec = pair.server_dialect.codec()
    for stream in (1, 3, 5):
        pair.server.receive(codec.request_frame(4, stream, 0, 0, None, b""), pair.now)
    pair.server.receive(codec.request_frame(5, 7, 0, 0, None, b""), pair.now)
    pair.client.take_events()
    assert len([event for event in pair.server.take_events() if type(event).__name__ == "Requested"]) == 1
    sent = b"".join(pair.server.take_output())
    frames = list(build.module("weirpool.wire.rsocket.dump").read_frames(sent, dialect, codec.prefix_bytes))
    errors = [frame for _, frame in frames if frame.type == 0x0B]
    # A fire-and-forget request has no response.
    assert [abs(frame.stream_id) for frame in errors] == [3, 5]
    assert all(frame.code == 0x202 for frame in errors)


@pytest.mark.parametrize(("dialect", "waits"), list(zip(DIALECTS, (True, True, False), strict=True)))
def test_a_server_mirrors_its_clients_leases_but_in_the_first_draft(build: Build, dialect: str, waits: bool) -> None:
    policy = build.module("weirpool.leases").IntervalLease(1, 10.0)
    pair = Pair(build, dialect=dialect, client={"lease": policy}, server={"lease": True})
    assert len(pair.events("server", "LeaseGranted")) == waits
    assert [refuses(build, pair.server) for _ in range(2)] == [False, waits]
    pair.drive()
    assert len(pair.events("client", "Requested")) == (1 if waits else 2)
    # The server's grant is the limit.
    assert not any(refuses(build, pair.client) for _ in range(50))


def test_a_server_without_a_policy_refuses_clients_that_ask(build: Build) -> None:
    pair = Pair(build, client={"lease": True})
    (closed,) = pair.events("client", "Closed")
    assert (type(closed.error).__name__, closed.error.code) == ("SetupRejected", 0x003)


def test_leases_that_nobody_asked_for_are_ignored(build: Build) -> None:
    pair = Pair(build)
    frame = build.module("weirpool.wire.rsocket.frames").LeaseFrame(1000, 1)
    pair.client.receive(pair.server_dialect.codec().frame(frame), pair.now)
    pair.drive()
    assert pair.events("client", "LeaseGranted") == []
    assert not any(refuses(build, pair.client) for _ in range(5))


def test_leases_begin_anew_with_each_link(build: Build) -> None:
    # RSocket 1.0, Resuming Operation.
    policy = build.module("weirpool.leases").IntervalLease(3, 1000.0)
    world = World(build, lease=policy)
    world.connect()
    world.drive()
    assert not refuses(build, world.client)
    world.drive()
    world.cut()
    assert refuses(build, world.client)
    world.connect()
    world.drive()
    assert [refuses(build, world.client) for _ in range(4)] == [False, False, False, True]
