"""Resumable sessions: cut at each boundary, every item arrives once and in order."""

from __future__ import annotations

import pytest

from tests.sim.cut_links import TOKEN, World


def exchange(build, boundary: int) -> World:
    """Use a stream and a channel together, with one cut after `boundary` bytes."""
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
    # The first cut is after the set-up, which cannot be resumed before the server has received it.
    for boundary in range(150 + offset, 2600, 7):
        exchange(build, boundary)


def test_unknown_tokens_are_refused(build) -> None:
    # THREATS 28
    world = World(build)
    world.connect()
    world.drive()
    world.cut()
    world.accept = build.module("weirpool.protocols").detectors("rsocket", world.settings)
    world.connect()
    world.drive()
    assert world.refused and not world.client.link_wanted


@pytest.mark.parametrize("position", [1, 2**31, 2**63 - 1])
def test_positions_in_the_future_are_refused_without_harm(build, position) -> None:
    # THREATS 29
    frames = build.module("weirpool.wire.rsocket.frames")
    codec = build.module("weirpool.wire.rsocket.codec").Codec()
    world = World(build)
    world.connect()
    world.drive()
    for server_position, client_position in ((position, 0), (0, position)):
        acceptor = world.accept()
        acceptor.link_up(world.now)
        with pytest.raises(build.module("weirpool.errors").ProtocolError, match="RESUME rejected"):
            acceptor.receive(codec.frame(frames.ResumeFrame(TOKEN, server_position, client_position)), world.now)
        assert codec.decode(acceptor.farewell, 3, len(acceptor.farewell)).code == 0x004
    call = world.client.open(world.kind.CALL, "x", world.payload())
    world.drive()
    world.server.send(call, world.payload(b"fine"))
    world.drive()
    assert world.items["client", call] == [b"fine"]


NEGATIVE = ("ffffffffffffffff", "8000000000000000", "8000000000000001")


@pytest.mark.parametrize("position", NEGATIVE)
def test_negative_positions_of_the_second_draft_are_refused(build, position) -> None:
    # THREATS 29; ReactiveSocket 0.2, RESUME, RESUME_OK and KEEPALIVE Frame: signed integers.
    dialect = build.module("weirpool.rsocket.dialect").REACTIVESOCKET_0_2
    codec, protocols = dialect.codec(), build.module("weirpool.protocols")
    world = World(build)
    world.accept = protocols.detectors("reactivesocket-0.2", world.settings)
    world.client = protocols.client_session("reactivesocket-0.2", world.settings, random=TOKEN)
    world.connect()
    world.drive()
    for positions in (position + "0" * 16, "0" * 16 + position):
        acceptor = world.accept()
        acceptor.link_up(world.now)
        body = bytes.fromhex("00000000 3400 0000 0002 0010" + TOKEN.hex() + positions)
        with pytest.raises(build.module("weirpool.errors").ProtocolError, match="RESUME rejected"):
            acceptor.receive(len(body).to_bytes(3, "big") + body, world.now)
        assert codec.decode(acceptor.farewell, 3, len(acceptor.farewell)).code == 0x004
    world.server.receive(bytes.fromhex("00000e 00000000 0c00" + position), world.now)
    said = b"".join(world.server.take_output())
    assert codec.decode(said, 3, len(said)).code == 0x101
    world.cut()
    world.client.link_up(world.now)
    world.client.take_output()
    world.client.receive(bytes.fromhex("00000e 00000000 3800" + position), world.now)
    assert type(world.client.take_events()[-1].error).__name__ == "ResumeRejected"


def test_a_token_in_use_is_refused(build) -> None:
    # THREATS 27
    world = World(build)
    world.connect()
    world.drive()
    other = build.module("weirpool.protocols").client_session("rsocket", world.settings, random=TOKEN)
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
    frames = build.module("weirpool.wire.rsocket.frames")
    codec = build.module("weirpool.wire.rsocket.codec").Codec()
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
        # Stop with bytes in transit: the last item may be incomplete.
        world.drive(300 + 97 * turn)
        fresh = world.items.pop(("client", stream), [])
        checkpoint = world.client.checkpoint(stream, len(fresh))
        stored += fresh
        if died != "before commit" or turn % 2:
            world.client.commit()
        if died == "commit arrived":
            world.drive()
            fresh = world.items.pop(("client", stream), [])
        # The process is killed, and what it received after the checkpoint is lost.
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
    # The disk is full, so there is no other checkpoint, and the links break.
    world.drive(1_000)
    for budget in (second_cut, 1 << 60):
        world.cut()
        world.connect()
        world.drive(budget)
    for item in items[6:]:
        world.server.send(stream, world.payload(item))
    world.drive()
    assert world.items["client", stream] == items
    # A process that is killed now resumes at the checkpoint.
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
        # Items are in transit, and the client is killed before it has stored any.
        world.drive(1_000)
        world.server.progressed(world.now)
        world.cut()
        world.replace_client(checkpoint)
        world.connect()
    world.drive()
    assert len(world.items.get(("client", stream), [])) == (100 if lives else 0)
    assert (not world.closed) == lives


def test_server_that_goes_on_elsewhere_than_it_was_asked_to_ends_the_session(build) -> None:
    wire, frames = build.module("weirpool.wire.rsocket.codec"), build.module("weirpool.wire.rsocket.frames")
    errors = build.module("weirpool.errors")
    codec = wire.Codec()
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
    protocols, errors = build.module("weirpool.protocols"), build.module("weirpool.errors")
    settings = build.module("weirpool.settings").Settings(resume=True)
    for junk in (b"", b"junk", b"\x80"):
        with pytest.raises(errors.LocalError):
            protocols.client_session("rsocket", settings, checkpoint=junk, secret=TOKEN)


def test_stream_ids_begin_anew_and_skip_those_in_use(build) -> None:
    # THREATS 35; RSocket 1.0, Stream Identifiers, Lifetime: from 2^31-1 back to 1, which is still open here.
    resume = build.module("weirpool.rsocket.resume")
    world = World(build)
    payload, kind = world.payload, world.kind
    world.connect()
    live = world.client.open(kind.STREAM, "live", payload(), 5)
    world.drive()
    checkpoint = resume.decode_checkpoint(world.client.checkpoint(live, 0))
    checkpoint.next_id = 2**31 - 3
    world.cut()
    session = build.module("weirpool.rsocket.session").RSocketSession
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
