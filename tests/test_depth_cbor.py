from __future__ import annotations

from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builds import Build

from .test_depth import LIMIT, VALUES, depth, depth_of

__all__ = ["depth"]

PIECES = (
    b"\x81 \x80 \xa0 \xa1\x61a \x9f \xbf \xff \x82 \x9a\x00 \xdb \xc2 \x5f \x41 \x7a\x00\x00 \x1c \xf7 \x01"
    b" \x9b\xff\xff\xff\xff\xff\xff\xff\xff \x5b\xff\xff\xff\xff\xff\xff\xff\xff".split(b" ")
)
JUNK = st.binary(max_size=40) | st.lists(st.sampled_from(PIECES)).map(b"".join) | VALUES.map(cbor2.dumps)


@given(VALUES, st.integers(0, 6))
def test_depth_of_cbor_matches_decoding(depth: Any, value: Any, limit: int) -> None:
    too_deep = depth_of(value) > limit
    assert (depth.cbor_too_deep(cbor2.dumps(value), limit) >= 0) == too_deep
    assert (depth.cbor_too_deep(cbor2.dumps(value, indefinite_containers=True), limit) >= 0) == too_deep


# THREATS 104
@pytest.mark.parametrize("levels", [LIMIT, LIMIT + 1, 100_000])
@pytest.mark.parametrize(
    "opening", [b"\x81", b"\x9f", b"\xa1\x61a", b"\xbf\x01", b"\xd9\xd9\xf7", b"\x9a\xff\xff\xff\xff"]
)
def test_bombs_of_cbor_are_found(depth: Any, opening: bytes, levels: int) -> None:
    assert (depth.cbor_too_deep(opening * levels) < 0) == (levels <= LIMIT)


@pytest.mark.parametrize("key", [b"\x81\x01", b"\xa0", b"\xc2\x41\x01", b"\x9f\xff", b"\xbf\xff"])
def test_nested_keys_are_found(depth: Any, key: bytes) -> None:
    for data in (b"\xa2\x61a\x80" + key + b"\x01", b"\xbf\x61a\x80" + key + b"\x01\xff"):
        assert depth.cbor_too_deep(data) == 4
    for data in (b"\xa1\x61a" + key, b"\xbf\x01" + key + b"\xff", b"\x82\x01" + key):
        assert depth.cbor_too_deep(data) < 0


@given(JUNK, st.integers(0, 6))
def test_both_builds_scan_cbor_alike(builds: dict[str, Build], data: bytes, limit: int) -> None:
    found = [
        (build.module("weirpool.depth").cbor_too_deep(data, limit), build.module("weirpool.depth").count_cbor(data))
        for build in builds.values()
    ]
    assert all(each == found[0] for each in found)


@given(VALUES)
def test_values_of_cbor_are_counted(depth: Any, value: Any) -> None:
    def count(value: Any) -> int:
        if isinstance(value, dict):
            return 2 + sum(1 + count(each) for each in value.values())
        return 2 + sum(map(count, value)) if isinstance(value, list) else 1

    assert depth.count_cbor(cbor2.dumps(value)) == count(value)


@pytest.mark.parametrize("tag", [b"\xd8\x41", b"\xd8\x57", b"\xd9\x00\x50", b"\xdb" + b"\0" * 7 + b"\x48"])
def test_numbers_of_typed_arrays_are_counted(depth: Any, tag: bytes) -> None:
    # THREATS 84
    content = bytes(4_000)
    assert depth.count_cbor(tag + cbor2.dumps(content)) == 3 + len(cbor2.dumps(content)) // 4
    in_parts = b"\x5f" + cbor2.dumps(content) * 2 + b"\xff"
    assert depth.count_cbor(tag + in_parts) > 2_000
    for other in (b"\xd8\x40" + cbor2.dumps(content), tag + b"\x01" + cbor2.dumps(content), cbor2.dumps(content)):
        assert depth.count_cbor(other) <= 4


def test_nested_keys_may_be_allowed(depth: Any) -> None:
    data = b"\xa2\x61a\x80\x81\x01\x02"
    assert (depth.cbor_too_deep(data), depth.cbor_too_deep(data, nested_keys=True)) == (4, -1)
    assert depth.cbor_too_deep(b"\xa1" * 100_000, nested_keys=True) == LIMIT


@given(VALUES, st.booleans())
def test_ends_of_values_are_found(depth: Any, value: Any, endless: bool) -> None:
    data = cbor2.dumps(value, indefinite_containers=endless)
    assert depth.skip_cbor(data + b"\x01\xff", 0) == len(data)
    assert depth.skip_cbor(b"\x80" + data, 1) == len(data) + 1
    assert all(depth.skip_cbor(data[:cut], 0) < 0 for cut in range(len(data)))


# RFC 8949, Well-Formedness Errors and Examples.
@pytest.mark.parametrize(
    "data",
    [
        "18", "19", "1a", "1b", "1901", "1a0102", "1b01020304050607", "38", "58", "78", "98", "9a01ff00", "b8", "d8",
        "f8", "f900", "fa0000", "fb000000", "41", "61", "5affffffff00", "5bffffffffffffffff010203", "7affffffff00",
        "81", "818181", "8200", "a1", "a20102", "a100", "a2000000", "c0", "5f4100", "7f6100", "9f", "9f0102", "bf",
        "bf01020102", "819f", "9f8000", "9f9f9f9f9fffffffff", "1c", "1d", "1e", "3c", "5d", "7e", "9c", "bc", "dc",
        "fc", "fd", "fe", "f800", "f818", "f81f", "ff", "81ff", "8200ff", "a1ff", "a1ff00", "a100ff", "a20000ff",
        "9f81ff", "9f829f819f9fffffffff", "bf00ff", "bf000000ff", "1f", "3f", "df", "",
    ],
)  # fmt: skip
def test_what_is_not_well_formed_has_no_end(depth: Any, data: str) -> None:
    assert depth.skip_cbor(bytes.fromhex(data), 0) == -1


def test_values_nested_too_deep_have_no_end(depth: Any) -> None:
    assert depth.skip_cbor(b"\x81" * 200 + b"\x00", 0) == 201
    assert depth.skip_cbor(b"\x81" * 100_000 + b"\x00", 0) == -1
    with pytest.raises(IndexError):
        depth.skip_cbor(b"\x00", -1)


@given(JUNK, st.integers(0, 5))
def test_both_builds_skip_alike(builds: dict[str, Build], data: bytes, at: int) -> None:
    found = {build.module("weirpool.depth").skip_cbor(data, at) for build in builds.values()}
    assert len(found) == 1 and max(found) <= max(len(data), at)
