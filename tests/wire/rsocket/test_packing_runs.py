from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire
from tests.wire.strategies import items as item_lists
from tests.wire.strategies import u31

Items = list[tuple[bytes, bytes | None]]


def frames(wire: Wire, stream_id: int, items: Items) -> bytes:
    """Return PAYLOADs with NEXT."""
    return b"".join(wire.v1.payload_frame(stream_id, 0x20, metadata, data) for data, metadata in items)


def scanned(wire: Wire, data: bytes, stream_id: int, room: int) -> tuple[Items | None, int]:
    """Return the run at the first frame of `data`, and the position of the deframer after it."""
    deframer = wire.framing.Deframer()
    deframer.feed(data)
    assert deframer.next()
    run = wire.packing.take_run(deframer, stream_id, room)
    return (None if run is None else wire.items(run)), deframer.end


@given(items=item_lists, stream_id=u31.filter(bool), room=st.integers(0, 20), tail=st.binary(max_size=20))
def test_take_run_reads_at_most_limit_items(wire: Wire, items: Items, stream_id: int, room: int, tail: bytes) -> None:
    # After the items follow a cancel and arbitrary bytes.
    end = wire.v1.cancel_frame(stream_id)
    found, at = scanned(wire, frames(wire, stream_id, items) + end + tail, stream_id, room)
    expected = items[:room]
    if len(expected) < 2:
        assert found is None
    else:
        assert found == expected
        assert at == len(frames(wire, stream_id, expected))


@pytest.mark.parametrize("flags", [0, 0x40, 0x60, 0x80, 0xA0, 0x120 | 0x40])
def test_only_plain_items_make_a_run(wire: Wire, flags: int) -> None:
    items: Items = [(b"a", None), (b"b", None)]
    odd = wire.v1.payload_frame(1, flags, None, b"odd")
    found, _ = scanned(wire, frames(wire, 1, items) + odd + frames(wire, 1, items), 1, 10)
    assert found == items
    assert scanned(wire, odd + frames(wire, 1, items), 1, 10)[0] is None


def test_run_ends_before_another_stream(wire: Wire) -> None:
    items: Items = [(b"a", None), (b"b", b"m")]
    assert scanned(wire, frames(wire, 1, items) + frames(wire, 3, items), 1, 10)[0] == items
    assert scanned(wire, frames(wire, 3, items), 1, 10)[0] is None


@pytest.mark.parametrize("size", [0, 1, 2, 4, 0xFFFFFF])
def test_metadata_with_an_invalid_length_ends_a_run(wire: Wire, size: int) -> None:
    good: Items = [(b"a", b"m"), (b"b", b"m")]
    body = (1).to_bytes(4, "big") + (0x0A << 10 | 0x120).to_bytes(2, "big") + size.to_bytes(3, "big")[: min(size, 3)]
    lying = len(body).to_bytes(3, "big") + body
    assert scanned(wire, frames(wire, 1, good) + lying + frames(wire, 1, good), 1, 10)[0] == good


def test_truncated_frame_ends_the_run_before_it(wire: Wire) -> None:
    items: Items = [(b"one", None), (b"two", b"m"), (b"three", None)]
    whole = frames(wire, 1, items)
    ends = [len(frames(wire, 1, items[:count])) for count in range(1, 4)]
    for cut in range(ends[0], len(whole)):
        found, _ = scanned(wire, whole[:cut], 1, 10)
        count = sum(end <= cut for end in ends)
        assert found == (items[:count] if count > 1 else None)
