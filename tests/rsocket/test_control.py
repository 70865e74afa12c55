from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.sim.pair import Pair


@pytest.fixture
def pair(build: Build) -> Pair:
    return Pair(build, client={"keepalive_interval": 10, "keepalive_lifetime": 30})


def frames(build: Build, sent: bytes) -> list[Any]:
    return [frame for _, frame in build.module("weirpool.wire.rsocket.dump").read_frames(sent, "rsocket-1.0", 3)]


def names(build: Build, sent: bytes) -> list[str]:
    return [build.module("weirpool.wire.rsocket.frames").FrameType(frame.type).name for frame in frames(build, sent)]


def call(build: Build, pair: Pair, data: bytes = b"") -> int:
    kind = build.module("weirpool.kinds").Kind.CALL
    stream: int = pair.client.open(kind, "", build.module("weirpool.payload").Payload(data), 1, True)
    pair.drive()
    return stream


def test_first_frame_is_setup(build: Build, pair: Pair) -> None:
    assert names(build, pair.client_sent) == ["SETUP"]
    assert pair.server_sent == b""
    assert len(pair.events("server", "Established")) == 1


def test_requests_before_the_first_link_wait_for_it(build: Build) -> None:
    session = build.module("weirpool.rsocket.session").RSocketSession
    settings = build.module("weirpool.settings").Settings()
    payload = build.module("weirpool.payload").Payload
    client = session.client(settings, payload())
    assert client.link_wanted
    with pytest.raises(build.module("weirpool.errors").SessionClosed):
        client.open(build.module("weirpool.kinds").Kind.CALL, "", payload(), 1, True)
    assert client.take_output() == []


def test_keepalives_are_sent_and_answered(build: Build, pair: Pair) -> None:
    pair.advance(25)
    assert names(build, pair.client_sent) == ["SETUP", "KEEPALIVE", "KEEPALIVE"]
    assert names(build, pair.server_sent) == ["KEEPALIVE", "KEEPALIVE"]
    assert pair.events("client", "Closed") == []


def test_no_timer_remains_after_the_end(build: Build, pair: Pair) -> None:
    pair.client.close(pair.now)
    pair.drive()
    pair.server.link_down(pair.now, None)
    pair.client.link_down(pair.now, None)
    pair.drive()
    assert pair.client.next_timer() is None
    assert pair.server.next_timer() is None
    assert not pair.client.link_wanted and not pair.server.link_wanted


def test_close_waits_for_open_streams(build: Build, pair: Pair) -> None:
    stream = call(build, pair)
    pair.server.close(pair.now)
    pair.drive()
    assert pair.events("server", "Closed") == []
    pair.server.send(stream, build.module("weirpool.payload").Payload(b"done"), True)
    pair.drive()
    assert pair.items("client", stream) == [b"done"]
    assert pair.events("server", "Closed") == []
    (closed,) = pair.events("client", "Closed")
    assert type(closed.error).__name__ == "PeerClosed"
    pair.server.link_down(pair.now, None)
    assert [type(event).__name__ for event in pair.server.take_events()] == ["Closed"]


def test_close_with_an_error_does_not_wait(build: Build, pair: Pair) -> None:
    call(build, pair)
    reason = build.module("weirpool.errors").LimitExceeded("too much")
    pair.server.close(pair.now, reason)
    pair.drive()
    assert pair.server.open_streams == 0
    assert len(pair.events("client", "Failed")) == 1
    assert len(pair.events("client", "Closed")) == len(pair.events("server", "Closed")) == 1


def test_closed_session_does_nothing(build: Build, pair: Pair) -> None:
    pair.client.close(pair.now)
    pair.drive()
    said = len(pair.client_events), len(pair.server_events)
    for session in (pair.client, pair.server):
        session.receive(b"\xff" * 100, pair.now)
        session.link_down(pair.now, None)
        session.handle_timer(pair.now + 1000)
        session.close(pair.now)
    pair.drive()
    assert (len(pair.client_events), len(pair.server_events)) == said


def test_events_have_the_order_of_frames(build: Build, pair: Pair) -> None:
    payload, kind = build.module("weirpool.payload").Payload, build.module("weirpool.kinds").Kind
    for route in ("a", "b", "c"):
        pair.client.open(kind.FIRE, route, payload())
    pair.drive()
    assert [event.route for event in pair.events("server", "Requested")] == ["a", "b", "c"]


@pytest.mark.parametrize(("size", "fits"), [(10, True), (11, False)])
def test_pushed_metadata_is_limited(build: Build, size: int, fits: bool) -> None:
    pair = Pair(build, server={"max_metadata_bytes": 10})
    pair.client.push(bytes(size))
    pair.drive()
    assert len(pair.events("server", "MetadataPushed")) == fits
    assert len(pair.events("server", "Closed")) == (not fits)


def test_set_up_that_is_accepted_already_is_confirmed_at_once(build: Build, pair: Pair) -> None:
    # A lease, or an answer, may arrive before anybody asks for the confirmation.
    pair.client.confirm()
    pair.drive()
    assert len(pair.events("client", "Established")) == 1
    pair.client.confirm()
    pair.drive()
    assert len(pair.events("client", "Established")) == 2
