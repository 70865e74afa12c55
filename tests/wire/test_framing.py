from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire

PREFIXES = (3, 4)
WINDOW = 8_192
bodies = st.lists(st.binary(min_size=6, max_size=300), max_size=12)


def stream(frames: Iterable[bytes], prefix: int = 3) -> bytes:
    own = 4 if prefix == 4 else 0
    return b"".join((len(frame) + own).to_bytes(prefix, "big") + frame for frame in frames)


def deframed(deframer: object, pieces: Iterable[bytes]) -> list[bytes]:
    found = []
    for piece in pieces:
        deframer.feed(piece)
        while deframer.next():
            found.append(deframer.buffer[deframer.start : deframer.end])
    return found


def cut(data: bytes, sizes: Iterable[int]) -> list[bytes]:
    pieces = []
    at = 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    return [*pieces, data[at:]]


# THREATS 7: frames do not depend on how a stream is split.
@pytest.mark.parametrize("prefix", PREFIXES)
@given(frames=bodies, sizes=st.lists(st.integers(0, 400), max_size=40))
def test_frames_are_decoded_from_split_input(wire: Wire, prefix: int, frames: list[bytes], sizes: list[int]) -> None:
    data = stream(frames, prefix)
    for pieces in ([data], [data[at : at + 1] for at in range(len(data))], cut(data, sizes)):
        deframer = wire.framing.Deframer(prefix)
        assert deframed(deframer, pieces) == frames
        assert deframer.pending == 0


def test_many_pieces_may_be_fed_before_the_first_next(wire: Wire) -> None:
    frames = [bytes([at]) * (6 + 37 * at) for at in range(200)]
    deframer = wire.framing.Deframer()
    for piece in cut(stream(frames), [random.Random(7).randrange(1, 9000) for _ in range(100)]):
        deframer.feed(piece)
    assert deframed(deframer, [b""]) == frames


def test_complete_frames_are_not_copied(wire: Wire) -> None:
    piece = stream([b"a" * 100] * 50)
    deframer = wire.framing.Deframer()
    deframer.feed(piece)
    count = 0
    while deframer.next():
        assert deframer.buffer is piece
        count += 1
    assert count == 50


def test_frames_after_a_joined_one_are_not_copied(wire: Wire) -> None:
    first, rest = b"a" * 5000, stream([b"b" * 100] * 3)
    data = stream([first]) + rest
    pieces = [data[:1000], data[1000:]]
    deframer = wire.framing.Deframer()
    deframer.feed(pieces[0])
    assert not deframer.next()
    deframer.feed(pieces[1])
    assert deframer.next()
    assert deframer.size == 5003
    assert deframer.next()
    assert deframer.buffer is pieces[1]


@pytest.mark.parametrize("size", [1, 2, 3, 1000, 50_000])
def test_long_frame_of_small_pieces_needs_linear_memory(wire: Wire, size: int) -> None:
    frame = bytes(1 << 17)
    data = stream([frame])
    deframer = wire.framing.Deframer()
    tracemalloc.start()
    try:
        for at in range(0, len(data) - size, size):
            deframer.feed(data[at : at + size])
            assert not deframer.next()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2.5 * len(data)
    assert deframed(deframer, [data[at + size :]]) == [frame]


# THREATS 3: nothing is allocated for bytes that have not arrived.
def test_long_length_allocates_nothing(wire: Wire) -> None:
    deframer = wire.framing.Deframer(3, 0xFF_FFFF)
    tracemalloc.start()
    try:
        deframer.feed(b"\xff\xff\xff" + bytes(10))
        assert not deframer.next()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100_000
    assert deframer.pending == 13


def test_pending_counts_undelivered_bytes(wire: Wire) -> None:
    deframer = wire.framing.Deframer()
    assert deframer.pending == 0
    deframer.feed(stream([b"a" * 10, b"b" * 20])[:-1])
    assert deframer.pending == 35
    assert deframer.next()
    assert deframer.pending == 22
    assert not deframer.next()
    assert deframer.pending == 22


def test_idle_deframer_keeps_no_buffer(wire: Wire) -> None:
    deframer = wire.framing.Deframer()
    assert deframed(deframer, [stream([b"a" * 60_000])]) == [b"a" * 60_000]
    assert deframer.buffer == b""


# THREATS 2, 5: a length that is too small; 4: one that is too large, with the reserved bit and without it.
@pytest.mark.parametrize(
    ("prefix", "data", "smallest"),
    [
        (3, "000000", 6),
        (3, "000005", 6),
        (3, "0003e9", 6),
        (4, "00000000", 12),
        (4, "00000003", 12),
        (4, "0000000f", 12),
        (4, "7fffffff", 12),
        (4, "8000000f", 12),
        (4, "800003fd", 12),
        (4, "ffffffff", 12),
    ],
)
def test_impossible_length_is_an_error_each_time(wire: Wire, prefix: int, data: str, smallest: int) -> None:
    deframer = wire.framing.Deframer(prefix, 1000, smallest)
    deframer.feed(bytes.fromhex(data))
    for _ in range(2):
        with pytest.raises(wire.errors.FrameError) as caught:
            deframer.next()
        assert not caught.value.ignorable
        deframer.feed(b"more")


# ReactiveSocket 0.0, Frame Header Format: the top bit of the length is reserved. River has no such bit.
def test_reserved_bit_of_a_length_is_ignored(wire: Wire) -> None:
    body = b"x" * 12
    data = b"".join(bytes((top, 0, 0, 16)) + body for top in (0x80, 0, 0x80))
    assert wire.framing.Deframer(4, 1000, 12).split(data) == [body] * 3
    river = wire.framing.deframer(1000)
    river.feed(b"\x80\0\0\x0c" + body)
    with pytest.raises(wire.errors.FrameError, match="exceeds the maximum"):
        river.next()


def test_limit_may_be_raised_between_frames(wire: Wire) -> None:
    deframer = wire.framing.Deframer(3, 10)
    deframer.feed(stream([b"a" * 10, b"b" * 11]))
    assert deframer.next()
    deframer.max_frame_bytes = 11
    assert deframer.next()
    assert deframer.end - deframer.start == 11


@pytest.mark.parametrize("prefix", [0, 1, 2, 5])
def test_only_prefixes_of_3_and_4_bytes_are_supported(wire: Wire, prefix: int) -> None:
    with pytest.raises(wire.errors.LocalError, match="use 3 or 4"):
        wire.framing.Deframer(prefix)


@pytest.mark.parametrize("prefix", PREFIXES)
@given(frames=st.lists(st.binary(max_size=300), max_size=12), sizes=st.lists(st.integers(0, 400), max_size=40))
def test_messages_are_frames_without_their_prefix(
    wire: Wire, prefix: int, frames: list[bytes], sizes: list[int]
) -> None:
    output = b"".join(wire.framing.prefixed(frame, prefix) for frame in frames)
    assert output == stream(frames, prefix)
    deframer = wire.framing.Deframer(prefix, 0x7FFF_FFFF, 0)
    assert [frame for piece in cut(output, sizes) for frame in deframer.split(piece)] == frames


def test_message_too_long_for_its_prefix_is_refused(wire: Wire) -> None:
    assert len(wire.framing.prefixed(bytes(0xFF_FFFF))) == 0xFF_FFFF + 3
    with pytest.raises(wire.errors.LocalError, match="fragment it"):
        wire.framing.prefixed(bytes(0xFF_FFFF + 1))
    assert len(wire.framing.prefixed(bytes(0xFF_FFFF + 1), 4)) == 0xFF_FFFF + 5


@given(st.data())
def test_long_frames_are_skipped_in_split_input(wire: Wire, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.sampled_from([0, 5, 100, 101, 9_000, 20_000]), max_size=6))
    frames = [bytes(index * (number + 3) % 251 for index in range(size)) for number, size in enumerate(sizes)]
    deframer = wire.framing.Deframer(4, 100, 0, False, True)
    whole = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
    found = []
    for piece in cut(whole, data.draw(st.lists(st.integers(0, 9_000), max_size=12))):
        deframer.feed(piece)
        while deframer.next():
            passed = deframer.oversized
            body = deframer.buffer[deframer.start : deframer.end]
            found.append(body if passed is None else (passed.size, passed.head, passed.tail))
            assert passed is None or body == b""
    assert found == [frame if len(frame) <= 100 else (len(frame), frame[:8_192], frame[-8_192:]) for frame in frames]
    assert deframer.pending == 0


def test_skipped_frame_is_not_kept(wire: Wire) -> None:
    deframer = wire.framing.Deframer(4, 100, 0, False, True)
    deframer.feed((100 << 20).to_bytes(4, "big"))
    piece = bytes(1 << 20)
    tracemalloc.start()
    for _ in range(99):
        deframer.feed(piece)
        assert not deframer.next() and deframer.pending == 0
    assert tracemalloc.get_traced_memory()[1] < 200_000
    tracemalloc.stop()
    deframer.feed(piece + b"\0\0\0\x01x")
    assert deframer.next() and deframer.oversized.size == 100 << 20
    assert deframer.next() and deframer.oversized is None
    assert deframer.buffer[deframer.start : deframer.end] == b"x" and not deframer.next()


@given(st.lists(st.binary(max_size=300), max_size=20), st.integers(1, 50))
def test_river_messages_are_decoded_from_split_input(wire: Wire, messages: list[bytes], size: int) -> None:
    stream = b"".join(map(wire.framing.framed, messages))
    cut = wire.framing.deframer(300)
    found = []
    for at in range(0, len(stream), size):
        cut.feed(stream[at : at + size])
        while cut.next():
            found.append(cut.buffer[cut.start : cut.end])
    assert found == messages and cut.pending == 0


def test_length_above_the_limit_is_refused_before_it_is_read(wire: Wire) -> None:
    cut = wire.framing.deframer(1_000)
    cut.feed(b"\xff\xff\xff\xff")
    with pytest.raises(wire.errors.FrameError, match="4294967295 bytes exceeds the maximum of 1000"):
        cut.next()


def test_message_too_long_for_its_length_is_refused(wire: Wire) -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 1 << 32

    with pytest.raises(wire.errors.LocalError, match="too long for a 4-byte length"):
        wire.framing.framed(Huge())


@given(st.lists(st.integers(0, 3 * WINDOW), max_size=6))
def test_both_ends_are_kept_of_split_input(wire: Wire, sizes: list[int]) -> None:
    whole = bytes(index % 251 for index in range(sum(sizes)))
    message, at = wire.framing.LongMessage(), 0
    for size in sizes:
        message.add(b"?" + whole, at + 1, at + 1 + size)
        at += size
    assert message.size == len(whole)
    assert message.head == whole[:WINDOW]
    assert message.tail == whole[-WINDOW:]
    pieces = b"".join(message.pieces())
    assert len(pieces) == len(whole)
    assert pieces[:WINDOW] == message.head and pieces[-WINDOW:] == message.tail


def test_bytes_between_the_ends_are_dropped(wire: Wire) -> None:
    message = wire.framing.LongMessage()
    for _ in range(64):
        message.add(bytes(1 << 20), 0, 1 << 20)
    assert message.size == 64 << 20 and len(message.head) + len(message.tail) == 2 * WINDOW
    assert max(len(piece) for piece in message.pieces()) <= 1 << 20


@pytest.mark.parametrize("prefix", PREFIXES)
@given(st.data())
def test_split_returns_completed_messages(wire: Wire, prefix: int, data: st.DataObject) -> None:
    messages = data.draw(st.lists(st.binary(max_size=40) | st.just(b"x" * 70_000), max_size=20))
    written = [len(message).to_bytes(prefix, "big") + message for message in messages]
    deframer = wire.framing.Deframer(prefix, 100_000, 0, counts_itself=False)
    found: list[bytes] = []
    fed = 0
    for piece in cut(b"".join(written), data.draw(st.lists(st.integers(0, 100), max_size=40))):
        found += deframer.split(piece)
        fed += len(piece)
        # The deframer keeps only what it has not returned.
        assert sum(map(len, written[: len(found)])) + deframer.pending == fed
    assert found == messages
