"""Hostile framing, and the safe answer to it, in every dialect."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from tests.builds import Build
from tests.hostile.mutations import recorded, say
from tests.sim.target import DIALECTS, V00, V02, V1, Target

ALL = pytest.mark.parametrize("dialect", DIALECTS)
COUNTED = pytest.mark.parametrize("dialect", (V1, V02))


@ALL
def test_a_first_frame_that_comes_too_slowly_is_not_waited_for(build: Build, dialect: str) -> None:
    # THREATS 1
    target = Target(build, dialect, set_up=False, first_frame_timeout=10.0)
    setup = target.setup()
    for octet in range(3):
        target.session.receive(setup[octet : octet + 1], target.now + 9.0 * octet)
        if target.session.next_timer() <= target.now + 9.0 * octet:
            target.session.handle_timer(target.now + 9.0 * octet)
    errors, events = target.told()
    assert (errors, events) == ([(0, 0x001)], ["Closed"])
    assert (target.session.link_wanted, target.session.next_timer()) == (False, None)


@COUNTED
@pytest.mark.parametrize("read", [True, False])
def test_half_a_frame_waits_while_the_link_is_not_read(build: Build, dialect: str, read: bool) -> None:
    # THREATS 86: the peer cannot send the rest while this side, for want of slots, does not read.
    target = Target(build, dialect, frame_timeout=30.0)
    session, begun = target.session, target.now
    session.receive(bytes.fromhex("0100"), begun)
    for second in range(10, 40, 10):
        if not read:
            session.progressed(begun + second)
        session.handle_timer(begun + second)
    assert session.link_wanted is not read
    session.progressed(begun + 40)
    session.handle_timer(begun + 60)
    assert session.link_wanted is not read
    session.handle_timer(begun + 70)
    assert not session.link_wanted


@ALL
@pytest.mark.parametrize("set_up", [False, True])
@pytest.mark.parametrize("short", [1, 0])
def test_a_length_that_no_header_fits_ends_the_session(build: Build, dialect: str, set_up: bool, short: int) -> None:
    # THREATS 2, 5
    target = Target(build, dialect, set_up=set_up)
    header = target.codec.header_bytes
    for size in range(header) if short else (0,):
        target = Target(build, dialect, set_up=set_up)
        # SETUP Frame: whatever comes instead of it is answered with INVALID_SETUP.
        expected = target.goodbye if set_up else [(0, 0x001)]
        assert target.say(target.prefixed(bytes(size)), bytes(40)) == (expected, ["Closed"])
        assert not target.session.link_wanted


def test_a_length_below_its_own_four_bytes_ends_the_session(build: Build) -> None:
    # THREATS 5: parsing cannot continue, and must not loop.
    for length in range(4):
        target = Target(build, V00)
        assert target.say(length.to_bytes(4, "big") * 1000) == (target.goodbye, ["Closed"])


@pytest.mark.parametrize("length", ["80000010", "ffffffff", "7fffffff"])
@pytest.mark.parametrize("set_up", [False, True])
def test_a_length_with_the_reserved_bit_is_refused(build: Build, length: str, set_up: bool) -> None:
    # THREATS 4
    target = Target(build, V00, set_up=set_up)
    assert target.say(bytes.fromhex(length), bytes(12)) == (target.goodbye, ["Closed"])


@ALL
def test_nothing_is_set_aside_for_what_is_only_announced(build: Build, dialect: str) -> None:
    # THREATS 3
    target = Target(build, dialect, idle_timeout=90.0)
    announced = b"\xff\xff\xff" if dialect != V00 else b"\x00\xff\xff\xff"
    tracemalloc.start()
    try:
        target.session.receive(announced + bytes(10), target.now)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
    assert target.told() == ([], [])
    # It stays incomplete, and silence ends the session.
    target.session.handle_timer(target.now + 90.0)
    assert target.told() == (target.goodbye, ["Closed"])


@COUNTED
def test_a_length_that_counts_itself_is_found_out(build: Build, dialect: str) -> None:
    # THREATS 6: such a peer's third byte of stream id is taken for a length.
    target = Target(build, dialect, set_up=False)

    def counted(frame: bytes) -> bytes:
        return (len(frame) - 3 + 3).to_bytes(3, "big") + frame[3:]

    frames = [target.setup(), target.request("REQUEST_RESPONSE", 1), target.request("REQUEST_RESPONSE", 3)]
    errors, events = target.say(*map(counted, frames))
    assert (errors, events[-1]) == (target.goodbye, "Closed")
    assert "Requested" not in events
    assert not target.session.link_wanted


def flattened(events: list[Any]) -> list[str]:
    """Return events as text, runs item by item: how many are in one depends on how the bytes are cut."""
    found: list[str] = []
    for event in events:
        if type(event).__name__ == "RunReceived":
            found += [f"{event.stream_id} {each.data!r} {each.metadata!r} False" for each in event.run.payloads()]
        elif type(event).__name__ == "ItemReceived":
            found.append(f"{event.stream_id} {event.payload.data!r} {event.payload.metadata!r} {event.done}")
        else:
            found.append(f"{type(event).__name__} {event.stream_id}")
    return found


@ALL
@pytest.mark.parametrize("side", ["server", "client"])
def test_frames_are_the_same_however_they_are_cut(build: Build, dialect: str, side: str) -> None:
    # THREATS 7
    said = recorded(build, dialect)[side == "client"]
    lease = {"lease": True} if side == "server" else {}

    def heard(pieces: list[bytes]) -> list[str]:
        target = Target(build, dialect, side, set_up=False, fragment_bytes=64, **lease)
        if side == "client":
            say(build, target.session, dialect)
        for piece in pieces:
            target.session.receive(piece, target.now)
        return flattened(target.session.take_events())

    whole = heard([said])
    assert len(whole) > 5
    assert heard([said[at : at + 1] for at in range(len(said))]) == whole
    for cut in range(1, len(said)):
        assert heard([said[:cut], said[cut:]]) == whole


@COUNTED
def test_what_stands_behind_a_frame_of_fixed_size_is_ignored(build: Build, dialect: str) -> None:
    # THREATS 11: it is never read as the next frame.
    target = Target(build, dialect)
    target.say(target.request("REQUEST_STREAM", 1, n=1))
    trailing = target.request("REQUEST_RESPONSE", 9)
    long = target.prefixed(target.request_n(1, 3)[3:] + trailing)
    assert target.say(long, target.request("REQUEST_RESPONSE", 3)) == ([], ["CreditGranted", "Requested"])
    assert target.session.credit(1) == 4
    assert target.say(target.prefixed(target.codec.cancel_frame(1)[3:] + trailing)) == ([], ["Canceled"])
    ok = target.codec.frame(target.frames.ResumeOkFrame(7))
    assert target.say(target.prefixed(ok[3:] + trailing), target.request("REQUEST_RESPONSE", 5)) == ([], ["Requested"])
