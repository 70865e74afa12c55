from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.sim.pair import CUTS, Cut


@pytest.fixture
def acceptor(build: Build) -> Any:
    settings = build.module("weirpool.settings").Settings(first_frame_timeout=10)
    made = build.module("weirpool.rsocket.accept").RSocketDetector(settings)
    made.link_up(100.0)
    return made


def opening(build: Build) -> bytes:
    """Return the first bytes of a client: its set-up and a call."""
    modules = [build.module(f"weirpool.{name}") for name in ("rsocket.session", "settings", "payload", "kinds")]
    session, settings, payload, kinds = modules
    client = session.RSocketSession.client(settings.Settings(), payload.Payload())
    client.link_up(0.0)
    client.open(kinds.Kind.CALL, "echo", payload.Payload(b"hi"), 1, True)
    return b"".join(client.take_output())


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_set_up_starts_a_session_with_all_received_bytes(build: Build, acceptor: Any, cut: Cut) -> None:
    session = None
    for piece in cut(opening(build)):
        if session is None:
            session = acceptor.receive(bytes(piece), 101.0)
        else:
            session.receive(bytes(piece), 101.0)
    assert [type(event).__name__ for event in session.take_events()] == ["Established", "Requested"]


def test_first_frame_must_arrive_in_time(acceptor: Any) -> None:
    # THREATS 1
    assert acceptor.next_timer() == 110.0
    assert acceptor.receive(b"\x00", 109.0) is None
    assert acceptor.next_timer() == 110.0


@pytest.mark.parametrize(
    ("first", "what"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "TLS ClientHello"),
        (b"GET / HTTP/1.1\r\n", "an HTTP request"),
        (b"PRI * HTTP/2.0\r\n", "HTTP/2"),
        (b"SSH-2.0-OpenSSH", "SSH"),
        (b"\x00\x00\x05\x00\x00\x00\x00\x04\x00", "not RSocket"),
        (b"\xff\xff\xff\x00\x00\x00\x01\x10\x00", "of 16777215 bytes exceeds max_setup_frame_bytes"),
        (b"\x00\x00\x20\x80\x00\x00\x00\x04\x00", "not RSocket"),
        (b"\x00\x00\x20\x00\x00\x00\x00\xc0\x00", "not RSocket"),
    ],
)
def test_foreign_protocols_are_detected_and_not_answered(build: Build, acceptor: Any, first: bytes, what: str) -> None:
    # THREATS 2, 3, 10, 12
    with pytest.raises(build.module("weirpool.errors").ProtocolError, match=what):
        acceptor.receive(first, 101.0)
    assert acceptor.farewell == b""


def resume_frame(build: Build, token: bytes) -> bytes:
    frames = build.module("weirpool.wire.rsocket.frames")
    frame = frames.ResumeFrame(major=1, minor=0, token=token)
    return build.module("weirpool.rsocket.dialect").RSOCKET_1_0.codec().frame(frame)


@pytest.mark.parametrize(("store", "why"), [(False, "does not resume"), (True, "no session with this token")])
def test_rejected_resume_is_answered(build: Build, store: bool, why: str) -> None:
    # THREATS 26, 28
    settings = build.module("weirpool.settings").Settings()
    sessions = build.module("weirpool.rsocket.resume").SessionStore(10) if store else None
    acceptor = build.module("weirpool.rsocket.accept").RSocketDetector(settings, sessions)
    frame = resume_frame(build, b"guessed")
    for octet in range(len(frame) - 1):
        assert acceptor.receive(frame[octet : octet + 1], 0.0) is None
    with pytest.raises(build.module("weirpool.errors").ProtocolError, match=why):
        acceptor.receive(frame[-1:], 0.0)
    codec = build.module("weirpool.rsocket.dialect").RSOCKET_1_0.codec()
    answer = codec.decode(acceptor.farewell, 3, len(acceptor.farewell))
    assert (answer.stream_id, answer.code) == (0, 0x004)
    assert b"guessed" not in answer.data


def test_size_of_a_resume_frame_is_limited(build: Build) -> None:
    # THREATS 27
    settings = build.module("weirpool.settings").Settings()
    sessions = build.module("weirpool.rsocket.resume").SessionStore(10)
    accept = build.module("weirpool.rsocket.accept")
    acceptor = accept.RSocketDetector(settings, sessions)
    frame = resume_frame(build, bytes(65_535))
    for octet in range(accept.RESUME_BYTES - 1):
        assert acceptor.receive(frame[octet : octet + 1], 0.0) is None
    with pytest.raises(build.module("weirpool.errors").ProtocolError, match=r"at most \d+ are accepted"):
        acceptor.receive(frame[accept.RESUME_BYTES - 1 : accept.RESUME_BYTES], 0.0)


def test_locked_out_peer_cannot_resume(build: Build, acceptor: Any) -> None:
    # THREATS 28, 95
    errors = build.module("weirpool.errors")
    acceptor.locked_out = "the reason"
    frames, dialect = build.module("weirpool.wire.rsocket.frames"), build.module("weirpool.rsocket.dialect")
    with pytest.raises(errors.ProtocolError, match="RESUME refused: the reason"):
        acceptor.receive(dialect.RSOCKET_1_0.codec().frame(frames.ResumeFrame(b"token")), 101.0)
    assert not acceptor.farewell and not acceptor.guessed


def test_locked_out_peer_may_begin_a_session(build: Build, acceptor: Any) -> None:
    # THREATS 95
    acceptor.locked_out = "the reason"
    assert acceptor.receive(opening(build), 101.0) is not None


def test_unknown_token_is_a_guess(build: Build, acceptor: Any) -> None:
    # THREATS 28
    frames, dialect = build.module("weirpool.wire.rsocket.frames"), build.module("weirpool.rsocket.dialect")
    errors = build.module("weirpool.errors")
    with pytest.raises(errors.ProtocolError):
        acceptor.receive(dialect.RSOCKET_1_0.codec().frame(frames.ResumeFrame(b"token")), 101.0)
    assert acceptor.guessed and acceptor.farewell
