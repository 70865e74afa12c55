from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire
from tests.wire.strategies import items, metadata, raw, u31

kinds = st.integers(0, 2**16 - 1).map(lambda kind: kind & ~0x100)


def packed(wire: Wire, stream_id: int, kind: int, request_n: int, metadata: bytes | None, data: bytes) -> bytes:
    """Return a frame as in the figure of the specification."""
    body = stream_id.to_bytes(4, "big") + (kind | (0 if metadata is None else 0x100)).to_bytes(2, "big")
    body += b"" if request_n < 0 else request_n.to_bytes(4, "big")
    body += b"" if metadata is None else len(metadata).to_bytes(3, "big") + metadata
    body += data
    return len(body).to_bytes(3, "big") + body


@given(stream_id=u31, kind=kinds, request_n=st.just(-1) | u31, metadata=metadata, data=raw)
def test_frames_match_the_figures_of_the_specification(
    wire: Wire, stream_id: int, kind: int, request_n: int, metadata: bytes | None, data: bytes
) -> None:
    expected = packed(wire, stream_id, kind, request_n, metadata, data)
    assert wire.packing.pack(stream_id, kind, request_n, metadata, data, 0) == expected
    # METADATA in `kind` is ignored; the flag depends on the metadata.
    assert wire.packing.pack(stream_id, kind | 0x100, request_n, metadata, data, 0) == expected


@given(stream_id=u31, kind=kinds, metadata=metadata, data=raw)
def test_head_and_data_are_the_frame(
    wire: Wire, stream_id: int, kind: int, metadata: bytes | None, data: bytes
) -> None:
    head = wire.packing.pack_head(stream_id, kind, metadata, len(data), 0)
    assert head + data == wire.packing.pack(stream_id, kind, -1, metadata, data, 0)


@given(stream_id=u31, kind=kinds, items=items, most=st.integers(0, 200), data=st.data())
def test_run_is_packed_like_its_items(
    wire: Wire, stream_id: int, kind: int, items: list[tuple[bytes, bytes | None]], most: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(items)))
    stop = data.draw(st.integers(start, len(items)))
    frames = [packed(wire, stream_id, kind, -1, metadata, raw) for raw, metadata in items[start:stop]]
    pieces = wire.packing.pack_run(stream_id, kind, wire.run(items), start, stop, most, 0)
    assert b"".join(pieces) == b"".join(frames)
    lengths = [len(frame) for frame in frames]
    for piece in pieces:
        # Each has as many complete frames as fit, and at least one.
        taken = [lengths.pop(0)]
        while sum(taken) < len(piece):
            taken.append(lengths.pop(0))
        assert sum(taken) == len(piece)
        assert len(piece) <= most or len(taken) == 1
        assert not lengths or len(piece) + lengths[0] > most


@pytest.mark.parametrize(
    ("stream_id", "request_n", "data_bytes", "message"),
    [
        (-1, -1, 0, "stream id -1 does not fit"),
        (2**31, -1, 0, "stream id 2147483648 does not fit"),
        (2**40, -1, 0, "stream id"),
        (1, -2, 0, "request-n -2 does not fit"),
        (1, 2**31, 0, "request-n 2147483648"),
        (1, -1, 2**24 - 6, "fragment the payload"),
        (1, 1, 2**24 - 10, "fragment the payload"),
    ],
)
def test_values_out_of_range_are_refused(
    wire: Wire, stream_id: int, request_n: int, data_bytes: int, message: str
) -> None:
    with pytest.raises(wire.errors.LocalError, match=message):
        wire.packing.pack(stream_id, 0, request_n, None, bytes(data_bytes), 0)


def test_longest_frame_is_packed(wire: Wire) -> None:
    assert wire.packing.pack(1, 0, -1, None, bytes(2**24 - 7), 0).startswith(b"\xff\xff\xff")
    assert wire.packing.pack(1, 0, -1, b"md", bytes(2**24 - 12), 0).startswith(b"\xff\xff\xff")


@pytest.mark.parametrize("data_bytes", [-1, -10, 2**24, 2**40, 2**63 - 1])
def test_head_for_impossible_data_is_refused(wire: Wire, data_bytes: int) -> None:
    for more in (None, b"m" * 20):
        with pytest.raises(wire.errors.LocalError, match="fragment the payload"):
            wire.packing.pack_head(1, 0, more, data_bytes, 0)


@pytest.mark.parametrize(("start", "stop"), [(-1, 0), (0, 3), (2, 1), (0, -1)])
def test_items_outside_of_a_run_are_refused(wire: Wire, start: int, stop: int) -> None:
    with pytest.raises(wire.errors.LocalError, match="run of 2"):
        wire.packing.pack_run(1, 0, wire.run([(b"a", None), (b"b", None)]), start, stop, 100, 0)


def test_empty_run_makes_no_piece(wire: Wire) -> None:
    assert wire.packing.pack_run(1, 0, wire.run([]), 0, 0, 100, 0) == []


def test_item_longer_than_a_frame_is_refused(wire: Wire) -> None:
    with pytest.raises(wire.errors.LocalError, match="fragment the payload"):
        wire.packing.pack_run(1, 0, wire.run([(b"a", None), (bytes(2**24), None)]), 0, 2, 100, 0)


@pytest.mark.parametrize("offsets", [(0, 1, 5), (-1, 3, 2), (-2, 0, 1), (-1, -1, 1), (-1, 0, 2**31 - 1)])
def test_invalid_offsets_are_never_followed(wire: Wire, offsets: tuple[int, int, int]) -> None:
    run = wire.payload.PayloadRun(b"abcd", array("i", (-1, 0, 1, *offsets)), 0)
    assert wire.packing.pack_run(1, 0, run, 0, 1, 100, 0) != []
    with pytest.raises(wire.errors.LocalError, match="item 1 of the run"):
        wire.packing.pack_run(1, 0, run, 0, 2, 100, 0)
