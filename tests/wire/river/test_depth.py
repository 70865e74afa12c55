from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import FrameError
from penstock.wire.river.depth import check_json_depth, check_msgpack_depth
from tests.builds import Build

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False)
    | st.text()
    | st.text('"\\[{'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"\\[', max_size=3), inner, max_size=3),
    max_leaves=20,
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def refuses(check: Any, data: bytes, limit: int) -> bool:
    try:
        check(data, limit)
    except FrameError:
        return True
    return False


@given(VALUES, st.integers(0, 6))
def test_depth_is_what_decoding_would_find(value: Any, limit: int) -> None:
    for data in (json.dumps(value).encode(), msgspec.json.encode(value)):
        assert refuses(check_json_depth, data, limit) == (depth_of(value) > limit)
    assert refuses(check_msgpack_depth, msgspec.msgpack.encode(value), limit) == (depth_of(value) > limit)


def test_every_msgpack_type_is_passed_over() -> None:
    values = [b"\0" * 300, b"\0" * 70_000, "x" * 40, "x" * 300, "x" * 70_000, 1.5, 2**40, -(2**40), -5, 200, 2**20]
    values += [msgspec.msgpack.Ext(5, b"\x91" * size) for size in (1, 2, 3, 4, 8, 16, 300, 70_000)]
    wide = [[None] * 20, [None] * 70_000, {str(key): 1 for key in range(20)}, {str(key): 1 for key in range(70_000)}]
    check_msgpack_depth(msgspec.msgpack.encode([*values, *wide]), 2)
    with pytest.raises(FrameError):
        check_msgpack_depth(msgspec.msgpack.encode([*values, *wide, [[]]]), 2)


def test_deep_and_broken_input_takes_no_time() -> None:
    for data in (b"[" * 1_000_000, b'"' + b'\\"' * 500_000, b'{"a":' * 200_000):
        refuses(check_json_depth, b"[" * 200 + data, 128)
    for data in (b"\x91" * 1_000_000, b"\xdd\xff\xff\xff\xff" * 1_000):
        assert refuses(check_msgpack_depth, data, 128)
    # Truncated: somebody else says so.
    check_msgpack_depth(b"\xdc" * 200)


JUNK = (
    st.binary(max_size=40)
    | st.text('"\\\\[]{},:1 ', max_size=30).map(str.encode)
    | st.lists(
        st.sampled_from([b"\x91", b"\x81\xa1a", b"\xdc\0\x02", b"\xdf\0", b"\xc7\x01", b"\xd8", b"\xa1", b"\xc1"])
    ).map(b"".join)
    | VALUES.map(msgspec.msgpack.encode)
    | VALUES.map(lambda value: json.dumps(value).encode())
)


@given(data=JUNK, limit=st.integers(0, 6), at=st.integers(0, 5), count=st.integers(0, 4))
def test_both_builds_see_the_same(builds: dict[str, Build], data: bytes, limit: int, at: int, count: int) -> None:
    found = []
    for build in builds.values():
        depth = build.module("penstock.wire.river.depth")
        told = []
        for check in (depth.check_json_depth, depth.check_msgpack_depth):
            try:
                check(data, limit, "")
                told.append(None)
            except build.module("penstock.errors").FrameError as error:
                told.append((error.message, error.offset))
        found.append((told, depth.skip_json(data, at), depth.skip_msgpack(data, at, count)))
    assert all(each == found[0] for each in found)


@given(VALUES, st.binary(max_size=3))
def test_values_are_skipped(build: Build, value: Any, more: bytes) -> None:
    depth = build.module("penstock.wire.river.depth")
    data = json.dumps(value, separators=(",", ":")).encode()
    assert depth.skip_json(b"?" + data + b"," + more, 1) == 1 + len(data)
    packed = msgspec.msgpack.encode(value)
    assert depth.skip_msgpack(b"?" + packed + more, 1) == 1 + len(packed)
    assert depth.skip_msgpack(packed[:-1], 0) == -1


@pytest.mark.parametrize("data", [b"", b'"abc', b'"abc\\"', b"[1", b",", b"}", b'{"a":[1}'])
def test_json_without_an_end_has_none(build: Build, data: bytes) -> None:
    assert build.module("penstock.wire.river.depth").skip_json(data, 0) == -1


def test_only_bytes_are_looked_at(build: Build) -> None:
    depth = build.module("penstock.wire.river.depth")
    for function in (depth.check_json_depth, depth.check_msgpack_depth):
        with pytest.raises((TypeError, AttributeError)):
            function(None)
    if build.name == "compiled":
        with pytest.raises(IndexError):
            depth.skip_msgpack(b"\x01", -1)
        with pytest.raises(IndexError):
            depth.skip_json(b"1", -1)
        with pytest.raises(ValueError, match="depth of 300"):
            depth.check_msgpack_depth(b"", 300)
