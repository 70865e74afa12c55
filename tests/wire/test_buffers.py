from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire
from tests.wire.strategies import items

Items = list[tuple[bytes, bytes | None]]


def rows(taken: Any) -> Items:
    """Return the content of the buffers as Arrow reads them."""
    data_ends, metadata_ends = array("i", bytes(taken.data_ends)), array("i", bytes(taken.metadata_ends))
    assert len(data_ends) == len(metadata_ends) == taken.rows + 1
    assert data_ends[0] == metadata_ends[0] == 0
    assert (data_ends[-1], metadata_ends[-1]) == (len(taken.data), len(taken.metadata))
    assert len(taken.valid) == (taken.rows + 7) // 8
    found: Items = []
    for row in range(taken.rows):
        metadata = bytes(taken.metadata[metadata_ends[row] : metadata_ends[row + 1]])
        valid = taken.valid[row >> 3] >> (row & 7) & 1
        assert valid or not metadata
        found.append((bytes(taken.data[data_ends[row] : data_ends[row + 1]]), metadata if valid else None))
    assert taken.nulls == sum(metadata is None for _, metadata in found)
    return found


# A step adds a run from its first item or its second, or one payload.
steps = st.lists(st.tuples(st.sampled_from(("run", "rest", "one")), items), max_size=8)


@given(steps=steps, more=items)
def test_rows_are_those_that_were_added(wire: Wire, steps: list[tuple[str, Items]], more: Items) -> None:
    buffers = wire.buffers.ColumnBuffers()
    expected: Items = []
    for step, added in steps:
        if step == "one":
            added = added[:1]
            for item in added:
                buffers.append_payload(wire.payload.Payload(*item))
        elif step == "rest" and added:
            buffers.append(wire.run(added), 1)
            added = added[1:]
        else:
            buffers.append(wire.run([*added, (b"left out", b"")]), 0, len(added))
        expected += added
        assert len(buffers) == len(expected)
        assert buffers.size == sum(len(data) + len(metadata or b"") for data, metadata in expected)
    assert rows(buffers.take()) == expected
    # `take` removes the rows.
    assert (len(buffers), buffers.size) == (0, 0)
    buffers.append(wire.run(more))
    assert rows(buffers.take()) == more
    assert rows(buffers.take()) == []


@given(steps=st.lists(items, max_size=6))
def test_both_builds_make_the_same_bytes(wires: dict[str, Wire], steps: list[Items]) -> None:
    made = []
    for wire in wires.values():
        with wire.build.active():
            buffers = wire.buffers.ColumnBuffers()
            for added in steps:
                buffers.append(wire.run(added))
            taken = buffers.take()
            made.append([part if isinstance(part, int) else bytes(part) for part in taken])
    assert all(one == made[0] for one in made)


WIDE = st.lists(st.tuples(st.sampled_from((2, 3)), st.integers(0, 20), st.booleans()), max_size=6)


@given(steps=WIDE, more=items)
def test_rows_of_one_width_equal_other_rows(wire: Wire, steps: list[tuple[int, int, bool]], more: Items) -> None:
    buffers = wire.buffers.ColumnBuffers()
    expected: Items = []
    for width, count, single in steps:
        data = bytes((len(expected) + at) & 0xFF for at in range(width * (count + 2)))
        run = wire.payload.PayloadRun.fixed(data, width)
        buffers.append(run, 1, count + 1)
        expected += wire.items(run)[1 : count + 1]
        if single:
            buffers.append_payload(wire.payload.Payload(b"ab"))
            expected.append((b"ab", None))
        assert len(buffers) == len(expected)
        assert buffers.size == sum(len(data) for data, _ in expected)
    buffers.append(wire.run(more))
    expected += more
    assert rows(buffers.take()) == expected
    assert rows(buffers.take()) == []


def test_column_of_one_width_does_not_exceed_its_offsets(wire: Wire) -> None:
    buffers = wire.buffers.ColumnBuffers()
    buffers.append(wire.payload.PayloadRun.fixed(b"abcd", 2))
    # Nothing is read from a run whose offsets exceed its buffer.
    run = wire.payload.fixed_run(b"abcd", 2, 0, 2**31 - 4)
    with pytest.raises(wire.errors.LocalError, match="finish this one first"):
        buffers.append(run)
    assert rows(buffers.take()) == [(b"ab", None), (b"cd", None)]


def test_rows_exceed_the_allocated_memory(wire: Wire) -> None:
    buffers = wire.buffers.ColumnBuffers()
    added: Items = [(b"%d" % at * (at % 50), None if at % 3 else b"m" * (at % 70)) for at in range(3000)]
    for _ in range(2):
        for at in range(0, 3000, 100):
            buffers.append(wire.run(added), at, at + 100)
        assert rows(buffers.take()) == added


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (0, 3), (2, 1), (3, 3), (0, -1)])
def test_items_outside_of_a_run_are_refused(wire: Wire, start: int, stop: int) -> None:
    buffers = wire.buffers.ColumnBuffers()
    with pytest.raises(wire.errors.LocalError, match="run of 2"):
        buffers.append(wire.run([(b"a", None), (b"b", None)]), start, stop)
    assert (len(buffers), buffers.size) == (0, 0)


@pytest.mark.parametrize("offsets", [(0, 1, 5), (-1, 3, 2), (-2, 0, 1), (-1, -1, 1), (-1, 0, 2**31 - 1)])
def test_invalid_offsets_are_never_followed(wire: Wire, offsets: tuple[int, int, int]) -> None:
    buffers = wire.buffers.ColumnBuffers()
    run = wire.payload.PayloadRun(b"abcd", array("i", (-1, 0, 1, *offsets)), 0)
    with pytest.raises(wire.errors.LocalError, match="item 1 of the run"):
        buffers.append(run)
    assert (len(buffers), buffers.size) == (0, 0)
    buffers.append(run, 0, 1)
    assert rows(buffers.take()) == [(b"a", None)]


def test_column_does_not_exceed_its_offsets(wire: Wire) -> None:
    buffers = wire.buffers.ColumnBuffers()
    # One MiB, to which the offsets of one run refer 2,047 times.
    data = bytes(2**20)
    run = wire.payload.PayloadRun(data, array("i", (-1, 0, 2**20)) * 2048, 0)
    with pytest.raises(wire.errors.LocalError, match="finish this one first"):
        buffers.append(run)
    buffers.append(run, 0, 8)
    assert buffers.size == 8 * 2**20
    with pytest.raises(wire.errors.LocalError, match="finish this one first"):
        buffers.append(run, 0, 2040)
    assert len(buffers) == 8


def test_none_as_an_argument_is_an_error(wire: Wire) -> None:
    buffers = wire.buffers.ColumnBuffers()
    empty = wire.payload.Payload.__new__(wire.payload.Payload)
    without = wire.payload.PayloadRun.__new__(wire.payload.PayloadRun)
    for refuse in (
        lambda: buffers.append(None),
        lambda: buffers.append(without),
        lambda: buffers.append_payload(None),
        lambda: buffers.append_payload(empty),
    ):
        with pytest.raises((AttributeError, TypeError)):
            refuse()
    assert rows(buffers.take()) == []
