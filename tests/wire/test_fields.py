from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.conftest import Wire


@given(value=st.integers(0, 2**32 - 1), before=st.binary(max_size=4))
def test_integers_are_big_endian(wire: Wire, value: int, before: bytes) -> None:
    assert wire.fields.u32(before + value.to_bytes(4, "big") + b"?", len(before)) == value


@pytest.mark.parametrize("at", [-1, 1, 4, 5, 2**62, -(2**62)])
def test_no_integer_is_read_outside_the_bytes(wire: Wire, at: int) -> None:
    with pytest.raises(wire.errors.LocalError, match=f"4 bytes at index {at} of 4 bytes"):
        wire.fields.u32(b"abcd", at)


@pytest.mark.parametrize(("value", "bits", "data"), [(0, 8, "00"), (255, 8, "ff"), (2**31 - 1, 31, "7fffffff")])
def test_put_rounds_up_to_whole_bytes(wire: Wire, value: int, bits: int, data: str) -> None:
    assert wire.fields.put(value, bits, "it").hex() == data


@pytest.mark.parametrize(("value", "bits"), [(-1, 8), (256, 8), (2**31, 31), (2**63, 63), (2**80, 63)])
def test_values_out_of_range_are_refused_by_name(wire: Wire, value: int, bits: int) -> None:
    for refuse in (wire.fields.put, wire.fields.check):
        with pytest.raises(wire.errors.LocalError, match=f"it is {value}; it must be between 0 and {2**bits - 1}"):
            refuse(value, bits, "it")


def test_reader_reads_in_order(wire: Wire) -> None:
    data = b"??" + bytes.fromhex("0102 80000003 02 6162 0001 63 646566".replace(" ", "")) + b"??"
    reader = wire.fields.Reader(data, 2, 2, len(data) - 2, "X", False)
    assert reader.integer(16, "a") == 0x0102
    assert reader.integer(31, "b") == 3
    assert reader.counted(8, "c") == b"ab"
    assert reader.counted(16, "d") == b"c"
    assert reader.take(2, "e") == b"de"
    assert reader.rest() == b"f"
    assert reader.rest() == b""


@pytest.mark.parametrize("ignorable", [False, True])
def test_error_names_the_field_beyond_the_frame(wire: Wire, ignorable: bool) -> None:
    data = b"????????abcXXXX"
    reader = wire.fields.Reader(data, 4, 8, 11, "SETUP", ignorable)
    with pytest.raises(
        wire.errors.FrameError, match="byte 4: SETUP ends within its major: 4 bytes are needed, 3 remain"
    ) as caught:
        reader.integer(32, "major")
    assert caught.value.ignorable is ignorable
    reader = wire.fields.Reader(b"\x05abcd", 0, 0, 5, "SETUP", ignorable)
    with pytest.raises(wire.errors.FrameError, match="byte 1: SETUP ends within its token"):
        reader.counted(8, "token")
    reader = wire.fields.Reader(b"\x05", 0, 0, 1, "SETUP", ignorable)
    with pytest.raises(wire.errors.FrameError, match="byte 0: SETUP ends within its token length"):
        reader.counted(16, "token")
