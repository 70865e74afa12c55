"""ReactiveSocket 0.2 with rsocket-py of 2017, its one living peer, which differs from the document."""

from __future__ import annotations

import pytest

from tests.builds import Build
from tests.sim.pair import Pair
from tests.sim.target import V02, V1, Target


def requested(target: Target) -> list[tuple[str, int]]:
    """Return type and request-n of the frames that the session sends."""
    dump = target.build.module("weirpool.wire.rsocket.dump")
    sent = b"".join(target.session.take_output())
    return [
        (dump.to_object(frame, target.dialect.name)["type"], frame.request_n)
        for _, frame in dump.read_frames(sent, target.dialect.name, 3)
    ]


@pytest.mark.parametrize("kind", ["STREAM", "CHANNEL"])
def test_lenient_client_repeats_what_a_responder_may_ignore(build: Build, kind: str) -> None:
    # It ignores the initial request-n, and reads each REQUEST_N.
    target = Target(build, V02, "client", lenient=True)
    stream = target.session.open(target.kinds[kind], "r", target.payload(), 256)
    assert requested(target) == [(f"REQUEST_{kind}", 1), ("REQUEST_N", 255)]
    items = target.item(stream) * 256
    target.session.receive(items, target.now)
    assert target.session.open_streams == 1
    target.session.open(target.kinds[kind], "r", target.payload(), 1)
    target.session.open(target.kinds.CALL, "r", target.payload())
    assert requested(target) == [(f"REQUEST_{kind}", 1), ("REQUEST_RESPONSE", 0)]


@pytest.mark.parametrize(("dialect", "lenient"), [(V02, False), (V1, True)])
def test_other_clients_request_everything_at_once(build: Build, dialect: str, lenient: bool) -> None:
    target = Target(build, dialect, "client", lenient=lenient)
    target.session.open(target.kinds.STREAM, "r", target.payload(), 256)
    assert requested(target) == [("REQUEST_STREAM", 256)]


def test_server_follows_the_parity_of_its_client(build: Build) -> None:
    # Default settings expect odd ids, as the document does.
    pair = Pair(build, dialect=V02, client={"client_ids": "even"})
    kinds, payload = build.module("weirpool.kinds").Kind, build.module("weirpool.payload").Payload
    call = pair.client.open(kinds.CALL, "r", payload(b"q"))
    pair.drive()
    pair.server.send(call, payload(b"a"), True)
    back = pair.server.open(kinds.CALL, "r", payload(b"back"))
    pair.drive()
    assert (call, pair.items("client", call), back) == (2, [b"a"], 1)
    pair.client.send(back, payload(b"forth"), True)
    pair.drive()
    assert pair.items("server", back) == [b"forth"]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


def test_parity_is_decided_by_the_first_request(build: Build) -> None:
    # THREATS 34
    target = Target(build, V02)
    assert target.say(target.request("REQUEST_RESPONSE", 2)) == ([], ["Requested"])
    assert target.say(target.request("REQUEST_RESPONSE", 1)) == ([], [])
    target = Target(build, V02)
    target.open("CALL")
    assert target.say(target.request("REQUEST_RESPONSE", 2)) == ([], [])
    target = Target(build, V1)
    assert target.say(target.request("REQUEST_RESPONSE", 2)) == ([], [])


def test_stream_0_decides_nothing(build: Build) -> None:
    # THREATS 34
    target = Target(build, V02)
    assert target.say(target.request("REQUEST_RESPONSE", 0)) == ([], [])
    assert target.say(target.request("REQUEST_RESPONSE", 1)) == ([], ["Requested"])
    assert target.say(target.request("REQUEST_RESPONSE", 2)) == ([], [])
