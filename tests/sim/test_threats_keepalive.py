"""Hostile keepalives, clocks that jump, and the safe answer to them."""

from __future__ import annotations

import pytest

from tests.builds import Build
from tests.sim.target import V02, V1, Target

COUNTED = pytest.mark.parametrize("dialect", (V1, V02))
RESPOND = 0x80


def keepalive(target: Target, data: bytes, flags: int = RESPOND) -> bytes:
    return bytes(target.codec.frame(target.frames.KeepaliveFrame(flags, 0, data)))


@COUNTED
@pytest.mark.parametrize("side", ["server", "client"])
def test_data_that_must_be_sent_back_has_a_limit(build: Build, dialect: str, side: str) -> None:
    # THREATS 53
    target = Target(build, dialect, side, max_keepalive_bytes=100)
    target.session.receive(keepalive(target, b"d" * 100), target.now)
    (echo,) = target.session.take_output()
    assert echo == keepalive(target, b"d" * 100, 0)
    assert target.say(keepalive(target, b"d" * 101))[0] == target.goodbye
    assert not target.session.link_wanted


@COUNTED
def test_an_answer_is_not_answered(build: Build, dialect: str) -> None:
    # THREATS 53: otherwise two peers would answer each other forever.
    target = Target(build, dialect)
    target.session.receive(keepalive(target, b"d", 0) * 100, target.now)
    assert target.session.take_output() == []


@COUNTED
def test_a_peer_that_does_nothing_but_live_is_left_to_the_application(build: Build, dialect: str) -> None:
    # THREATS 54
    target = Target(build, dialect, "client")
    stream = target.open("CALL")
    for _ in range(1_000):
        target.now += 20.0
        target.session.handle_timer(target.now)
        target.say(keepalive(target, b"", 0))
    assert (target.session.open_streams, target.session.link_wanted) == (1, True)
    # It ends the session and informs the server.
    target.session.cancel(stream)
    assert b"".join(target.session.take_output()) == target.codec.cancel_frame(stream)
    assert target.session.open_streams == 0


@COUNTED
@pytest.mark.parametrize("side", ["server", "client"])
def test_a_machine_that_slept_finds_out_at_once(build: Build, dialect: str, side: str) -> None:
    # THREATS 54: a jump of the clock causes one timer, not one per interval.
    target = Target(build, dialect, side)
    target.now += 1e9
    target.session.handle_timer(target.now)
    errors, events = target.told()
    assert (errors, events[-1]) == (target.goodbye, "Closed")
    assert target.session.next_timer() is None


@COUNTED
def test_a_peer_that_was_heard_while_a_timer_was_late_is_alive(build: Build, dialect: str) -> None:
    # THREATS 54
    target = Target(build, dialect, "client")
    target.now += 1e6
    target.say(keepalive(target, b"", 0))
    target.session.handle_timer(target.now)
    assert target.session.link_wanted
    assert target.now < target.session.next_timer() <= target.now + 90.0
