from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given

from tests.wire.conftest import Wire
from tests.wire.strategies import items

Items = list[tuple[bytes, bytes | None]]


def arrow(items: Items) -> tuple[memoryview, memoryview, memoryview, memoryview, memoryview]:
    """Return the buffers of two columns, made by hand."""
    data_ends, metadata_ends, valid = array("i", (0,)), array("i", (0,)), bytearray((len(items) + 7) // 8)
    data, metadata = b"", b""
    for row, (raw, more) in enumerate(items):
        data += raw
        metadata += more or b""
        valid[row >> 3] |= (more is not None) << (row & 7)
        data_ends.append(len(data))
        metadata_ends.append(len(metadata))
    return tuple(memoryview(part) for part in (data, data_ends, metadata, metadata_ends, valid))


def run_of_rows(wire: Wire, data: memoryview, data_ends: memoryview, *more: Any) -> Any:
    """Return the run of all rows."""
    return wire.rows.RowBuffers(data, data_ends, *more).run()


@given(items=items, before=items)
def test_run_is_made_of_rows(wire: Wire, items: Items, before: Items) -> None:
    data, data_ends, metadata, metadata_ends, valid = arrow([*before, *items])
    first = len(before)
    run = run_of_rows(wire, data, data_ends[first:], metadata, metadata_ends[first:], valid, first)
    assert wire.items(run) == items
    assert run.size == sum(len(raw) + len(more or b"") for raw, more in items)
    bare = run_of_rows(wire, data, data_ends[first:], None, None, None, 0)
    assert wire.items(bare) == [(raw, None) for raw, _ in items]
    full = run_of_rows(wire, data, data_ends[first:], metadata, metadata_ends[first:], None, 0)
    assert wire.items(full) == [(raw, more or b"") for raw, more in items]


@pytest.mark.parametrize("ends", [(0, 5), (-1, 1), (2, 1), (0, 2**31 - 1), (-(2**31), 2**31 - 1)])
def test_invalid_arrow_offsets_are_never_followed(wire: Wire, ends: tuple[int, int]) -> None:
    raw, lying, honest = memoryview(b"abcd"), memoryview(array("i", ends)), memoryview(array("i", (0, 1)))
    with pytest.raises(wire.errors.LocalError, match="row 0 is at"):
        run_of_rows(wire, raw, lying, None, None, None, 0)
    with pytest.raises(wire.errors.LocalError, match="row 0 is at"):
        run_of_rows(wire, raw, honest, raw, lying, None, 0)


def test_no_rows_are_an_empty_run_whatever_their_offset(wire: Wire) -> None:
    # Nothing is read after the only offset.
    nothing, lying = memoryview(b""), memoryview(array("i", [-1]))
    assert wire.items(run_of_rows(wire, nothing, lying, None, None, None, 0)) == []
    assert wire.items(run_of_rows(wire, nothing, lying, nothing, lying, None, 0)) == []


def test_missing_offsets_are_refused(wire: Wire) -> None:
    nothing, raw = memoryview(b""), memoryview(array("i", (0, 1)))
    with pytest.raises(wire.errors.LocalError, match="the offsets of the rows are missing"):
        wire.rows.RowBuffers(nothing, memoryview(array("i")), None, None, None, 0)
    with pytest.raises(wire.errors.LocalError, match="too few for 1 rows from bit -8"):
        wire.rows.RowBuffers(nothing, raw, nothing, raw, memoryview(b"\xff"), -8)


def test_columns_of_unequal_length_are_refused(wire: Wire) -> None:
    raw, two, three = memoryview(b"ab"), memoryview(array("i", (0, 1))), memoryview(array("i", (0, 1, 2)))
    with pytest.raises(wire.errors.LocalError, match="the batch has 1 rows of data and 2 of metadata"):
        run_of_rows(wire, raw, two, raw, three, None, 0)
    with pytest.raises(wire.errors.LocalError, match="1 bytes of validity bits are too few for 2 rows from bit 7"):
        run_of_rows(wire, raw, three, raw, three, memoryview(b"\xff"), 7)


def test_run_of_rows_does_not_exceed_its_offsets(wire: Wire) -> None:
    raw = memoryview(bytes(2**20))
    ends = memoryview(array("i", (0, 2**20)) * 4096)
    with pytest.raises(wire.errors.LocalError):
        run_of_rows(wire, raw, ends, None, None, None, 0)


def test_none_as_a_buffer_is_an_error(wire: Wire) -> None:
    with pytest.raises((AttributeError, TypeError)):
        wire.rows.RowBuffers(None, None, None, None, None, 0)
