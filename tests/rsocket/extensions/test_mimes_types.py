from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import FrameError, LocalError
from weirpool.rsocket.extensions.mimes import read_type, write_type

NAMES = st.text(st.characters(max_codepoint=127), min_size=1, max_size=128)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (0, "80"),
        (0x7F, "ff"),
        # The length of a name is written minus one.
        ("x", "0078"),
        ("x/y", "02782f79"),
        ("n" * 128, "7f" + "6e" * 128),
    ],
)
def test_numbers_and_names(value: int | str, data: str) -> None:
    assert write_type(value, "type").hex() == data
    assert read_type(bytes.fromhex(data), 0, "type") == (value, len(data) // 2)


@given(st.integers(0, 127) | NAMES, st.binary(max_size=5), st.binary(max_size=5))
def test_types_are_read_back_at_any_offset(value: int | str, before: bytes, after: bytes) -> None:
    data = write_type(value, "type")
    assert read_type(before + data + after, len(before), "type") == (value, len(before) + len(data))


@given(st.binary(min_size=1, max_size=40))
def test_read_types_are_written_unchanged(junk: bytes) -> None:
    try:
        value, end = read_type(junk, 0, "type")
    except FrameError:
        return
    assert write_type(value, "type") == junk[:end]


@pytest.mark.parametrize(
    ("data", "at", "message"),
    [
        ("", 0, "byte 0: the type is missing"),
        ("ff", 1, "byte 1: the type is missing"),
        ("0261", 0, "byte 0: type of 3 bytes runs past the end"),
        # A first byte with the highest bit is a number, not a negative length (THREATS 20).
        ("7f" + "61" * 127, 0, "byte 0: type of 128 bytes runs past the end"),
    ],
)
def test_truncated_types_are_an_error(data: str, at: int, message: str) -> None:
    with pytest.raises(FrameError, match=f"^{message}$"):
        read_type(bytes.fromhex(data), at, "type")


@pytest.mark.parametrize("value", [-1, 128, "", "n" * 129, "tëxt"])
def test_values_out_of_range_are_refused(value: int | str) -> None:
    with pytest.raises(LocalError, match=r"type .* must be"):
        write_type(value, "type")
