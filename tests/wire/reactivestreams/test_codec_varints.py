from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import LocalError
from weirpool.wire.reactivestreams.codec import MAX_VARINT, MAX_VARINT_BYTES, varint


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (100_000, "a08d06"),
        (MAX_VARINT, "ffffffffffffffff7f"),
    ],
)
def test_varint_is_written_in_its_shortest_form(value: int, data: str) -> None:
    assert varint(value).hex() == data


@given(st.integers(0, MAX_VARINT))
def test_seven_bits_go_into_each_byte(value: int) -> None:
    data = varint(value)
    assert sum((octet & 0x7F) << 7 * at for at, octet in enumerate(data)) == value
    assert [octet >> 7 for octet in data] == [1] * (len(data) - 1) + [0]
    assert len(data) == max(1, -(-value.bit_length() // 7)) <= MAX_VARINT_BYTES


@pytest.mark.parametrize("value", [-1, MAX_VARINT + 1])
def test_values_out_of_range_are_refused(value: int) -> None:
    with pytest.raises(LocalError, match=f"demand is {value}; it must be between"):
        varint(value, "demand")
