"""Every first frame that does not begin a session, at servers of each dialect, over each kind of transport."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.rsocket.first_frames import EARLIEST, FOREIGN, LATER, LIMIT, First
from tests.sim.pair import CUTS, Cut

KINDS = {"shared": {}, "exclusive": {"exclusive": True}, "messages": {"messages": True, "exclusive": True}}
ONE_DIALECT = ("reactivesocket-0.2", "reactivesocket-0.0")


def detector(build: Build, protocol: str, **transport: bool) -> Any:
    settings = build.module("weirpool.settings").Settings(max_setup_frame_bytes=LIMIT, resume=False)
    made = build.module("weirpool.protocols").detectors(protocol, settings, **transport)()
    made.link_up(0.0)
    return made


def answer(build: Build, found: Any, pieces: Any) -> bytes:
    """Return what the server answers to these bytes before it closes the link."""
    session = None
    for piece in pieces:
        if session is not None:
            session.receive(bytes(piece), 0.0)
            continue
        try:
            session = found.receive(bytes(piece), 0.0)
        except build.module("weirpool.errors").ProtocolError:
            return bytes(found.farewell)
    assert session is not None and not session.link_wanted
    return b"".join(session.take_output())


def read(build: Build, data: bytes, dialect: str, prefix: int) -> tuple[int, int]:
    """Return the stream and the code of the only frame in `data`, which must be an error."""
    dump = build.module("weirpool.wire.rsocket.dump")
    ((_, frame),) = dump.read_frames(data, dialect, prefix)
    return frame.stream_id, frame.code


def with_length(body: bytes, width: int) -> bytes:
    return (len(body) + (4 if width == 4 else 0)).to_bytes(width, "big") + body


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.2"])
@pytest.mark.parametrize("first", LATER, ids=lambda first: first.name)
def test_frames_that_are_not_a_set_up_are_answered(build: Build, first: First, protocol: str, kind: str) -> None:
    # RSocket 1.0 and ReactiveSocket 0.2, Connection Establishment.
    found = detector(build, protocol, **KINDS[kind])
    said = answer(build, found, [with_length(first.body, 3) + bytes(8 * (kind != "messages"))])
    if kind == "shared" and protocol == "rsocket" and not first.known:
        assert said == b""
    else:
        assert read(build, said, "rsocket-1.0", 3) == (0, first.code)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("protocol", ["rsocket", "reactivesocket-0.0"])
@pytest.mark.parametrize("first", EARLIEST, ids=lambda first: first.name)
def test_frames_of_the_first_draft_are_answered(build: Build, first: First, protocol: str, kind: str) -> None:
    # ReactiveSocket 0.0, Connection Establishment, and Setup Error Frame.
    width = 3 if kind == "messages" else 4
    found = detector(build, protocol, **KINDS[kind])
    said = answer(build, found, [with_length(first.body, width)])
    if kind == "shared" and protocol == "rsocket" and not first.known:
        assert said == b""
    elif protocol == "rsocket" and (not first.known or (kind == "messages" and first.name.endswith("64 bits"))):
        # Nobody knows which dialect this is.
        assert read(build, said, "rsocket-1.0", 3) == (0, 0x001)
    else:
        assert read(build, said, "reactivesocket-0.0", width) == (0, first.code)


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", [each for each in LATER if each.known], ids=lambda first: first.name)
def test_answers_do_not_depend_on_how_bytes_arrive(build: Build, first: First, kind: str, cut: Cut) -> None:
    found = detector(build, "rsocket", **KINDS[kind])
    said = answer(build, found, cut(with_length(first.body, 3)))
    assert read(build, said, "rsocket-1.0", 3) == (0, first.code)


@pytest.mark.parametrize("protocol", ["rsocket", *ONE_DIALECT])
@pytest.mark.parametrize("data", FOREIGN)
def test_other_protocols_are_not_answered_where_they_are_possible(build: Build, data: bytes, protocol: str) -> None:
    # THREATS 10
    assert answer(build, detector(build, protocol), [data]) == b""
    assert answer(build, detector(build, protocol, exclusive=True), [data]) != b""
    said = answer(build, detector(build, protocol, messages=True, exclusive=True), [with_length(data, 3)])
    assert said != b""


def test_a_dialect_that_is_not_served_is_answered_in_its_own_layout(build: Build) -> None:
    earliest = with_length(bytes.fromhex("00 00 0001 0000000000000000 03 612f62 03 632f64"), 4)
    said = answer(build, detector(build, "reactivesocket-0.2"), [earliest])
    assert read(build, said, "reactivesocket-0.0", 4) == (0, 0x001)
    latest = with_length(bytes.fromhex("00000000 0400 0001 0000 00004e20 00015f90 03 612f62 03 632f64"), 3)
    said = answer(build, detector(build, "reactivesocket-0.0"), [latest])
    assert read(build, said, "rsocket-1.0", 3) == (0, 0x001)


@pytest.mark.parametrize("first", LATER, ids=lambda first: first.name)
def test_answers_have_the_length_that_peers_of_2017_expect(build: Build, first: First) -> None:
    settings = build.module("weirpool.settings").Settings(max_setup_frame_bytes=LIMIT, length_counts_itself=True)
    made = build.module("weirpool.protocols").detectors("reactivesocket-0.2", settings)()
    body = first.body
    said = answer(build, made, [(len(body) + 3).to_bytes(3, "big") + body + bytes(8)])
    assert int.from_bytes(said[:3], "big") == len(said)
    assert read(build, (len(said) - 3).to_bytes(3, "big") + said[3:], "reactivesocket-0.2", 3) == (0, first.code)


def test_bytes_of_an_unknown_frame_are_not_sent_back(build: Build) -> None:
    # THREATS 10
    found = detector(build, "rsocket", messages=True, exclusive=True)
    said = answer(build, found, [with_length(b"\0\0\0\0\x80\0secret in a frame", 3)])
    assert b"secret" not in said and b"8000" not in said
