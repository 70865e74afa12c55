from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import Mismatch
from penstock.schema.depth import MAX_DEPTH, check_json_depth, check_msgpack_depth

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=40,
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def passes(check: Any, data: bytes, limit: int) -> bool:
    """Return whether a check lets data pass."""
    try:
        check(data, limit)
    except Mismatch:
        return False
    return True


@given(VALUES, st.integers(1, 6))
def test_json_passes_up_to_the_limit(value: Any, limit: int) -> None:
    data = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert passes(check_json_depth, data, limit) == (depth_of(value) <= limit)


@given(VALUES, st.integers(1, 6))
def test_msgpack_passes_up_to_the_limit(value: Any, limit: int) -> None:
    data = msgspec.msgpack.encode(value)
    # A container of nothing has no level of its own there: nothing can be within it.
    nested = [depth_of(value) - 1, depth_of(value)]
    assert passes(check_msgpack_depth, data, limit) in [level <= limit for level in nested]


def test_brackets_in_strings_are_no_levels() -> None:
    data = json.dumps(["[" * 1_000, '"[[[\\"' * 1_000]).encode()
    assert passes(check_json_depth, data, MAX_DEPTH)


@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1, 100_000])
def test_bombs_are_refused(levels: int) -> None:
    # THREATS 64
    fits = levels <= MAX_DEPTH
    assert passes(check_json_depth, b"[" * levels, MAX_DEPTH) == fits
    assert passes(check_json_depth, b'{"a":' * levels, MAX_DEPTH) == fits
    assert passes(check_msgpack_depth, b"\x91" * levels, MAX_DEPTH) == fits
    assert passes(check_msgpack_depth, b"\x81\xa1a" * levels, MAX_DEPTH) == fits
    assert passes(check_msgpack_depth, b"\xdd\x00\x00\x00\x01" * levels, MAX_DEPTH) == fits
    assert passes(check_msgpack_depth, b"\xde\x00\x01\xa1a" * levels, MAX_DEPTH) == fits


@pytest.mark.parametrize(
    "leaf",
    [
        "c0",
        "ca00000000",
        "cb" + "00" * 8,
        "cc91",
        "d0dc",
        "d49191",
        "d8" + "91" * 17,
        "c40291dc",
        "c7029191dc",
        "d90191",
    ],
)
def test_bytes_of_leaves_are_no_containers(leaf: str) -> None:
    data = b"\xdc\x03\xe8" + bytes.fromhex(leaf) * 1_000
    assert passes(check_msgpack_depth, data, 1)


def test_a_string_without_end_takes_linear_time() -> None:
    # Tried again at each quote, this would take hours.
    assert passes(check_json_depth, b"[" * 129 + b'"' + b'\\"' * 1_000_000, 1_000)


@given(st.binary())
def test_what_is_no_data_is_left_to_the_decoder(data: bytes) -> None:
    # Nothing but a refusal for its depth is raised, and with room for every byte not even that.
    for check in (check_json_depth, check_msgpack_depth):
        passes(check, data * 3, 2)
        assert passes(check, data * 3, 3 * len(data) + 1)
