from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire
from tests.wire.outcomes import attempt
from tests.wire.strategies import items, metadata, raw, u32

u64 = st.integers(0, 2**64 - 1)


def decoded(wire: Wire, body: str) -> Any:
    raw = bytes.fromhex(body.replace(" ", ""))
    return wire.v00.decode(raw, 0, len(raw))


@given(stream_id=u64, n=u64, metadata=metadata, kind=st.integers(0, 255), data=raw, code=u32, flags=st.booleans())
def test_every_type_is_decoded_back(
    wire: Wire, stream_id: int, n: int, metadata: bytes | None, kind: int, data: bytes, code: int, flags: bool
) -> None:
    frames = wire.frames
    types = frames.FrameType
    error = frames.ErrorFrame(stream_id, 0x201, data, 0, metadata)
    refusal = frames.ErrorFrame(0, code, data, 0, metadata)
    refusal.type = int(types.SETUP_ERROR)
    setup = frames.SetupFrame(frames.LEASE if flags else 0, 0, 0, 0, 0, None, b"a/b", b"c/d", metadata, data)
    request_n = frames.RequestNFrame(stream_id, n)
    request_n.metadata = metadata
    request_n.flags |= 0 if metadata is None else frames.METADATA
    for frame in (
        setup,
        refusal,
        error,
        frames.LeaseFrame(0, n, metadata, n),
        frames.Frame(types.REQUEST_RESPONSE, stream_id, 0, 0, metadata, data),
        frames.Frame(types.REQUEST_FNF, stream_id, frames.IGNORE, 0, metadata, data),
        frames.Frame(types.REQUEST_STREAM, stream_id, 0, n, metadata, data),
        frames.Frame(types.REQUEST_SUB, stream_id, 0, n, metadata, data),
        request_n,
        frames.Frame(types.CANCEL, stream_id, 0, 0, metadata),
        frames.Frame(types.PAYLOAD, stream_id, frames.NEXT | frames.FOLLOWS, 0, metadata, data),
        frames.Frame(types.METADATA_PUSH, stream_id, 0, 0, metadata),
        frames.ExtFrame(stream_id, code, data),
    ):
        frame.metadata_type = kind if frame.metadata is not None else 0
        body = wire.v00.encode(frame)
        assert wire.v00.decode(b"!" + body + b"!", 1, 1 + len(body)) == frame
        assert wire.v00.stream_id(b"!" + body, 1) == frame.stream_id
        assert wire.v00.frame(frame) == wire.framing.prefixed(body, 4)


def test_response_is_an_item_unless_empty_and_complete(wire: Wire) -> None:
    next, complete = wire.frames.NEXT, wire.frames.COMPLETE
    assert decoded(wire, "00 00 0020 0000000000000005").flags == next
    assert decoded(wire, "00 10 0020 0000000000000005").flags == complete
    assert decoded(wire, "00 10 0020 0000000000000005 61").flags == complete | next
    assert decoded(wire, "00 50 0020 0000000000000005 00000004").flags == complete | next | wire.frames.METADATA


# THREATS 16, 15.
@pytest.mark.parametrize("length", ["00000000", "00000003", "00000009", "000000ff", "00ffffff"])
def test_frame_with_invalid_metadata_length_is_ignorable(wire: Wire, length: str) -> None:
    with pytest.raises(wire.errors.FrameError) as caught:
        decoded(wire, f"00 40 0011 0000000000000001 {length} 61626364")
    assert caught.value.ignorable


# THREATS 12; Frame Header Format: 64 bits, without a sign.
@pytest.mark.parametrize("stream_id", [1, 2**63 - 1, 2**63, 2**64 - 1])
def test_stream_ids_have_64_bits(wire: Wire, stream_id: int) -> None:
    for written in (
        wire.v00.payload_frame(stream_id, wire.frames.NEXT, b"m", b"d"),
        wire.v00.payload_head(-stream_id, wire.frames.NEXT, b"m", 1) + b"d",
        wire.v00.request_frame(6, stream_id, 0, 5, None, b"d"),
        wire.v00.request_n_frame(-stream_id, 5),
        wire.v00.cancel_frame(-stream_id),
        wire.v00.frame(wire.frames.ErrorFrame(stream_id, 0x201, b"no")),
    ):
        assert wire.v00.stream_id(written, 4) == stream_id
        assert wire.v00.decode(written, 4, len(written)).stream_id == stream_id


def test_types_are_read_from_headers(wire: Wire) -> None:
    types = wire.frames.FrameType
    for frame in (wire.frames.Frame(types.REQUEST_SUB, 7, 0, 5), wire.frames.Frame(types.PAYLOAD, 7)):
        assert wire.v00.type(b"!" + wire.v00.encode(frame), 1) == frame.type
    assert wire.v00.type(bytes.fromhex("00 00 0077 0000000000000001"), 0) == 0x10077
    with pytest.raises(wire.errors.LocalError):
        wire.v00.type(b"\0\0\0", 0)


@pytest.mark.parametrize("stream_id", [2**64, -(2**64), 2**80])
def test_longer_stream_ids_are_refused(wire: Wire, stream_id: int) -> None:
    with pytest.raises(wire.errors.LocalError, match="stream id"):
        wire.v00.cancel_frame(stream_id)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("00 00 0011", "shorter than its header of 12"),
        ("01 00 0011 0000000000000001", "has version 1"),
        ("00 00 0004 0000000000000000", "unknown frame type 0x0004"),
        ("00 00 0013 0000000000000001 00000000", "ends within its request_n"),
        ("00 00 0003 0000000000000000 0000000000000001", "ends within its number_of_requests"),
        ("00 00 0001 0000000000000000 ff 61", "ends within its metadata_mime"),
    ],
)
def test_malformed_frames_are_refused(wire: Wire, body: str, message: str) -> None:
    with pytest.raises(wire.errors.FrameError, match=message):
        decoded(wire, body)


# THREATS 33.
def test_largest_numbers_are_decoded(wire: Wire) -> None:
    most = "f" * 16
    lease = decoded(wire, f"00 00 0003 0000000000000000 {most} {most}")
    assert (lease.ttl_ns, lease.number_of_requests) == (2**64 - 1, 2**64 - 1)
    assert decoded(wire, f"00 00 0015 0000000000000001 {most}").request_n == 2**64 - 1


def test_sign_of_a_stream_id_is_not_encoded(wire: Wire) -> None:
    assert wire.v00.cancel_frame(-5) == wire.v00.cancel_frame(5)
    assert wire.v00.payload_frame(-5, wire.frames.NEXT, None, b"d") == wire.v00.payload_frame(
        5, wire.frames.NEXT, None, b"d"
    )


@given(items=items)
def test_runs_are_written_item_by_item(wire: Wire, items: list[tuple[bytes, bytes | None]]) -> None:
    run = wire.run(items)
    pieces = wire.v00.run_frames(7, run, 0, len(items))
    expected = [wire.v00.payload_frame(7, wire.frames.NEXT, metadata, data) for data, metadata in items]
    assert b"".join(pieces) == b"".join(expected)


def test_runs_are_divided_into_pieces(wire: Wire) -> None:
    run = wire.run([(b"x" * 25_000, None)] * 5)
    assert [len(piece) > 0 for piece in wire.v00.run_frames(7, run, 0, 5)] == [True] * 3


@given(data=raw, prefix=st.sampled_from((3, 4)))
def test_head_and_its_data_are_a_frame(wire: Wire, data: bytes, prefix: int) -> None:
    codec = type(wire.v00)(prefix)
    whole = codec.payload_frame(9, wire.frames.NEXT, b"m", data)
    assert codec.payload_head(9, wire.frames.NEXT, b"m", len(data)) + data == whole
    assert wire.framing.Deframer(prefix).split(whole) == [whole[prefix:]]


def test_requests_omit_fields_of_other_types(wire: Wire) -> None:
    call = wire.v00.request_frame(4, 1, wire.frames.COMPLETE, 5, None, b"q")
    assert call.hex() == "00000011" + "00000011" + "0000000000000001" + "71"
    assert wire.v00.request_n_frame(1, 5).hex() == "00000018" + "00000015" + "0000000000000001" + "0000000000000005"
    with pytest.raises(wire.errors.LocalError):
        wire.v00.request_n_frame(1, -1)


# Arbitrary bytes, some of them after a valid type and flags.
junk = st.binary(max_size=40) | st.builds(
    lambda flags, type, rest: bytes([0, flags, 0, type, 0]) + rest,
    st.sampled_from((0, 0x10, 0x20, 0x40, 0x80)),
    st.integers(0, 0x1F),
    st.binary(max_size=40),
)


@given(body=junk)
def test_junk_only_raises_frame_errors(wire: Wire, body: bytes) -> None:
    try:
        read = wire.v00.decode(body, 0, len(body))
    except wire.errors.FrameError as error:
        assert 0 <= error.offset <= len(body)
        return
    again = wire.v00.encode(read)
    assert wire.v00.decode(again, 0, len(again)) == read


# Runs. Stream 0 is the connection, which has none.
sent = st.tuples(
    st.sampled_from([0, 7, 7, 7, 1 << 40, 1 << 63]), st.sampled_from([0x20, 0x20, 0x20, 0x60, 0xA0]), items
)


def one_by_one(wire: Wire, data: bytes, limit: int, prefix: int) -> list[Any]:
    """Return the frames of possibly malformed bytes, including those of runs, which must not overlap."""
    codec = type(wire.v00)(prefix)
    deframer = wire.framing.Deframer(prefix, 1000, 12)
    deframer.feed(data)
    found: list[Any] = []
    try:
        while deframer.next():
            start = deframer.start
            run = codec.scan_run(deframer, limit)
            if run is None:
                found.append(attempt(lambda: repr(codec.decode(deframer.buffer, deframer.start, deframer.end))))
                continue
            assert 2 <= len(run) <= limit
            assert run.check(0, len(run)) == run.size
            stream_id = codec.stream_id(deframer.buffer, start)
            found += [repr(wire.frames.Frame(10, stream_id, 0x20, 0, item.metadata, item.data)) for item in run]
    except wire.errors.FrameError as error:
        found.append(str(error))
    return found


@given(sent=st.lists(sent, max_size=8), limit=st.integers(2, 9), prefix=st.sampled_from((3, 4)))
def test_runs_contain_the_items_of_their_frames(
    wire: Wire, sent: list[tuple[int, int, list[tuple[bytes, bytes | None]]]], limit: int, prefix: int
) -> None:
    codec = type(wire.v00)(prefix)
    data = b"".join(
        codec.payload_frame(stream, flags, metadata, item) for stream, flags, batch in sent for item, metadata in batch
    )
    assert one_by_one(wire, data, limit, prefix) == one_by_one(wire, data, 1, prefix)


@given(batch=items, changes=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=5))
def test_both_builds_agree_on_malformed_bytes(
    wires: dict[str, Wire], batch: list[tuple[bytes, bytes | None]], changes: list[tuple[int, int]]
) -> None:
    results = []
    for wire in wires.values():
        data = bytearray(b"".join(wire.v00.payload_frame(7, 0x20, metadata, item) for item, metadata in batch))
        for at, value in changes:
            if data:
                data[at % len(data)] = value
        results.append([one_by_one(wire, bytes(data), limit, 4) for limit in (1, 100)])
    assert all(result == results[0] for result in results)


def test_none_as_an_argument_is_an_error(wire: Wire) -> None:
    for refuse in (
        lambda: wire.v00.decode(None, 0, 0),
        lambda: wire.v00.stream_id(None, 0),
        lambda: wire.v00.payload_frame(1, 0, None, None),
        lambda: wire.v00.scan_run(None, 10),
        lambda: wire.v00.run_frames(1, None, 0, 1),
    ):
        with pytest.raises((TypeError, AttributeError, wire.errors.LocalError)):
            refuse()
