"""Runs of items: encoded like their frames, and read at once if their frames are consecutive."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire
from tests.wire.outcomes import attempt
from tests.wire.strategies import items, metadata, raw

Items = list[tuple[bytes, bytes | None]]


@given(items=items, data=st.data())
def test_run_is_encoded_like_its_items(wire: Wire, items: Items, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(items)))
    pieces = wire.v1.run_frames(7, wire.run(items), start, len(items))
    assert pieces == ([b"".join(pieces)] if pieces else [])
    assert b"".join(pieces) == b"".join(wire.v1.payload_frame(7, 0x20, more, raw) for raw, more in items[start:])


def test_run_is_divided_into_pieces(wire: Wire) -> None:
    pieces = wire.v1.run_frames(7, wire.run([(bytes(991), None)] * 100), 0, 100)
    assert [len(piece) for piece in pieces] == [60_000, 40_000]


# Scanning: frames of this stream and others, some of which cannot be part of a run.

plain_item = st.tuples(st.just(("item", 7)), raw, metadata)
other_frame = st.tuples(
    st.sampled_from((("item", 9), ("item", 0), ("next+complete", 7), ("follows", 7), ("empty", 7), ("cancel", 7))),
    raw,
    metadata,
)
arrivals = st.lists(st.one_of(plain_item, plain_item, plain_item, other_frame), max_size=14)
FLAGS_OF = {"item": 0x20, "next+complete": 0x60, "follows": 0xA0, "empty": 0}


def encoded(wire: Wire, arrival: tuple[tuple[str, int], bytes, bytes | None]) -> bytes:
    (kind, stream_id), data, metadata = arrival
    if kind == "cancel":
        return wire.v1.cancel_frame(stream_id)
    return wire.v1.payload_frame(stream_id, FLAGS_OF[kind], metadata, data)


def one_by_one(wire: Wire, pieces: list[bytes]) -> list[Any]:
    deframer = wire.framing.Deframer()
    found = []
    for piece in pieces:
        deframer.feed(piece)
        while deframer.next():
            found.append(wire.v1.decode(deframer.buffer, deframer.start, deframer.end))
    return found


def by_runs(wire: Wire, pieces: list[bytes], limit: int) -> tuple[list[Any], list[int]]:
    """Return the frames, including those of runs, and the length of each run."""
    deframer = wire.framing.Deframer()
    found, lengths = [], []
    for piece in pieces:
        deframer.feed(piece)
        while deframer.next():
            buffer, start, end = deframer.buffer, deframer.start, deframer.end
            run = wire.v1.scan_run(deframer, limit)
            if run is None:
                assert (deframer.buffer, deframer.start, deframer.end) == (buffer, start, end)
                found.append(wire.v1.decode(buffer, start, end))
                continue
            stream_id = wire.v1.stream_id(buffer, start)
            found += [wire.frames.Frame(10, stream_id, 0x20, 0, item.metadata, item.data) for item in run]
            lengths.append(len(run))
            assert run.check(0, len(run)) == run.size
    return found, lengths


@given(arrivals=arrivals, limit=st.integers(0, 8), sizes=st.lists(st.integers(1, 120), max_size=20))
def test_runs_contain_the_items_of_their_frames(
    wire: Wire, arrivals: list[tuple[tuple[str, int], bytes, bytes | None]], limit: int, sizes: list[int]
) -> None:
    frames = [encoded(wire, arrival) for arrival in arrivals]
    data = b"".join(frames)
    pieces, at = [], 0
    for size in [*sizes, len(data)]:
        pieces.append(data[at : at + size])
        at += size
    for fed in ([data], pieces, [data[at : at + 1] for at in range(len(data))]):
        found, lengths = by_runs(wire, fed, limit)
        assert found == one_by_one(wire, fed)
        assert all(2 <= length <= limit for length in lengths)
    # In one piece, a run is as long as possible.
    _, lengths = by_runs(wire, [data], 100)
    alike = [(name, len(list(group))) for name, group in groupby(name for name, _, _ in arrivals)]
    assert lengths == [length for (kind, stream_id), length in alike if kind == "item" and stream_id and length > 1]


@given(arrivals=arrivals, changes=st.lists(st.tuples(st.integers(0, 300), st.integers(0, 255)), max_size=5))
def test_both_builds_scan_equal_runs_within_the_buffer(
    wires: dict[str, Wire],
    arrivals: list[tuple[tuple[str, int], bytes, bytes | None]],
    changes: list[tuple[int, int]],
) -> None:
    results = []
    for wire in wires.values():
        data = bytearray(b"".join(encoded(wire, arrival) for arrival in arrivals))
        for at, value in changes:
            if data:
                data[at % len(data)] = value
        results.append(scanned(wire, bytes(data)))
    assert all(result == results[0] for result in results)


def scanned(wire: Wire, data: bytes) -> list[object]:
    """Return all runs, frames and errors of possibly malformed bytes in comparable form."""
    deframer = wire.framing.Deframer(3, 1000)
    deframer.feed(data)
    found: list[object] = []
    try:
        while deframer.next():
            run = wire.v1.scan_run(deframer, 100)
            if run is not None:
                found.append((wire.items(run), deframer.start, deframer.end))
                continue
            found.append(attempt(lambda: repr(wire.v1.decode(deframer.buffer, deframer.start, deframer.end))))
    except wire.errors.FrameError as error:
        found.append(str(error))
    return found


def test_frame_above_the_limit_ends_a_run_before_it(wire: Wire) -> None:
    small, long = wire.v1.payload_frame(7, 0x20, None, b"a"), wire.v1.payload_frame(7, 0x20, None, bytes(100))
    deframer = wire.framing.Deframer(3, 50)
    deframer.feed(small * 3 + long + small)
    assert deframer.next()
    assert len(wire.v1.scan_run(deframer, 100)) == 3
    with pytest.raises(wire.errors.FrameError, match="exceeds the maximum of 50"):
        deframer.next()


def test_shrinking_frames_make_several_runs(wire: Wire) -> None:
    data = wire.v1.payload_frame(7, 0x20, None, bytes(5000)) + wire.v1.payload_frame(7, 0x20, None, b"a") * 500
    found, lengths = by_runs(wire, [data], 10_000)
    assert len(found) == 501
    assert lengths[0] == 17
    assert sum(lengths) == 501
    assert len(lengths) == 2


def test_deframer_without_a_frame_has_no_run(wire: Wire) -> None:
    deframer = wire.framing.Deframer()
    assert wire.v1.scan_run(deframer, 100) is None
    deframer.feed(wire.v1.payload_frame(7, 0x20, None, b"a") * 2)
    assert wire.v1.scan_run(deframer, 100) is None
    assert deframer.next()
    assert len(wire.v1.scan_run(deframer, 100)) == 2
    assert not deframer.next()
    assert wire.v1.scan_run(deframer, 100) is None
