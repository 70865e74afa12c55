from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from tests.builds import Build

MASKED = pytest.mark.parametrize("masked", [True, False], ids=["from a client", "from a server"])
SIZES = st.integers(0, 300) | st.sampled_from([125, 126, 127, 0x7FFF, 0x8000, 0xFFFF, 0x1_0000])
MESSAGES = st.lists(SIZES.map(lambda size: bytes(number & 0xFF for number in range(size))), max_size=6)


def prefixed(messages: list[bytes], width: int) -> bytes:
    return b"".join((len(message).to_bytes(width, "big") if width else b"") + message for message in messages)


def frames(messages: list[bytes], masked: bool) -> bytes:
    return b"".join(Frame(Opcode.BINARY, message).serialize(mask=masked) for message in messages)


@MASKED
@given(messages=MESSAGES, width=st.sampled_from([0, 3, 4]), before=st.binary(max_size=3), rest=st.binary(max_size=12))
def test_runs_match_the_frames(
    build: Build, masked: bool, messages: list[bytes], width: int, before: bytes, rest: bytes
) -> None:
    runs = build.module("weirpool.transports.websocket_runs")
    sent = frames(messages, masked)
    found, end = runs.read_run(before + sent, len(before), masked, 1 << 20, width)
    if build.name == "plain":
        assert (found, end) == (b"", len(before))
        return
    assert (found, end) == (prefixed(messages, width), len(before) + len(sent))
    # Whatever follows, and wherever it is cut, what was whole before is read.
    again, end = runs.read_run(sent + rest, 0, masked, 1 << 20, width)
    assert again.startswith(found) and end >= len(sent)


@MASKED
@given(messages=MESSAGES.filter(bool), cut=st.integers(1, 12))
def test_incomplete_frames_are_not_decoded(build: Build, masked: bool, messages: list[bytes], cut: int) -> None:
    runs = build.module("weirpool.transports.websocket_runs")
    sent = frames(messages, masked)
    last = len(frames(messages[-1:], masked))
    found, end = runs.read_run(sent[: len(sent) - min(cut, last)], 0, masked, 1 << 20, 4)
    if build.name == "compiled":
        assert (found, end) == (prefixed(messages[:-1], 4), len(sent) - last)


@MASKED
@pytest.mark.parametrize(
    "odd",
    [
        Frame(Opcode.TEXT, b"x"),
        Frame(Opcode.BINARY, b"x", fin=False),
        Frame(Opcode.CONT, b"x"),
        Frame(Opcode.PING, b"x"),
        Frame(Opcode.CLOSE, b""),
        Frame(Opcode.BINARY, b"x" * 1_001),
    ],
)
def test_other_frames_are_not_decoded(build: Build, masked: bool, odd: Frame) -> None:
    runs = build.module("weirpool.transports.websocket_runs")
    usual = frames([b"usual"], masked)
    found, end = runs.read_run(usual + odd.serialize(mask=masked), 0, masked, 1_000, 3)
    assert (found, end) == ((b"", 0) if build.name == "plain" else (b"\0\0\5usual", len(usual)))
    reserved = bytes([usual[0] | 0x40]) + usual[1:]
    assert runs.read_run(reserved, 0, masked, 1_000, 3) == (b"", 0)
    # Whether it is masked is the sender's side.
    assert runs.read_run(usual, 0, not masked, 1_000, 3) == (b"", 0)


def test_lengths_beyond_the_memory_are_left(build: Build) -> None:
    read_run = build.module("weirpool.transports.websocket_runs").read_run
    for length in (b"\xff" * 8, b"\x7f" + b"\xff" * 7, b"\0\0\0\1" + b"\0" * 4, b"\0\0\0\0\xff\xff\xff\xff"):
        assert read_run(b"\x82\x7f" + length + b"x" * 20, 0, False, 1 << 62, 4) == (b"", 0)


@MASKED
@given(messages=MESSAGES, width=st.sampled_from([3, 4]), rest=st.binary(max_size=2))
def test_library_reads_our_frames(build: Build, masked: bool, messages: list[bytes], width: int, rest: bytes) -> None:
    runs = build.module("weirpool.transports.websocket_runs")
    data = prefixed(messages, width)
    written, taken = runs.write_run(data + rest, width, masked)
    if build.name == "plain":
        assert (written, taken) == (b"", 0)
        return
    short = messages
    for number, message in enumerate(messages):
        if len(message) >= 32_768:
            short = messages[:number]
            break
    assert taken == len(prefixed(short, width))
    assert len(written) == len(frames(short, masked))
    assert runs.read_run(written, 0, masked, 1 << 20, width) == (data[:taken], len(written))
    if not masked:
        assert written == frames(short, False)


def test_each_frame_has_a_key_of_its_own(build: Build) -> None:
    runs = build.module("weirpool.transports.websocket_runs")
    written, _ = runs.write_run(b"\0\0\4\0\0\0\0" * 50, 3, True)
    assert build.name == "plain" or len({written[at + 2 : at + 6] for at in range(0, len(written), 10)}) > 40


def test_no_argument_makes_it_read_elsewhere_or_for_ever(build: Build) -> None:
    runs = build.module("weirpool.transports.websocket_runs")
    with pytest.raises(IndexError):
        runs.read_run(b"\x82\x00", -1, False, 10, 0)
    assert runs.read_run(b"\x82\x00", 5, False, 10, 0) == (b"", 5)
    for width in (0, 5):
        with pytest.raises(ValueError, match="1 to 4"):
            runs.write_run(b"\0\0\0", width, False)
