from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire import vectors
from tests.wire.conftest import Wire
from tests.wire.outcomes import attempt
from tests.wire.strategies import frames, made, metadata, raw, u31
from tests.wire.vectors import Vector

LYING = next(vector for vector in vectors.load() if vector.raw.hex() == vectors.LYING_METADATA)
VECTORS = [vector for vector in vectors.load() if vector != LYING]
FLAGS = {
    "ignore": "IGNORE",
    "follows": "FOLLOWS",
    "complete": "COMPLETE",
    "next": "NEXT",
    "respond": "RESPOND",
    "resume": "RESUME",
    "lease": "LEASE",
}


def bodies(wire: Wire, vector: Vector) -> list[bytes]:
    """Return the frames of a vector, without their prefixes."""
    return wire.framing.Deframer().split(vector.raw) if vector.prefix else [vector.raw]


def decoded(wire: Wire, body: str | bytes) -> Any:
    raw = bytes.fromhex(body) if isinstance(body, str) else body
    return wire.v1.decode(raw, 0, len(raw))


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.meaning[:60])
def test_vectors_decode_to_their_meaning(wire: Wire, vector: Vector) -> None:
    facts = vectors.facts(vector)
    found = [decoded(wire, body) for body in bodies(wire, vector)]
    assert len(found) == len(facts)
    for frame, fact in zip(found, facts, strict=True):
        assert wire.frames.type_name(frame.type) == fact["type"]
        for name, expected in fact.items():
            if name in FLAGS:
                assert bool(frame.flags & getattr(wire.frames, FLAGS[name])) is expected, name
            elif name != "type":
                value = getattr(frame, name)
                assert (value.decode() if name.endswith("_mime") else value) == expected, name


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector.meaning[:60])
def test_vectors_encode_back_to_the_same_bytes(wire: Wire, vector: Vector) -> None:
    found = [decoded(wire, body) for body in bodies(wire, vector)]
    encode = wire.v1.frame if vector.prefix else wire.v1.encode
    # RSocket 1.0, REQUEST_N: the reserved bit is ignored, and written as 0.
    expected = vector.raw.hex() if vector.raw.hex() != vectors.RESERVED_BIT else "00000001200000000001"
    assert b"".join(encode(frame) for frame in found).hex() == expected


def test_every_vector_has_a_type_and_other_fields() -> None:
    for vector in VECTORS:
        for fact in vectors.facts(vector):
            assert fact["type"].isupper(), vector
            assert len(fact) > 1, vector


# THREATS 15.
def test_metadata_beyond_the_frame_is_an_error_unless_ignored(wire: Wire) -> None:
    with pytest.raises(wire.errors.FrameError, match="metadata of 16 bytes runs past the frame") as caught:
        decoded(wire, LYING.raw)
    assert (caught.value.offset, caught.value.ignorable) == (6, False)
    ignorable = LYING.raw[:4] + bytes([LYING.raw[4] | 2]) + LYING.raw[5:]
    with pytest.raises(wire.errors.FrameError) as caught:
        decoded(wire, ignorable)
    assert caught.value.ignorable


@given(frame=frames, before=raw, after=raw)
def test_every_frame_is_decoded_back(
    wire: Wire, frame: tuple[str, dict[str, Any]], before: bytes, after: bytes
) -> None:
    written = made(wire, frame)
    body = wire.v1.encode(written)
    read = wire.v1.decode(before + body + after, len(before), len(before) + len(body))
    assert read == written
    assert type(read) is type(written)
    assert wire.v1.encode(read) == body
    assert wire.v1.stream_id(before + body + after, len(before)) == written.stream_id
    assert wire.v1.type(before + body + after, len(before)) == written.type
    assert wire.v1.frame(written) == wire.framing.prefixed(body)


def mutated(frame: bytes, changes: list[tuple[int, int]], length: int) -> bytes:
    """Return a frame with some bytes changed, and truncated or extended."""
    raw = bytearray(frame)
    for at, value in changes:
        raw[at % len(raw)] = value
    return bytes(raw[:length]).ljust(min(length, len(raw) + 4), b"?")


changes = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 255)), max_size=4)


# Bytes from a peer may only raise FrameError.
@given(frame=frames, changes=changes, length=st.integers(0, 400))
def test_malformed_frames_only_raise_frame_errors(
    wire: Wire, frame: tuple[str, dict[str, Any]], changes: list[tuple[int, int]], length: int
) -> None:
    body = mutated(wire.v1.encode(made(wire, frame)), changes, length)
    try:
        read = decoded(wire, body)
    except wire.errors.FrameError as error:
        assert 0 <= error.offset <= len(body)
        return
    # Decoded frames can be encoded and decoded again; only trailing bytes and reserved bits are lost.
    again = wire.v1.encode(read)
    assert len(again) <= len(body)
    assert decoded(wire, again) == read


@given(body=st.binary(max_size=60))
def test_random_bytes_only_raise_frame_errors(wire: Wire, body: bytes) -> None:
    try:
        decoded(wire, body)
    except wire.errors.FrameError as error:
        assert 0 <= error.offset <= len(body)


@given(frame=frames, changes=changes, length=st.integers(0, 400))
def test_fast_path_agrees_with_the_table(
    wire: Wire, frame: tuple[str, dict[str, Any]], changes: list[tuple[int, int]], length: int
) -> None:
    body = mutated(wire.v1.encode(made(wire, frame)), changes, length)
    if len(body) < 6 or body[0] & 0x80:
        return
    fast = attempt(wire.v1.decode, body, 0, len(body))
    slow = attempt(wire.layouts.read_frame, wire.layouts.RSOCKET_V1, body, 0, len(body))
    if isinstance(fast, tuple):
        # The errors differ only in their texts.
        assert (fast[0], fast[2]) == (slow[0], slow[2])
    else:
        assert fast == slow
        assert type(fast) is type(slow)


@given(frame=frames, changes=changes, length=st.integers(0, 400))
def test_both_builds_read_the_same(
    wires: dict[str, Wire], frame: tuple[str, dict[str, Any]], changes: list[tuple[int, int]], length: int
) -> None:
    some = next(iter(wires.values()))
    body = mutated(some.v1.encode(made(some, frame)), changes, length)
    found = [attempt(wire.v1.decode, body, 0, len(body)) for wire in wires.values()]
    shown = [one if isinstance(one, tuple) else repr(one) for one in found]
    assert all(one == shown[0] for one in shown)


@pytest.mark.parametrize(("start", "end"), [(-1, 6), (0, 7), (5, 4), (7, 7), (0, 2**62), (-(2**62), 6)])
def test_decode_never_reads_outside_the_buffer(wire: Wire, start: int, end: int) -> None:
    with pytest.raises(wire.errors.LocalError, match="of 6 bytes"):
        wire.v1.decode(b"\0\0\0\1\x24\0", start, end)


@pytest.mark.parametrize("start", [-1, 1, 2**62])
def test_stream_id_never_reads_outside_the_buffer(wire: Wire, start: int) -> None:
    assert wire.v1.stream_id(b"\0\0\1\1\x24\0", 0) == 257
    with pytest.raises(wire.errors.LocalError, match="of 6 bytes"):
        wire.v1.stream_id(b"\0\0\1\1\x24\0", start)


@pytest.mark.parametrize("size", range(6))
def test_frame_shorter_than_its_header_is_an_error(wire: Wire, size: int) -> None:
    with pytest.raises(wire.errors.FrameError, match="shorter than its header"):
        decoded(wire, bytes(size))


# THREATS 11: trailing bytes are ignored, and never read as the next frame.
@pytest.mark.parametrize("body", ["000000012000000000050a0b", "0000000124000a0b", "0000000038000000000000000005ffff"])
def test_trailing_bytes_of_fixed_frames_are_ignored(wire: Wire, body: str) -> None:
    frame = decoded(wire, body)
    assert frame.data == b""
    assert wire.v1.encode(frame).hex() == body[:-4]


# THREATS 12.
@pytest.mark.parametrize("type", [0x04, 0x0A, 0x0C, 0x3F])
def test_top_bit_of_a_stream_id_is_an_error(wire: Wire, type: int) -> None:
    body = b"\x80\0\0\1" + (type << 10 | 0x200).to_bytes(2, "big") + bytes(8)
    with pytest.raises(wire.errors.FrameError, match="top bit") as caught:
        decoded(wire, body)
    assert not caught.value.ignorable


# THREATS 13.
@pytest.mark.parametrize("type", [0x00, 0x0F, 0x2A, 0x3E])
def test_unknown_type_is_skipped_only_with_ignore(wire: Wire, type: int) -> None:
    body = b"\0\0\0\1" + (type << 10).to_bytes(2, "big") + b"abc"
    with pytest.raises(wire.errors.FrameError, match=f"byte 4: unknown frame type 0x{type:02X}") as caught:
        decoded(wire, body)
    assert not caught.value.ignorable
    frame = decoded(wire, body[:4] + (type << 10 | 0x200).to_bytes(2, "big") + b"abc")
    assert (frame.type, frame.stream_id, frame.data) == (type, 1, b"abc")


# THREATS 14: checking it costs no more than keeping it.
def test_long_extension_is_one_frame(wire: Wire) -> None:
    frame = decoded(wire, b"\0\0\0\0\xfe\0\0\0\0\7" + bytes(2**20))
    assert (frame.extended_type, len(frame.data)) == (7, 2**20)
    assert frame.flags & wire.frames.IGNORE


# THREATS 17: METADATA is not valid here, so the body is read as if it were not set.
@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        ("000000000d80000000000000000564", "position", 5),
        ("00000001210000000005", "request_n", 5),
        ("000000012500", "data", b""),
        ("000000012d000000020164", "code", 0x201),
    ],
)
def test_metadata_flag_is_ignored_for_types_without_metadata(wire: Wire, body: str, field: str, value: object) -> None:
    frame = decoded(wire, body)
    assert frame.metadata is None
    assert getattr(frame, field) == value
    assert wire.v1.encode(frame).hex() == body


# THREATS 18: bytes that are not text are kept.
def test_text_is_kept_as_bytes(wire: Wire) -> None:
    assert decoded(wire, "000000012c0000000201ff1b5b32").data == b"\xff\x1b[2"
    setup = decoded(wire, "000000000400000100000000000100000002" + "02ff00" + "011b")
    assert (setup.metadata_mime, setup.data_mime) == (b"\xff\0", b"\x1b")


# THREATS 19.
@pytest.mark.parametrize("type", [4, 5, 8, 9, 10, 11])
def test_reserved_flags_are_ignored_and_kept(wire: Wire, type: int) -> None:
    body = b"\0\0\0\1" + (type << 10 | 0x1F).to_bytes(2, "big") + b"\0\0\0\1"
    frame = decoded(wire, body)
    assert frame.flags == 0x1F
    assert frame.type == type


# THREATS 20.
def test_mime_lengths_are_unsigned(wire: Wire) -> None:
    head = bytes.fromhex("0000000004000001000000000001 00000002 ff".replace(" ", ""))
    frame = decoded(wire, head + b"m" * 255 + b"\xff" + b"d" * 255)
    assert (frame.metadata_mime, frame.data_mime) == (b"m" * 255, b"d" * 255)
    with pytest.raises(wire.errors.FrameError, match="SETUP ends within its metadata_mime"):
        decoded(wire, head + b"m" * 254)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("0000000008000000000100000002", None),
        ("0000000009000000000100000002", b""),
        ("00000000080000000001000000026d", b"m"),
        ("000000003000", b""),
        ("000000003100", b""),
        ("0000000030006d", b"m"),
    ],
)
def test_metadata_without_a_length_is_the_rest_of_the_frame(wire: Wire, body: str, expected: bytes | None) -> None:
    frame = decoded(wire, body)
    assert frame.metadata == expected
    assert wire.v1.encode(frame).hex() == body


@given(type=st.sampled_from((4, 5, 6, 7)), stream_id=u31, n=u31, metadata=metadata, data=raw)
def test_requests_are_encoded_as_frames(
    wire: Wire, type: int, stream_id: int, n: int, metadata: bytes | None, data: bytes
) -> None:
    written = wire.frames.Frame(type, stream_id, 0x80, n if type in (6, 7) else 0, metadata, data)
    assert wire.v1.request_frame(type, stream_id, 0x80, n, metadata, data) == wire.v1.frame(written)


@given(stream_id=u31, n=u31, flags=st.sampled_from((0, 0x20, 0x60, 0xA0)), metadata=metadata, data=raw)
def test_payloads_and_control_are_encoded_as_frames(
    wire: Wire, stream_id: int, n: int, flags: int, metadata: bytes | None, data: bytes
) -> None:
    frame = wire.v1.frame(wire.frames.Frame(10, stream_id, flags, 0, metadata, data))
    assert wire.v1.payload_frame(stream_id, flags, metadata, data) == frame
    assert wire.v1.payload_head(stream_id, flags, metadata, len(data)) + data == frame
    assert wire.v1.request_n_frame(stream_id, n) == wire.v1.frame(wire.frames.RequestNFrame(stream_id, n))
    assert wire.v1.cancel_frame(stream_id) == wire.v1.frame(wire.frames.Frame(9, stream_id))


def test_negative_request_n_is_refused(wire: Wire) -> None:
    for refuse in (
        lambda: wire.v1.request_n_frame(1, -1),
        lambda: wire.v1.request_frame(6, 1, 0, -1, None, b""),
        lambda: wire.v1.request_frame(7, 1, 0, -1, None, b""),
    ):
        with pytest.raises(wire.errors.LocalError, match="must be at least 1"):
            refuse()
    with pytest.raises(wire.errors.LocalError, match="does not fit into 31 bits"):
        wire.v1.request_n_frame(1, 2**31)


def test_none_as_an_argument_is_an_error(wire: Wire) -> None:
    deframer = wire.framing.Deframer()
    for refuse in (
        lambda: wire.v1.decode(None, 0, 0),
        lambda: wire.v1.stream_id(None, 0),
        lambda: wire.v1.encode(None),
        lambda: wire.v1.payload_frame(1, 0, None, None),
        lambda: wire.v1.scan_run(None, 10),
        lambda: wire.v1.run_frames(1, None, 0, 1),
        lambda: wire.v1.fits(None, 0, 1, 1),
        lambda: deframer.feed(None),
        lambda: type(deframer).__new__(type(deframer)).next(),
    ):
        with pytest.raises((AttributeError, TypeError)):
            refuse()
