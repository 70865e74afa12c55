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
        (build.module("penstock.depth").cbor_too_deep(data, limit), build.module("penstock.depth").count_cbor(data))
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
