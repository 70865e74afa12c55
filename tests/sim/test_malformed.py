"""Malformed frames on an established connection: those that are ignored whatever they contain, and all others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.builds import Build
from tests.sim.cut_links import World
from tests.sim.target import V00, V02, V1, Target

COUNTED = pytest.mark.parametrize("dialect", (V1, V02))
SIDES = pytest.mark.parametrize("side", ("server", "client"))

# The id of an open stream of either side, that of the stream whose request has only begun to arrive, and of none.
OPEN, BEGUN, UNKNOWN = 1, 3, 99

SETUP, LEASE, KEEPALIVE, REQUEST_RESPONSE, REQUEST_STREAM, REQUEST_CHANNEL = 1, 2, 3, 4, 6, 7
REQUEST_N, PAYLOAD, ERROR, RESUME, RESUME_OK, EXT = 8, 10, 11, 13, 14, 0x3F
METADATA = 0x100


def cut(type: int, stream: int, flags: int = 0) -> bytes:
    """Return a frame that ends within its first field, or whose metadata runs past it."""
    body = stream.to_bytes(4, "big") + (type << 10 | flags).to_bytes(2, "big") + b"\0"
    return len(body).to_bytes(3, "big") + body


def ignored(side: str) -> Iterator[tuple[int, int, int]]:
    """Yield types, streams and flags of frames that are ignored, however malformed they are."""
    # RSocket 1.0, Handling the Unexpected 9.6 and 9.9; 9 in general.
    yield from ((SETUP, 0, 0), (SETUP, OPEN, 0), (SETUP, UNKNOWN, 0))
    yield from ((type, UNKNOWN, 0) for type in (LEASE, KEEPALIVE, RESUME, RESUME_OK))
    yield from ((RESUME_OK, 0, 0), (LEASE, 0, 0))
    # 9.1: a request on a stream that is in use, or that is this side's own.
    ours = 2 if side == "server" else UNKNOWN
    yield from ((type, stream, 0) for type in (REQUEST_STREAM, REQUEST_CHANNEL) for stream in (OPEN, ours, 0))
    yield from ((REQUEST_RESPONSE, stream, METADATA) for stream in (OPEN, ours, 0))
    # 9.2 to 9.4: frames of a stream that does not exist.
    yield from ((type, UNKNOWN, 0) for type in (REQUEST_N, ERROR))
    yield (PAYLOAD, UNKNOWN, METADATA)
    yield from ((REQUEST_N, 0, 0), (PAYLOAD, 0, METADATA))
    if side == "client":
        yield (RESUME, 0, 0)


def fatal(side: str) -> Iterator[tuple[int, int, int]]:
    """Yield types, streams and flags of frames that would have had an effect."""
    yield from ((KEEPALIVE, 0, 0), (ERROR, 0, 0), (EXT, 0, 0), (EXT, UNKNOWN, 0), (0x20, 0, 0), (0x20, UNKNOWN, 0))
    yield from ((REQUEST_N, OPEN, 0), (ERROR, OPEN, 0))
    theirs = 5 if side == "server" else 2
    yield from ((type, theirs, 0) for type in (REQUEST_STREAM, REQUEST_CHANNEL))
    if side == "server":
        yield (RESUME, 0, 0)


def established(build: Build, dialect: str, side: str) -> Target:
    """Return a session that has the stream `OPEN`, on which both sides may send."""
    target = Target(build, dialect, side)
    if side == "server":
        target.say(target.request("REQUEST_CHANNEL", OPEN, n=5))
    else:
        assert target.open("CHANNEL") == OPEN
        target.say(target.request_n(OPEN, 5))
    return target


@COUNTED
@SIDES
def test_frames_that_are_ignored_may_be_malformed(build: Build, dialect: str, side: str) -> None:
    target = established(build, dialect, side)
    for type, stream, flags in ignored(side):
        assert target.say(cut(type, stream, flags)) == ([], []), (type, stream)
    assert target.session.link_wanted
    assert target.session.send(OPEN, target.payload(b"fine")) == 4


@COUNTED
@SIDES
def test_malformed_frames_with_an_effect_end_the_connection(build: Build, dialect: str, side: str) -> None:
    for type, stream, flags in fatal(side):
        target = established(build, dialect, side)
        assert target.say(cut(type, stream, flags))[0] == target.goodbye, (type, stream)


@COUNTED
def test_malformed_fragment_of_a_request_is_not_ignored(build: Build, dialect: str) -> None:
    target = Target(build, dialect)
    target.say(target.request("REQUEST_CHANNEL", BEGUN, flags=0x80))
    assert target.say(cut(ERROR, BEGUN))[0] == target.goodbye


@COUNTED
def test_malformed_lease_matters_where_leases_are_used(build: Build, dialect: str) -> None:
    target = Target(build, dialect, "client", lease=True)
    assert target.say(cut(LEASE, 0))[0] == target.goodbye


def test_malformed_frames_of_the_first_draft_are_ignored_likewise(build: Build) -> None:
    target = Target(build, V00)
    target.say(target.request("REQUEST_STREAM", OPEN, n=5))

    def short(number: int, stream: int) -> bytes:
        body = bytes((0, 0)) + number.to_bytes(2, "big") + stream.to_bytes(8, "big") + b"\xff"
        return (len(body) + 4).to_bytes(4, "big") + body

    for number, stream in ((0x01, 0), (0x13, OPEN), (0x14, OPEN), (0x15, UNKNOWN), (0x15, 0), (0x03, 0)):
        assert target.say(short(number, stream)) == ([], []), number
    for number, stream in ((0x13, UNKNOWN), (0x15, OPEN), (0x77, UNKNOWN)):
        other = Target(build, V00)
        other.say(other.request("REQUEST_STREAM", OPEN, n=5))
        assert other.say(short(number, stream))[0] == other.goodbye, number


@COUNTED
def test_malformed_frames_are_counted(build: Build, dialect: str) -> None:
    target = Target(build, dialect)
    assert target.say(cut(SETUP, 0) * 1_000) == ([], [])
    assert target.session.ignored == 1_000


def test_ignored_frames_have_their_positions(build: Build) -> None:
    # RSocket 1.0, Implied Position: the client counts what it has sent, whatever the server makes of it.
    world = World(build)
    world.connect()
    world.drive()
    frames, codec = build.module("weirpool.wire.rsocket.frames"), build.module("weirpool.wire.rsocket.codec").Codec()

    def position() -> int:
        world.server.receive(codec.frame(frames.KeepaliveFrame(0x80, 0)), world.now)
        said = b"".join(world.server.take_output())
        found: int = codec.decode(said, 3, len(said)).position
        return found

    before = position()
    frame = cut(PAYLOAD, UNKNOWN, METADATA)
    world.server.receive(frame, world.now)
    assert position() == before + len(frame) - 3
    # Frames of the connection have no position.
    world.server.receive(cut(REQUEST_N, 0), world.now)
    assert position() == before + len(frame) - 3


@COUNTED
def test_resume_on_an_established_connection_is_answered(build: Build, dialect: str) -> None:
    # RSocket 1.0 and ReactiveSocket 0.2, Resume Operation.
    target = Target(build, dialect)
    target.say(target.request("REQUEST_STREAM", OPEN))
    resume = target.codec.frame(target.frames.ResumeFrame(b"t" * 16, 0, 0))
    assert target.say(resume) == ([(0, 0x101)], ["Failed", "Closed"])
    assert not target.session.link_wanted


def test_resume_after_resume_is_answered(build: Build) -> None:
    world = World(build)
    world.connect()
    world.drive()
    world.cut()
    world.connect()
    world.drive()
    frames, codec = build.module("weirpool.wire.rsocket.frames"), build.module("weirpool.wire.rsocket.codec").Codec()
    world.server.receive(codec.frame(frames.ResumeFrame(b"t" * 16, 0, 0)), world.now)
    said = b"".join(world.server.take_output())
    assert codec.decode(said, 3, len(said)).code == 0x101
    assert not world.server.link_wanted


@COUNTED
@SIDES
def test_resume_is_ignored_by_a_client_and_on_a_stream(build: Build, dialect: str, side: str) -> None:
    target = established(build, dialect, side)
    resume = target.codec.frame(target.frames.ResumeFrame(b"t" * 16, 0, 0))
    on_stream = resume[:6] + b"\x01" + resume[7:]
    assert target.say(on_stream) == ([], [])
    if side == "client":
        assert target.say(resume) == ([], [])
    assert target.session.link_wanted
