from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build


@pytest.fixture
def timers(build: Build) -> Any:
    return build.module("weirpool.core.timers").TimerTable()


@pytest.fixture
def keepalive(build: Build, timers: Any) -> Any:
    return build.module("weirpool.rsocket.keepalive").Keepalive(timers)


def test_client_sends_at_its_interval(build: Build, keepalive: Any, timers: Any) -> None:
    timer = build.module("weirpool.core.timers").Timer
    keepalive.start(20.0, 90.0, 100.0, sends=True)
    assert timers.next() == 120.0
    assert timers.expired(120.0) == [timer.KEEPALIVE]
    frame = keepalive.due(120.5, 7)
    assert (frame.flags, frame.position, frame.data) == (0x80, 7, b"")
    assert timers.next() == 140.5


def test_server_only_answers_keepalives(keepalive: Any, timers: Any) -> None:
    keepalive.start(20.0, 90.0, 100.0, sends=False)
    assert timers.next() == 145.0


def test_silence_is_measured_from_the_last_byte(build: Build, keepalive: Any, timers: Any) -> None:
    keepalive.start(20.0, 90.0, 100.0, sends=False)
    keepalive.last_received_at = 150.0
    # Silence is checked twice within a lifetime, and input in between counts.
    assert timers.expired(145.0) == [build.module("weirpool.core.timers").Timer.SILENCE]
    assert not keepalive.silent(145.0)
    assert timers.next() == 190.0
    assert not keepalive.silent(230.0)
    assert timers.next() == 240.0
    assert keepalive.silent(240.0)


def test_keepalive_is_answered_with_the_same_data_if_requested(build: Build, keepalive: Any) -> None:
    frames = build.module("weirpool.wire.rsocket.frames")
    answer = keepalive.answer(frames.KeepaliveFrame(frames.RESPOND, 3, b"ping"), 9)
    assert (answer.flags, answer.position, answer.data) == (0, 9, b"ping")
    assert keepalive.answer(frames.KeepaliveFrame(0, 3, b"pong"), 9) is None


def test_keepalive_stops_with_the_link(keepalive: Any, timers: Any) -> None:
    keepalive.start(20.0, 90.0, 100.0, sends=True)
    keepalive.stop()
    assert timers.next() is None
