from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire
from tests.wire.strategies import items


def test_the_base_leaves_the_wire_to_its_dialects(wire: Wire) -> None:
    codec = wire.codec.Codec(3, 6)
    frame = wire.frames.Frame(4)
    run = wire.run([(b"d", None)])
    for refuse in (
        lambda: codec.decode(b"", 0, 0),
        lambda: codec.stream_id(b"", 0),
        lambda: codec.encode(frame),
        lambda: codec.frame(frame),
        lambda: codec.payload_frame(1, 0, None, b""),
        lambda: codec.payload_head(1, 0, None, 0),
        lambda: codec.request_frame(4, 1, 0, 0, None, b""),
        lambda: codec.request_n_frame(1, 1),
        lambda: codec.cancel_frame(1),
        lambda: codec.run_frames(1, run, 0, 1),
    ):
        with pytest.raises(NotImplementedError):
            refuse()


def test_a_dialect_without_runs_takes_frame_by_frame(wire: Wire) -> None:
    assert wire.codec.Codec(3, 6).scan_run(wire.framing.Deframer(), 100) is None


@given(items=items, most=st.integers(-1, 45), data=st.data())
def test_fits_counts_the_items_before_the_first_that_is_too_long(
    wire: Wire, items: list[tuple[bytes, bytes | None]], most: int, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(items)))
    stop = data.draw(st.integers(start, len(items)))
    expected = 0
    for octets, metadata in items[start:stop]:
        if len(octets) + len(metadata or b"") > most:
            break
        expected += 1
    assert wire.codec.Codec(3, 6).fits(wire.run(items), start, stop, most) == expected


def test_fits_counts_no_items_that_are_not_there(wire: Wire) -> None:
    run = wire.run([(b"d", None)])
    assert wire.codec.Codec(3, 6).fits(run, 0, 100, 10) == 1
    assert wire.codec.Codec(3, 6).fits(run, 5, 100, 10) == 0
