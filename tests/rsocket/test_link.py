from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from tests.builds import Build
from tests.sim.cut_links import World
from tests.sim.pair import CUTS, Cut, Pair


def types(build: Build, sent: bytes) -> list[str]:
    frames = build.module("weirpool.wire.rsocket.dump").read_frames(sent, "rsocket-1.0", 3)
    return [build.module("weirpool.wire.rsocket.frames").type_name(frame.type) for _, frame in frames]


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_confirmation_takes_one_round_trip(build: Build, cut: Cut) -> None:
    pair = Pair(build, cut=cut)
    assert pair.events("client", "Established") == []
    pair.client.confirm()
    pair.drive()
    assert len(pair.events("client", "Established")) == 1
    assert types(build, pair.client_sent) == ["SETUP", "KEEPALIVE"]
    assert types(build, pair.server_sent) == ["KEEPALIVE"]


def test_any_frame_of_the_server_confirms_the_set_up(build: Build) -> None:
    kind, payload = build.module("weirpool.kinds").Kind, build.module("weirpool.payload").Payload
    pair = Pair(build)
    stream = pair.client.open(kind.STREAM, "s", payload(), 10)
    pair.drive()
    assert pair.events("client", "Established") == []
    run = build.module("weirpool.payload").PayloadRun.of([payload(b"a"), payload(b"b"), payload(b"c")])
    pair.server.send_run(stream, run)
    pair.drive()
    assert [type(event).__name__ for event in pair.client_events][:1] == ["Established"]
    assert pair.items("client", stream) == [b"a", b"b", b"c"]


def test_session_without_token_ends_with_its_link(build: Build) -> None:
    pair = Pair(build)
    lost = build.module("weirpool.errors").LinkLost("gone")
    pair.client.link_down(pair.now, lost)
    pair.drive()
    (closed,) = pair.events("client", "Closed")
    assert closed.error is lost
    assert not pair.client.link_wanted


@pytest.mark.parametrize(("waited", "over"), [(59.0, False), (61.0, True)])
def test_session_with_token_waits_for_another_link(build: Build, waited: float, over: bool) -> None:
    world = World(build, resume_timeout=60.0)
    world.connect()
    world.drive()
    world.cut()
    world.client.handle_timer(world.now + waited)
    assert world.client.link_wanted is not over


def test_new_link_begins_with_only_resume(build: Build) -> None:
    world = World(build)
    world.connect()
    world.drive()
    world.cut()
    payload: Any = world.payload
    world.client.open(world.kind.CALL, "r", payload(b"asked without a link"), 1)
    world.client.link_up(world.now)
    assert types(build, b"".join(world.client.take_output())) == ["RESUME"]


@pytest.mark.parametrize("dialect", ["rsocket-1.0", "reactivesocket-0.2", "reactivesocket-0.0"])
def test_session_that_has_ended_holds_no_input(build: Build, dialect: str) -> None:
    # Its link may take long to close, and the ledger no longer counts its bytes.
    pair = Pair(build, dialect=dialect)
    kind, payload = build.module("weirpool.kinds").Kind, build.module("weirpool.payload").Payload
    pair.client.open(kind.STREAM, "s", payload(bytes(500_000)), 10)
    sent = b"".join(pair.client.take_output())
    tracemalloc.start()
    try:
        for at in range(0, 300_000, 100_000):
            pair.server.receive(sent[at : at + 100_000], pair.now)
        before = tracemalloc.get_traced_memory()[0]
        pair.server.close(pair.now, build.module("weirpool.errors").LimitExceeded("too much"))
        assert before - tracemalloc.get_traced_memory()[0] > 250_000
    finally:
        tracemalloc.stop()
