"""Sessions whose bytes are changed at random: they only report events and end cleanly."""

from __future__ import annotations

import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from types import FrameType
from typing import Any

import pytest

from tests.builds import Build
from tests.hostile.mutations import DIALECTS, mutated, pieces, recorded, reframed, say

INPUTS = 3_400
"""Inputs for each dialect and side: about 20,000 in all."""
WATCHED = 400
"""Inputs for each dialect and side whose memory is measured."""
PEAK_BYTES = 1_000_000
HANGS = 240
ENDS = ("Completed", "Failed")


@contextmanager
def no_longer_than(seconds: int) -> Iterator[None]:
    """Limit the time of each test: an endless loop would hang all tests."""

    def expired(number: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"not done in {seconds} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class Subject:
    """A session with mutated input that responds to each event as an honest user would."""

    def __init__(self, build: Build, dialect: str, side: str, rng: Random) -> None:
        self.build = build
        self.rng = rng
        self.errors = build.module("weirpool.errors")
        self.payload = build.module("weirpool.payload").Payload
        limits = build.module("weirpool.settings").Settings(
            fragment_bytes=64, lease=side == "server" or bool(rng.randrange(2)), max_reassembly_bytes=100_000
        )
        dialects = build.module("weirpool.protocols")
        self.acceptor = dialects.detectors("rsocket", limits)() if side == "server" else None
        self.session: Any = None
        self.now = 100.0
        self.ended: dict[int, int] = {}
        self.closed = 0
        if self.acceptor is not None:
            self.acceptor.link_up(self.now)
            return
        self.session = dialects.client_session("rsocket" if "1.0" in dialect else dialect, limits)
        self.session.link_up(self.now)
        try:
            say(build, self.session, dialect)
        except self.errors.LeaseMissing:
            pass

    def take(self, data: bytes) -> None:
        for piece in pieces(data, self.rng):
            self.now += 0.01
            if self.session is not None:
                self.session.receive(piece, self.now)
            else:
                try:
                    self.session = self.acceptor.receive(piece, self.now)
                except self.errors.ProtocolError:
                    return
            self.answer()

    def answer(self) -> None:
        session = self.session
        for event in [] if session is None else session.take_events():
            name = type(event).__name__
            assert not self.closed, f"{name} behind Closed"
            stream = event.stream_id
            if name == "Closed":
                self.closed += 1
                assert session.open_streams == 0
            elif name in ENDS:
                self.ended[stream] = self.ended.get(stream, 0) + 1
            elif name == "Requested" and event.credit:
                self.respond(stream, event)
        if session is not None:
            session.take_output()

    def respond(self, stream: int, event: Any) -> None:
        # The same input may have ended the stream.
        try:
            if not event.done:
                self.session.request(stream, 3)
            if self.session.credit(stream):
                self.session.send(stream, self.payload(b"item"), bool(self.rng.randrange(2)))
        except self.errors.StreamClosed:
            pass

    def finish(self) -> None:
        """Advance the time, and end the link."""
        session = self.session
        if session is None:
            return
        for _ in range(6):
            due = session.next_timer()
            if due is not None:
                self.now = max(self.now, due)
                session.handle_timer(self.now)
                self.answer()
        session.link_down(self.now, None)
        due = session.next_timer()
        while due is not None:
            self.now = max(self.now, due)
            session.handle_timer(self.now)
            due = session.next_timer()
        self.answer()
        assert self.closed == 1
        assert not session.link_wanted
        assert (session.open_streams, session.next_timer()) == (0, None)


def play(build: Build, dialect: str, side: str, said: bytes, seed: int) -> None:
    rng = Random(f"{dialect} {side} {seed}")
    prefix = 4 if dialect == "reactivesocket-0.0" else 3
    data = mutated(said, rng) if rng.randrange(3) == 0 else reframed(said, prefix, rng)
    subject = Subject(build, dialect, side, rng)
    try:
        subject.take(data)
        subject.finish()
    except Exception as error:
        error.add_note(f"seed {seed}: {data.hex()}")
        raise


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_mutated_sessions_end_in_order(build: Build, dialect: str, side: str) -> None:
    said = recorded(build, dialect)[side == "client"]
    with no_longer_than(HANGS):
        for seed in range(INPUTS):
            play(build, dialect, side, said, seed)


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_mutated_sessions_cost_little_memory(build: Build, dialect: str, side: str) -> None:
    said = recorded(build, dialect)[side == "client"]
    with no_longer_than(HANGS):
        # Objects that are created once are not counted.
        play(build, dialect, side, said, INPUTS)
        tracemalloc.start()
        try:
            for seed in range(INPUTS, INPUTS + WATCHED):
                play(build, dialect, side, said, seed)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < PEAK_BYTES
