from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Close, CloseCode, Frame, Opcode
from websockets.protocol import OPEN, Protocol, Side

from tests.sim.pair import CUTS, Cut
from weirpool.transports.websocket_frames import FrameReader, control_frame, message_frames
from weirpool.wire.framing import WINDOW

BOTH = pytest.mark.parametrize("masked", [True, False], ids=["from a client", "from a server"])
LIMIT = 100_000


def reader(masked: bool = False, max_bytes: int = LIMIT, **more: int) -> FrameReader:
    return FrameReader(masked=masked, max_bytes=max_bytes, width=3, **more)


def frame(opcode: int, data: bytes = b"", masked: bool = False, fin: bool = True) -> bytes:
    """A frame as the library makes it."""
    return Frame(Opcode(opcode), data, fin).serialize(mask=masked)


def prefixed(*messages: bytes) -> bytes:
    return b"".join(len(message).to_bytes(3, "big") + message for message in messages)


MESSAGES = [b"", b"a", b"x" * 125, b"y" * 126, b"z" * 0xFFFF, b"long" * 20_000]


# Messages that are too long, and are passed over.


@given(st.data())
def test_oversized_message_is_skipped(data: st.DataObject) -> None:
    masked = data.draw(st.booleans())
    sizes = data.draw(st.lists(st.sampled_from([0, 5, 1_000, 1_001, 20_000, 70_000]), min_size=1, max_size=5))
    sent, expected = b"", b""
    for number, size in enumerate(sizes):
        message = bytes(index * (number + 3) % 251 for index in range(size))
        cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=3)))
        bounds = [0, *cuts, size]
        for index, (start, end) in enumerate(pairwise(bounds)):
            opcode = Opcode.CONT if index else Opcode.BINARY
            sent += frame(opcode, message[start:end], masked, fin=index == len(bounds) - 2)
            sent += frame(Opcode.PING, b"", masked)
        if size > 1_000 + 2 * WINDOW:
            message = message[:WINDOW] + bytes(size - 2 * WINDOW) + message[-WINDOW:]
        expected += size.to_bytes(3, "big") + message
    frames = FrameReader(masked=masked, max_bytes=1_000, width=3, skip_long=True)
    found, step = b"", data.draw(st.sampled_from([1_700, 9_000, 1_000_000]))
    for at in range(0, len(sent), step):
        found += frames.feed(sent[at : at + step])
        while frames.skipped is not None:
            found += b"".join(frames.take_skipped()) + frames.feed(b"")
    assert found == expected and not frames.done() and frames.ping == b""


@BOTH
def test_skipped_message_is_not_buffered(masked: bool) -> None:
    frames = FrameReader(masked=masked, max_bytes=1_000, width=4, skip_long=True)
    sent = frame(Opcode.BINARY, bytes(30_000_000), masked)
    tracemalloc.start()
    for at in range(0, len(sent), 100_000):
        assert frames.feed(sent[at : at + 100_000]) == b""
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert frames.skipped is not None and frames.skipped.size == 30_000_000


@pytest.mark.parametrize("cut", range(8, 16))
def test_skipped_message_with_split_header_is_not_buffered(cut: int) -> None:
    # THREATS 92
    frames = reader(True, 1_000, skip_long=True)
    sent = frame(Opcode.BINARY, bytes(10_000_000), True)
    frames.feed(sent[:cut])
    tracemalloc.start()
    for at in range(cut, len(sent), 1_000):
        assert frames.feed(sent[at : at + 1_000]) == b"" and frames.violation is None
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 200_000
    assert frames.skipped is not None and frames.skipped.size == 10_000_000


@BOTH
def test_first_and_inexpressible_messages_are_not_skipped(masked: bool) -> None:
    frames = FrameReader(masked=masked, max_bytes=1_000, width=4, skip_long=True, first_max_bytes=100)
    frames.feed(frame(Opcode.BINARY, bytes(1_000_000), masked)[:100])
    # The first message of a client is its own matter; see first_max_bytes.
    assert frames.violation is not None and frames.violation.code == CloseCode.MESSAGE_TOO_BIG
    frames = FrameReader(masked=masked, max_bytes=1_000, width=4, skip_long=True)
    frames.feed(bytes((0x82, 0xFF if masked else 0x7F)) + (1 << 32).to_bytes(8, "big") + b"mask")
    assert frames.violation is not None and frames.violation.code == CloseCode.MESSAGE_TOO_BIG


# Messages, against the library.


@BOTH
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_messages_of_the_library_are_read_with_their_lengths(masked: bool, cut: Cut) -> None:
    sent = b"".join(frame(Opcode.BINARY, message, masked) for message in MESSAGES)
    frames = reader(masked)
    assert b"".join(frames.feed(piece) for piece in cut(sent)) == prefixed(*MESSAGES)
    assert not frames.done()


@BOTH
def test_the_library_reads_our_messages(masked: bool) -> None:
    peer = Protocol(Side.SERVER if masked else Side.CLIENT, state=OPEN)
    for chunk in message_frames(MESSAGES, masked):
        peer.receive_data(chunk)
    assert [event.data for event in peer.events_received() if isinstance(event, Frame)] == MESSAGES
    assert peer.state is OPEN


@given(st.data())
def test_fragmented_messages_are_reassembled(data: st.DataObject) -> None:
    masked = data.draw(st.booleans())
    messages = data.draw(st.lists(st.lists(st.binary(max_size=200), min_size=1, max_size=4), max_size=6))
    sent = b""
    pings: list[bytes] = []
    for parts in messages:
        for number, part in enumerate(parts):
            opcode = Opcode.CONT if number else Opcode.BINARY
            sent += frame(opcode, part, masked, fin=number == len(parts) - 1)
            # Control frames come between those of a message, too.
            if data.draw(st.booleans()):
                pings.append(b"%d" % len(pings))
                sent += frame(Opcode.PING, pings[-1], masked) + frame(Opcode.PONG, b"", masked)
    frames = reader(masked)
    got = b""
    answered: list[bytes] = []
    while sent:
        size = data.draw(st.integers(1, len(sent)))
        got += frames.feed(sent[:size])
        sent = sent[size:]
        if frames.ping is not None:
            answered.append(frames.ping)
            frames.ping = None
    assert got == prefixed(*(b"".join(parts) for parts in messages))
    assert answered[-1:] == pings[-1:] and set(answered) <= set(pings)


def test_each_frame_of_a_client_has_a_key_of_its_own() -> None:
    keys = {message_frames([bytes(4)], True)[0][2:6] for _ in range(20)}
    [both] = message_frames([bytes(4), bytes(4)], True)
    assert len({*keys, both[2:6], both[12:16]}) == 22


def test_only_small_messages_are_joined() -> None:
    large = bytes(100_000)
    chunks = message_frames([b"a", b"b", large, b"c"], False)
    assert [len(chunk) for chunk in chunks] == [3 + 3 + 10, len(large), 3]
    # Where nothing is masked it is not even copied.
    assert chunks[1] is large


# What a peer must not do.


def head(first: int, length: int, masked: bool = False) -> bytes:
    """The head of a frame of 64-bit length."""
    return bytes((first, 0xFF if masked else 0x7F)) + length.to_bytes(8, "big")


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (frame(Opcode.TEXT, b"x"), 1003),
        (frame(Opcode.BINARY, b"x", masked=True), 1002),
        (b"\xc2\x01x", 1002),
        (b"\x83\x00", 1002),
        (b"\x8b\x00", 1002),
        (frame(Opcode.CONT, b"x"), 1002),
        (frame(Opcode.BINARY, b"x", fin=False) + frame(Opcode.BINARY, b"x"), 1002),
        (b"\x09\x00", 1002),
        (b"\x89\x7e\x00\x7e", 1002),
        (b"\x88\x01\x00", 1002),
        (b"\x88\x02\x03\xed", 1002),
        (b"\x88\x04\x03\xe8\xff\xff", 1007),
        (head(0x82, LIMIT + 1), 1009),
        (head(0x82, 2**64 - 1), 1009),
        (frame(Opcode.BINARY, bytes(LIMIT), fin=False) + b"\x80\x01", 1009),
    ],
    ids=[
        "text", "masked by a server", "compressed", "unknown data", "unknown control", "a continuation of nothing",
        "a message within another", "control in parts", "long control", "short close", "close with 1005",
        "close in no text", "too long", "absurdly long", "too long in parts",
    ],
)  # fmt: skip
@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_mistake_is_named_by_its_code_and_ends_the_reading(sent: bytes, code: int, cut: Cut) -> None:
    frames = reader()
    good = frame(Opcode.BINARY, b"good")
    got = b"".join(frames.feed(piece) for piece in cut(good + sent + good))
    # What came before it is good.
    assert got == prefixed(b"good")
    assert frames.violation is not None and frames.violation.code == code
    assert frames.violation.serialize()
    assert frames.feed(good) == b""


def test_unmasked_client_frames_are_a_protocol_error() -> None:
    frames = reader(masked=True)
    assert frames.feed(frame(Opcode.BINARY, b"x")) == b""
    assert frames.violation is not None and frames.violation.code == CloseCode.PROTOCOL_ERROR


def test_oversized_message_fails_by_its_header() -> None:
    # THREATS 8
    frames = reader(max_bytes=10)
    frames.feed(frame(Opcode.BINARY, bytes(10)))
    assert frames.violation is None
    frames.feed(b"\x82\x0b")
    assert frames.violation == Close(CloseCode.MESSAGE_TOO_BIG, "a message has at most 10 bytes here")


def test_oversized_fragments_fail_by_the_last_header() -> None:
    frames = reader(max_bytes=10)
    frames.feed(frame(Opcode.BINARY, bytes(6), fin=False) + b"\x00\x05")
    assert frames.violation == Close(CloseCode.MESSAGE_TOO_BIG, "a message has at most 10 bytes here")


def test_the_first_message_may_have_a_limit_of_its_own() -> None:
    frames = reader(max_bytes=10, first_max_bytes=5)
    assert frames.feed(frame(2, b"12345") + frame(2, b"1234567890")) == prefixed(b"12345", b"1234567890")
    frames = reader(max_bytes=10, first_max_bytes=5)
    frames.feed(frame(2, b"12", fin=False) + frame(0, b"345") + frame(2, b"123456"))
    assert frames.violation is None
    frames = reader(max_bytes=10, first_max_bytes=5)
    frames.feed(frame(2, b"123456"))
    assert frames.violation is not None


@BOTH
def test_beginning_of_a_long_first_message_is_returned(masked: bool) -> None:
    message = bytes(range(200))
    frames = FrameReader(masked=masked, max_bytes=1_000, width=3, first_max_bytes=100)
    assert frames.feed(frame(2, message, masked)) == b"\0\0\xc8" + message[:32]
    assert frames.violation is not None and frames.violation.code == CloseCode.MESSAGE_TOO_BIG
    # Later ones, those that are skipped, and fragments are not: their senders are known, or need no answer.
    frames = FrameReader(masked=masked, max_bytes=100, width=3, first_max_bytes=50)
    assert frames.feed(frame(2, b"first", masked) + frame(2, message, masked)) == b"\0\0\x05first"
    frames = FrameReader(masked=masked, max_bytes=100, width=4, first_max_bytes=50, skip_long=True)
    assert frames.feed(frame(2, message, masked)) == b""
    frames = FrameReader(masked=masked, max_bytes=100, width=3, first_max_bytes=50)
    assert frames.feed(frame(2, b"1", masked, fin=False) + frame(0, message, masked)) == b""


def test_no_message_is_longer_than_its_length_can_say() -> None:
    frames = reader(max_bytes=1 << 30)
    frames.feed(head(0x82, 1 << 24))
    assert frames.violation is not None and frames.violation.code == CloseCode.MESSAGE_TOO_BIG


# Control frames.


def test_message_limit_does_not_apply_to_control_frames() -> None:
    frames = reader(max_bytes=10)
    frames.feed(frame(Opcode.BINARY, bytes(10), fin=False) + frame(Opcode.PING, bytes(125)))
    assert (frames.violation, frames.ping) == (None, bytes(125))


@BOTH
def test_only_the_last_ping_is_kept(masked: bool) -> None:
    # THREATS 8
    frames = reader(masked)
    frames.feed(b"".join(frame(Opcode.PING, b"%d" % number, masked) for number in range(200)))
    assert frames.ping == b"199"


@BOTH
def test_the_library_reads_our_control_frames(masked: bool) -> None:
    peer = Protocol(Side.SERVER if masked else Side.CLIENT, state=OPEN)
    peer.receive_data(control_frame(Opcode.PONG, b"data", masked))
    peer.receive_data(control_frame(Opcode.CLOSE, Close(CloseCode.NORMAL_CLOSURE, "bye").serialize(), masked))
    assert peer.close_rcvd == Close(CloseCode.NORMAL_CLOSURE, "bye")


def test_nothing_is_read_after_a_close() -> None:
    frames = reader()
    close = Close(CloseCode.GOING_AWAY, "bye")
    got = frames.feed(frame(2, b"before") + frame(Opcode.CLOSE, close.serialize()) + frame(2, b"after"))
    assert (got, frames.close, frames.violation) == (prefixed(b"before"), close, None)
    assert frames.feed(frame(2, b"after")) == b""


def test_a_close_may_have_no_code() -> None:
    frames = reader()
    frames.feed(frame(Opcode.CLOSE))
    assert frames.close == Close(CloseCode.NO_STATUS_RCVD, "")


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_without_a_width_messages_are_a_stream_of_bytes(cut: Cut) -> None:
    sent = b"".join(frame(Opcode.BINARY, message) for message in MESSAGES)
    sent += frame(Opcode.BINARY, b"in ", fin=False) + frame(Opcode.CONT, b"two")
    frames = FrameReader(masked=False, max_bytes=LIMIT, width=0)
    assert b"".join(frames.feed(piece) for piece in cut(sent)) == b"".join(MESSAGES) + b"in two"
    assert frames.feed(frame(Opcode.BINARY, bytes(LIMIT + 1))) == b"" and frames.violation is not None
    text = FrameReader(masked=False, max_bytes=LIMIT, width=0)
    assert text.feed(frame(Opcode.TEXT, b"text")) == b"" and text.violation is not None
